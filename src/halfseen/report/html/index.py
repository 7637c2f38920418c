"""The page over all studies: `index.html` beside their folders, with all it needs inside."""

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from halfseen.errors import HalfseenError, StoreError
from halfseen.report.data import Results
from halfseen.report.html.picture import half_seen_picture
from halfseen.report.html.section import Section, badges, section_of
from halfseen.report.verdicts import OUTCOMES, RULE
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.reading import study_from
from halfseen.studies.spec import Study

PAGE = "index.html"
PLOTLY_VERSION = "4.1.1"
"""Of the charting library inside the page."""

_OF_PAPER = "every claim of the paper, and some of our own, with what our runs say about it."
_OF_OTHERS = "what was run, and what the runs say."


def write_index(results_folder: str | Path) -> Path:
    """Write one page over all studies whose folders lie directly in a results folder.

    Parameters
    ----------
    results_folder : path
        A folder in it is a study's if it holds `manifest.json` and `summary.csv`. Studies of the
        package come first, in their order. One that cannot be read is named on the page, with the
        reason, and the others are shown.

    Returns
    -------
    page : Path
        The same results give the same bytes.

    Raises
    ------
    StoreError
        There is no study in the folder.
    """
    home = Path(results_folder)
    folders = study_folders(home)
    if not folders:
        raise StoreError(
            f"there are no results in {home}: run `halfseen reproduce synthetic` first"
        )
    sections: list[Section] = []
    unread: list[tuple[str, str]] = []
    versions: dict[str, Any] = {}
    for folder in folders:
        try:
            results = Results.load(folder)
            sections.append(section_of(_study_of(results), results))
            versions |= results.manifest.get("versions") or {}
        except (HalfseenError, OSError) as error:
            unread.append((folder.name, str(error)))
    page = home / PAGE
    page.write_text(_page(sections, unread, versions), encoding="utf-8")
    return page


def study_folders(home: Path) -> list[Path]:
    """Return the folders of studies in a results folder, in the order of the page."""
    found = sorted(file.parent for file in home.glob("*/manifest.json"))
    found = [folder for folder in found if (folder / "summary.csv").exists()]
    known = [home / name for name in ORDER if home / name in found]
    return known + [folder for folder in found if folder not in known]


def _study_of(results: Results) -> Study:
    """Return the study that was run, as its manifest tells it."""
    plain = results.manifest.get("study")
    if plain is None and results.folder.name in ORDER:
        return builtin_study(results.folder.name)
    if not isinstance(plain, dict):
        raise StoreError("its manifest.json does not tell what was run: run the study again")
    return study_from(plain)


def _page(sections: list[Section], unread: list[tuple[str, str]], versions: dict[str, Any]) -> str:
    counts = {o: n for o in OUTCOMES if (n := sum(s.counts.get(o, 0) for s in sections))}
    return Template(_asset("assets/index.html")).substitute(
        style=_asset("assets/style.css"),
        picture=half_seen_picture(),
        lead=_OF_PAPER if any(section.of_paper for section in sections) else _OF_OTHERS,
        rule=escape(RULE),
        counts=badges(counts),
        contents=_contents(sections),
        unread=_unread(unread),
        sections="\n".join(section.html for section in sections),
        versions=escape(", ".join(f"{name} {version}" for name, version in versions.items())),
        plotly_version=PLOTLY_VERSION,
        plotly=_script(_asset("vendor/plotly-basic.min.js")),
        app=_script(_asset("assets/app.js")),
    )


def _asset(name: str) -> str:
    return (Path(str(files("halfseen.report.html"))) / name).read_text(encoding="utf-8")


def _script(text: str) -> str:
    """Return a script that cannot end its element before its end."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _contents(sections: list[Section]) -> str:
    return "".join(
        f'<li><a href="#{escape(section.anchor)}">{escape(section.title)}</a> '
        f'<span class="counts">{badges(section.counts)}</span></li>'
        for section in sections
    )


def _unread(unread: list[tuple[str, str]]) -> str:
    return "".join(
        f'<p class="warning"><strong>{escape(name)}</strong> is not shown: {escape(reason)}</p>'
        for name, reason in unread
    )
