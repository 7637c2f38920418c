"""Published means over seeds beside ours, on the page."""

from collections.abc import Sequence

from halfseen.report.beside import repeats
from halfseen.report.data import Results
from halfseen.report.look import label_of
from halfseen.report.table import markdown_cell
from halfseen.studies.published_summary import (
    Level,
    Order,
    Summary,
    compare_summary,
    published_summary,
)
from halfseen.studies.spec import Study

_MEANING = (
    "Only means over seeds are published. Excess is regret above that of the trained classifier "
    "itself (published: its error on all held-out items; ours: on the very rounds). Published "
    "results per seed are not known, so that the difference of two means is taken to have √2 times "
    "the standard error of ours; three of these are allowed, and for ranks at least 0.5."
)


def summaries_for(study: Study) -> list[Summary]:
    """Return the published means that a study repeats."""
    means = published_summary(study.name)
    return [mean for mean in means if repeats(study, "default", mean.method)]


def summary_beside(results: Results, means: Sequence[Summary]) -> str:
    """Return published means beside ours as Markdown, empty where there is nothing to compare.

    Methods of which a published seed was not run are left out.
    """
    per_seed = results.per_seed.to_dict("records")
    diagnostics = results.diagnostics.to_dict("records")
    found = compare_summary(per_seed, diagnostics, means)
    if not found.excesses:
        return ""
    parts = [_MEANING, _levels("excess", found.excesses, 1), _orders(found.orders)]
    if found.ranks:
        parts.append(_levels("chosen rank", found.ranks, 2))
    return "\n\n".join(parts)


def _levels(what: str, levels: Sequence[Level], digits: int) -> str:
    lines = [
        f"| p | method | published {what} | our {what} | tolerance | verdict |",
        "| ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for level in levels:
        numbers = (level.published, level.ours, level.standard_error, level.tolerance)
        published, ours, error, tolerance = (f"{number:.{digits}f}" for number in numbers)
        lines.append(
            f"| {level.p:g} | {markdown_cell(label_of(level.method))} | {published} "
            f"| {ours} ± {error} | {tolerance} | {'agrees' if level.agrees else '**differs**'} |"
        )
    return "\n".join(lines)


def _orders(orders: Sequence[Order]) -> str:
    told = [order for order in orders if order.telling]
    differing = [order for order in told if not order.agrees]
    lines = [
        f"Of {len(orders)} pairs of methods, {len(told)} have a published gap of more than two "
        f"standard errors of our paired difference; {len(told) - len(differing)} of these "
        f"{len(told)} orders are ours, too."
    ]
    if differing:
        lines.append("")
    for order in differing:
        lines.append(
            f"- **differs** at p = {order.p:g}: {label_of(order.lower)} below "
            f"{label_of(order.higher)} by {order.published:.1f} as published, "
            f"by {order.ours:.1f} ± {order.standard_error:.1f} here"
        )
    return "\n".join(lines)
