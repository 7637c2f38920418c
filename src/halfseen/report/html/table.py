"""Final regrets as a table of the page: ours, and below them what was published."""

from html import escape
from typing import Any

import pandas as pd

from halfseen.report.data import Point
from halfseen.report.look import label_of
from halfseen.report.table import FinalTable
from halfseen.report.verdicts import said
from halfseen.simulation.tables import Mean

_MEANING = "Mean ± standard error over seeds, the lowest mean of a column in bold."
_BESIDE = (
    " Below ours stands what was published, over the same seeds: where nothing in the policy is "
    "random with the largest difference of any seed, elsewhere with the mean difference in "
    "standard errors (SE) of the paired difference."
)


def table_html(table: FinalTable, beside: pd.DataFrame) -> str:
    """Return final regrets as HTML: methods below each other, points side by side.

    Parameters
    ----------
    table : FinalTable
    beside : DataFrame
        What was published beside ours, as `beside.compare` returns it.
    """
    published = {
        (Point(row.setting, None if pd.isna(row.p) else row.p), row.method): _told(row)
        for row in beside.itertuples(index=False)
    }
    settings = list(dict.fromkeys(point.setting for point in table.points))
    groups = [(name, [p for p in table.points if p.setting == name]) for name in settings]
    if all(len(points) == 1 for _, points in groups):
        heads = [str(point) or "final regret" for point in table.points]
        tables = [_table("", heads, table, table.points, published)]
    else:
        tables = [
            _table(
                name if len(groups) > 1 else "",
                ["" if point.p is None else f"p = {point.p:g}" for point in points],
                table,
                points,
                published,
            )
            for name, points in groups
        ]
    meaning = _MEANING + (_BESIDE if published else "")
    return (
        f'<h3>Final regret</h3>\n<p class="meaning">{escape(meaning)}</p>\n'
        f'<div class="tables">{"".join(tables)}</div>'
    )


def _table(
    caption: str,
    heads: list[str],
    table: FinalTable,
    points: list[Point],
    published: dict[tuple[Point, str], str],
) -> str:
    named = escape(f"Final regret: {caption}" if caption else "Final regret")
    head = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = []
    for method in table.methods:
        cells = [_cell(table, point, method, published) for point in points]
        if any(cells):
            row = "".join(f"<td>{cell}</td>" for cell in cells)
            body.append(f'<tr><th scope="row">{escape(label_of(method))}</th>{row}</tr>')
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{named}"><table>{title}'
        f'<thead><tr><th scope="col">method</th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(
    table: FinalTable, point: Point, method: str, published: dict[tuple[Point, str], str]
) -> str:
    text = escape(table.text(point, method))
    if not text:
        return ""
    found = table.cells[point, method].mean
    ours = f"<b>{text}</b>" if found == table.best(point) else text
    return ours + published.get((point, method), "")


def _told(row: Any) -> str:
    """Return a published mean with how far ours is from it, as HTML."""
    error = None if pd.isna(row.published_se) else row.published_se
    mean = said(Mean(row.published_mean, error), digits=4)
    if row.kind == "exact":
        apart = f"Δ {row.deviation:.0e}"
    else:
        apart = "" if pd.isna(row.deviation) else f"{row.deviation:+.1f} SE"
    told = [f"published {mean}", *([apart] if apart else [])]
    return "".join(
        f'<span class="published">{escape(line.replace("-", "−"))}</span>' for line in told
    )
