"""A study on the page: claims with verdicts, charts, table, figures, files."""

import json
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from halfseen.report.beside import compare, published_for
from halfseen.report.claims import verdicts_on
from halfseen.report.comparisons import comparison_files
from halfseen.report.data import Results
from halfseen.report.html.data_for_page import chart_data
from halfseen.report.html.images import data_uri
from halfseen.report.html.means import means_html
from halfseen.report.html.table import table_html
from halfseen.report.paper import not_from_paper, reproduces_paper
from halfseen.report.specs import figure_specs
from halfseen.report.table import final_table
from halfseen.report.truth import share_seen
from halfseen.report.verdicts import FAILS, HOLDS, OUTCOMES, Verdict
from halfseen.studies.spec import Study

_FILES = (
    "summary.csv",
    "per_seed.csv",
    "trajectories.csv.gz",
    "diagnostics.csv",
    "claims.csv",
    "excess.csv",
    "skipped.csv",
)
_OTHER_FILES = ("calibration.csv", "table.tex", "manifest.json", "report.md", "failures.txt")
_SEVERAL = {HOLDS: "hold", FAILS: "fail"}


class Section(NamedTuple):
    """A study as a part of the page.

    Attributes
    ----------
    anchor, title : str
    counts : dict
        How many claims came to which outcome, without those that none came to.
    of_paper : bool
        Whether the study is one of the package's.
    html : str
    """

    anchor: str
    title: str
    counts: dict[str, int]
    of_paper: bool
    html: str


def section_of(study: Study, results: Results) -> Section:
    """Return the part of the page about a study.

    Raises
    ------
    StudyError
        What the study says about its figures or claims is wrong.
    """
    anchor = re.sub(r"\s", "-", results.folder.name)
    verdicts = verdicts_on(study, results)
    data = chart_data(study, results)
    table = final_table(study, results)
    beside = compare(results, published_for(study))
    figures = _figures(study, results.folder, shown=data is None)
    parts = [
        f'<section class="study" id="{escape(anchor)}" aria-labelledby="{escape(anchor)}-title">',
        f'<h2 id="{escape(anchor)}-title">{escape(study.title)}</h2>',
        _what_was_run(study, results),
        _claims(verdicts),
        "" if data is None else _charts(anchor, data),
        table_html(table, beside) if table.cells else "",
        means_html(study, results),
        figures,
        _notes(study.notes),
        _links(study, results.folder),
        "</section>",
    ]
    html = "\n".join(part for part in parts if part)
    return Section(anchor, study.title, counted(verdicts), reproduces_paper(study), html)


def counted(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return how many verdicts came to which outcome."""
    outcomes = [verdict.outcome for verdict in verdicts]
    return {outcome: n for outcome in OUTCOMES if (n := outcomes.count(outcome))}


def badges(counts: dict[str, int]) -> str:
    """Return counts of outcomes as HTML."""
    return " ".join(
        f'<span class="badge {_class_of(outcome)}">{n} '
        f"{escape(outcome if n == 1 else _SEVERAL.get(outcome, outcome))}</span>"
        for outcome, n in counts.items()
    )


def embedded(data: Any) -> str:
    r"""Return JSON that may stand inside a script element, whatever texts are in it.

    >>> embedded({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _class_of(outcome: str) -> str:
    return outcome.replace(" ", "-")


def _what_was_run(study: Study, results: Results) -> str:
    per_seed = results.per_seed
    skipped = int((per_seed["status"] == "skipped").sum())
    failed = int((per_seed["status"] != "ok").sum()) - skipped
    outside = [escape(label) for label in not_from_paper(study)]
    share = share_seen(study)
    told = [
        f"study <code>{escape(study.name)}</code>",
        f"{per_seed['seed'].nunique()} seeds",
        f"{per_seed['method'].nunique()} methods",
        f"{len(per_seed):,} runs",
    ]
    if results.manifest.get("scale", "paper") != "paper":
        told.append(f"at {escape(str(results.manifest['scale']))} scale")
    if share:
        told.append(escape(share))
    if skipped:
        told.append(f"{skipped:,} of them skipped because they would take too long")
    if outside:
        told.append(f"not from the paper: {'; '.join(outside)}")
    warned = f'<p class="warning">{failed} of these runs failed.</p>' if failed else ""
    return f'<p class="facts">{" · ".join(told)}</p>{warned}'


def _claims(verdicts: list[Verdict]) -> str:
    if not verdicts:
        return ""
    items = []
    for verdict in verdicts:
        numbers = "".join(f"<li>{escape(part)}</li>" for part in verdict.numbers.split("; "))
        items.append(
            f'<li><span class="badge {_class_of(verdict.outcome)}">{escape(verdict.outcome)}'
            f'</span><div><p>{escape(verdict.text)}</p><details class="numbers">'
            f"<summary>the numbers</summary><ul>{numbers}</ul></details></div></li>"
        )
    return f'<h3>Claims</h3>\n<ul class="claims">{"".join(items)}</ul>'


def _charts(anchor: str, data: dict[str, Any]) -> str:
    """Return the place of the charts; the script of the page fills it from the data."""
    return (
        f'<h3>Regret</h3>\n<div class="charts" data-study="{escape(anchor)}">'
        '<noscript><p class="warning">The charts need JavaScript; the tables below do not.</p>'
        f'</noscript><script type="application/json" class="data">{embedded(data)}</script></div>'
    )


def _figures(study: Study, folder: Path, *, shown: bool) -> str:
    """Return the figures that were drawn, opened where there is no chart beside them."""
    parts = []
    for spec in figure_specs(study):
        png = folder / f"{spec.name}.png"
        if png.exists():
            caption = escape(spec.caption or spec.label)
            parts.append(
                f'<figure class="drawn"><img src="{data_uri(png)}" alt="{caption}" '
                f'loading="lazy"><figcaption>{caption}. '
                f'<a href="{_link(png.with_suffix(".svg"))}">SVG</a></figcaption></figure>'
            )
    if not parts:
        return ""
    if shown:
        return "<h3>Figures</h3>\n" + "\n".join(parts)
    words = "the figure of the report" if len(parts) == 1 else f"the {len(parts)} figures"
    return f'<details class="drawings"><summary>{words}</summary>{"".join(parts)}</details>'


def _notes(notes: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<h3>Notes</h3>\n<ul class="notes">{items}</ul>' if items else ""


def _links(study: Study, folder: Path) -> str:
    names = (*_FILES, *comparison_files(study, folder), *_OTHER_FILES)
    found = [folder / name for name in names if (folder / name).exists()]
    links = [f'<a href="{_link(file)}">{escape(file.name)}</a>' for file in found]
    return f'<p class="files">Raw data: {" · ".join(links)}</p>'


def _link(file: Path) -> str:
    """Return the address of a file of a study, seen from the page beside the study's folder."""
    return escape(f"{quote(file.parent.name)}/{quote(file.name)}")
