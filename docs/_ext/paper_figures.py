"""Pages of figures with commands and verdicts, made from committed results.

A line `<!-- figures: STUDY … -->` in a page is replaced by the figures of these studies. What each
figure shows is in `figures/figures.json` (`make figures`), the verdicts are those of `claims.md`
(`halfseen claims`), so that nothing is written twice.
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.report.report import counted

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PLACE = re.compile(r"^<!-- figures: (.+) -->$", re.MULTILINE)
SECTION = re.compile(
    r"^### (?P<title>.+)\n\n`(?P<study>[\w-]+)`, (?P<run>.+)\n\n<details>.*\n\n"
    r"(?P<rows>(?:\|.+\n)+)",
    re.MULTILINE,
)
LABEL = re.compile(r"^\| `((?:fig|tab):\w+)` \| (.+?) \| `([\w-]+)` \|", re.MULTILINE)
ROW = re.compile(r"^\| (?P<text>.+?) \|(?: .+? \|)? \*\*(?P<verdict>[\w ]+)\*\* \|", re.MULTILINE)
MARKS = {"holds": "✓", "fails": "✗"}


def verdicts(claims: str) -> dict[str, tuple[str, str, list[tuple[str, str]]]]:
    """Return title, run and judged claims of every study, from all lists of `claims.md`."""
    found: dict[str, tuple[str, str, list[tuple[str, str]]]] = {}
    for part in SECTION.finditer(claims):
        known = found.setdefault(part["study"], (part["title"], part["run"], []))
        known[2].extend(ROW.findall(part["rows"]))
    return found


def other_labels(paper_map: str, name: str, study: dict[str, Any]) -> str:
    """Return the paper's labels of a study that no figure of its own has, such as single panels."""
    shown = {figure["label"] for figure in study["figures"]}
    found = {label: what for label, what, of in LABEL.findall(paper_map) if of == name}
    return ", ".join(f"`{label}` ({what})" for label, what in found.items() if label not in shown)


def anchor(title: str) -> str:
    """Return the anchor that MyST gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def entry(name: str, study: dict[str, Any], judged: dict[str, Any], others: str) -> str:
    """Return one study as Markdown: command, verdicts, figures with labels and scale."""
    small = study["scale"] != "paper" or "--seeds" in study["command"]
    size = "Full size, but only" if small else "Full size,"
    run = f"{size if study['scale'] == 'paper' else 'Few rounds,'} seeds {study['seeds']}"
    lines = [f"## {study['title']}", "", "```sh", f"halfseen reproduce {name}", "```", ""]
    if small:
        lines += [f"The figures below are from a small run: `{study['command']}`.", ""]
    for figure in study["figures"]:
        paper = figure["label"].startswith("fig:")
        label = f"Paper: `{figure['label']}`." if paper else "This figure is not in the paper."
        lines += [
            f":::{{figure}} figures/{figure['file']}",
            f":alt: {figure['caption'].replace(':', ',')}",
            ":class: paper-figure",
            "",
            f"{figure['caption']}. {label} {run}.",
            ":::",
            "",
        ]
    if others:
        lines += [f"Also in this study, by the paper's labels: {others}.", ""]
    if name in judged:
        title, judged_on, rows = judged[name]
        counts = ", ".join(
            counted(outcome, sum(verdict == outcome for _, verdict in rows))
            for outcome in dict.fromkeys(verdict for _, verdict in rows)
        )
        lines += [
            f":::{{dropdown}} Verdicts: {counts}",
            "",
            f"Judged on {judged_on}. [The numbers, and what would make each claim fail]"
            f"(claims.md#{anchor(title)}).",
            "",
            *(f"- {MARKS.get(verdict, '?')} **{verdict}**: {text}" for text, verdict in rows),
            ":::",
            "",
        ]
    return "\n".join(lines)


def expand(app: "Sphinx", docname: str, source: list[str]) -> None:
    """Replace the places for figures in the text of a page."""
    if not PLACE.search(source[0]):
        return
    files = [
        Path(app.srcdir) / name for name in ("figures/figures.json", "claims.md", "paper-map.md")
    ]
    for file in files:
        app.env.note_dependency(str(file), docname=docname)
    figures, claims, paper_map = (file.read_text("utf-8") for file in files)
    index, judged = json.loads(figures), verdicts(claims)

    def shown(name: str) -> str:
        return entry(name, index[name], judged, other_labels(paper_map, name, index[name]))

    source[0] = PLACE.sub(lambda place: "\n".join(map(shown, place[1].split())), source[0])


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", expand)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
