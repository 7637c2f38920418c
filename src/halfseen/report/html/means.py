"""Published means beside ours, where nothing is published seed by seed."""

from collections.abc import Sequence
from html import escape

from halfseen.report.beside_summary import summaries_for
from halfseen.report.data import Results
from halfseen.report.look import label_of
from halfseen.report.verdicts import said
from halfseen.simulation.tables import Mean
from halfseen.studies.published_summary import Level, compare_summary
from halfseen.studies.spec import Study

_MEANING = (
    "Only means over seeds are published. Excess is regret above that of the trained classifier "
    "itself. Below ours stands the published mean; they differ when they are further apart than "
    "the tolerance (report.md tells how it is set)."
)


def means_html(study: Study, results: Results) -> str:
    """Return published means below ours as HTML, empty where there is nothing to compare."""
    means = summaries_for(study)
    if not means:
        return ""
    per_seed = results.per_seed.to_dict("records")
    found = compare_summary(per_seed, results.diagnostics.to_dict("records"), means)
    if not found.excesses:
        return ""
    tables = [_table("excess regret", found.excesses)]
    if found.ranks:
        tables.append(_table("chosen rank", found.ranks))
    return (
        f'<h3>Published means</h3>\n<p class="meaning">{escape(_MEANING)}</p>\n'
        f'<div class="tables">{"".join(tables)}</div>'
    )


def _table(caption: str, levels: Sequence[Level]) -> str:
    probs = list(dict.fromkeys(level.p for level in levels))
    methods = list(dict.fromkeys(level.method for level in levels))
    by_place = {(level.method, level.p): _cell(level) for level in levels}
    head = "".join(f'<th scope="col">p = {p:g}</th>' for p in probs)
    rows = "".join(
        f'<tr><th scope="row">{escape(label_of(method))}</th>'
        + "".join(f"<td>{by_place.get((method, p), '')}</td>" for p in probs)
        + "</tr>"
        for method in methods
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="Published {escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption>"
        f'<thead><tr><th scope="col">method</th>{head}</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )


def _cell(level: Level) -> str:
    ours = escape(said(Mean(level.ours, level.standard_error), digits=4))
    theirs = escape(said(Mean(level.published, None), digits=4))
    verdict = "agrees" if level.agrees else "<strong>differs</strong>"
    return (
        f'{ours}<span class="published">published {theirs}</span>'
        f'<span class="published">{verdict} (± {level.tolerance:.3g})</span>'
    )
