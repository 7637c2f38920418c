"""The page over all studies: `index.html` in the folder that holds theirs, with all it needs."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from halfseen.errors import HalfseenError, StoreError
from halfseen.reports.context import Report
from halfseen.reports.data import Results
from halfseen.reports.pictures import data_uri, half_seen_steps
from halfseen.reports.render import HTML, render
from halfseen.reports.verdicts import count_outcomes
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.reading import study_from
from halfseen.studies.spec import Study

PAGE = "index.html"
PLOTLY_VERSION = "4.1.1"
"""Of the charting library inside the page."""


def write_index(results_folder: str | Path) -> Path:
    """Write one page over all studies whose folders lie directly in a results folder.

    A folder belongs to a study if it has `manifest.json` and `summary.csv`. Studies of the package
    come first, in their order. One that cannot be read is named on the page, with the reason. The
    same results give the same bytes.

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
    reports: list[Report] = []
    unread: list[tuple[str, str]] = []
    for folder in folders:
        try:
            reports.append(_report_on(folder))
        except (HalfseenError, OSError) as error:
            unread.append((folder.name, str(error)))
    page = home / PAGE
    page.write_text(_page(reports, unread), encoding="utf-8")
    return page


def study_folders(home: Path) -> list[Path]:
    """Return the folders of studies in a results folder, in the order of the page."""
    found = sorted(file.parent for file in home.glob("*/manifest.json"))
    found = [folder for folder in found if (folder / "summary.csv").exists()]
    known = [home / name for name in ORDER if home / name in found]
    return known + [folder for folder in found if folder not in known]


def asset(name: str) -> str:
    """Return the text of a file that becomes part of the page."""
    return (Path(str(files("halfseen.reports"))) / name).read_text(encoding="utf-8")


def _report_on(folder: Path) -> Report:
    """Return the report on a folder; a mistake in what its study says shows here."""
    results = Results.load(folder)
    return Report(study_of(results), results)


def study_of(results: Results) -> Study:
    """Return the study that was run, from its manifest."""
    plain = results.manifest.get("study")
    if plain is None and results.folder.name in ORDER:
        return builtin_study(results.folder.name)
    if not isinstance(plain, dict):
        raise StoreError("its manifest.json does not say what was run: run the study again")
    return study_from(plain)


def _page(reports: list[Report], unread: list[tuple[str, str]]) -> str:
    versions: dict[str, Any] = {}
    for report in reports:
        versions |= report.manifest.get("versions") or {}
    return render(
        HTML,
        reports=reports,
        unread=unread,
        versions=versions,
        counts=count_outcomes(verdict for report in reports for verdict in report.verdicts),
        steps=half_seen_steps(),
        data_uri=data_uri,
        style=Markup(asset("assets/style.css")),
        plotly_version=PLOTLY_VERSION,
        plotly=_script("vendor/plotly-basic.min.js"),
        app=_script("assets/app.js"),
    )


def _script(name: str) -> Markup:
    """Return a script that cannot end its element before its end."""
    text = asset(name).replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return Markup(text)
