"""The report of a run: figures, tables, verdicts, one page about it, and one over all studies.

Templates take what they show from a `Report`. Every value is escaped for its format, unless it is
marked as `Markup`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from halfseen.errors import HalfseenError, StoreError
from halfseen.report.figures import Figure, default_figures, drawn, save_figure, share_label
from halfseen.report.look import label_of
from halfseen.report.numbers import (
    Comparison,
    FinalTable,
    Pair,
    difference,
    format_mean,
    number,
    seed_ranges,
)
from halfseen.simulation.cells import CellKey
from halfseen.simulation.results import Mean, Results, Row, csv_bytes, mean_of


class Verdict(NamedTuple):
    """What the data say about a claim, and the numbers behind it, one string per point.

    `place` is where the paper claims it, or whose claim it is; `fails_if` is which result would
    have been a failure.
    """

    text: str
    outcome: str
    findings: tuple[str, ...]
    place: str = ""
    fails_if: str = ""

    @property
    def numbers(self) -> str:
        """All findings in one string."""
        return "; ".join(self.findings)


@dataclass(kw_only=True)
class Report:
    """Everything that a report on a run shows; from it every template takes what it needs.

    Of the figures `specs` the report has those whose files lie in the folder. `published` and
    `published_means` are published results with ours (`halfseen.paper.published`).
    `reproduces_paper` says whether the study is one of the package's: others do not speak of the
    paper. `not_from_paper` are labels of methods.
    """

    results: Results
    specs: Sequence[Figure] = ()
    verdicts: Sequence[Verdict] = ()
    comparisons: Sequence[Comparison] = ()
    notes: Sequence[str] = ()
    published: Sequence[Any] = ()
    published_means: Any = None
    reproduces_paper: bool = False
    not_from_paper: Sequence[str] = ()

    @classmethod
    def of(cls, results: Results) -> "Report":
        """Return the report on any run."""
        return cls(results=results, specs=default_figures(results))

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.results.folder or Path()

    @property
    def anchor(self) -> str:
        """The name of the report's section on a page over several studies."""
        return "-".join(self.folder.name.split())

    # What was run

    @property
    def share_seen(self) -> str:
        """Which shares of the entries are seen, as a string; empty where no world says it."""
        probs = dict.fromkeys(f"{at.p:g}" for at in self.results.points() if at.p is not None)
        return f"{share_label(self.results)}: {', '.join(probs)}" if probs else ""

    # Claims and numbers

    @cached_property
    def table(self) -> FinalTable:
        """Final regret of every method at every point."""
        return FinalTable.of(self.results)

    @cached_property
    def excess(self) -> FinalTable:
        """Regret above the irreducible one, paired seed by seed; empty where no world knows it."""
        means = {}
        for point in self.results.points():
            irreducible = self.results.irreducible(point)
            for method in self.results.methods:
                above = difference(self.results.regrets(point, method), irreducible)
                means[point, method] = mean_of(list(above.values()))
        return FinalTable.of(self.results, means)

    # What failed, and the files

    @property
    def failures(self) -> list[CellKey]:
        """Failed cells."""
        failed = [row for row in self.results.per_seed if row["status"] == "failed"]
        return [CellKey(*(row[name] for name in CellKey._fields)) for row in failed]

    @property
    def figures(self) -> list[Figure]:
        """The figures whose files are in the folder."""
        return [spec for spec in self.specs if (self.folder / f"{spec.name}.png").exists()]

    def vectors(self, figure: Figure) -> list[str]:
        """Return the names of a figure's files in vector formats."""
        names = [f"{figure.name}.{ending}" for ending in ("svg", "pdf")]
        return [name for name in names if (self.folder / name).exists()]

    def write(self) -> Path:
        """Draw the figures, write all files into the folder, and return the path of the page.

        Files of an earlier run that this one does not have are removed.
        """
        for spec in self.specs:
            canvas = drawn(spec)
            if canvas is not None:
                save_figure(canvas, self.folder, spec.name)
            else:
                for ending in ("png", "svg", "pdf"):
                    (self.folder / f"{spec.name}.{ending}").unlink(missing_ok=True)
        for comparison in self.comparisons:
            path = self.folder / f"{comparison.name}.csv"
            rows = [_compared_row(pair) for pair in comparison.pairs]
            if rows:
                path.write_bytes(csv_bytes(tuple(rows[0]), rows))
            else:  # of an earlier run
                path.unlink(missing_ok=True)
        page = self.folder / "report.md"
        page.write_text(render(MARKDOWN, report=self), encoding="utf-8")
        return page


def _compared_row(pair: Pair) -> Row:
    mean, *ends, n = pair.difference
    low, high = ends if n > 1 else (None, None)
    return {
        "setting": pair.point.setting,
        "p": pair.point.p,
        "method": pair.method,
        "against": pair.against,
        "n": n,
        "mean_regret": pair.mean,
        "against_regret": pair.other,
        "ratio": pair.mean / pair.other if pair.other else None,
        "difference": mean,
        "low": low,
        "high": high,
    }


# The page over all studies


def write_page(
    home: str | Path, report_on: Callable[[Path], Report], first: Sequence[str] = ()
) -> Path:
    """Write one page over all studies whose folders lie directly in a results folder.

    A folder belongs to a study if it has `manifest.json` and `summary.csv`. Those named in `first`
    come first. One that cannot be read is named on the page, with the reason. The same results
    give the same bytes.

    Raises
    ------
    StoreError
        There is no study in the folder.
    """
    home = Path(home)
    folders = study_folders(home, first)
    if not folders:
        raise StoreError(
            f"there are no results in {home}: run `halfseen reproduce synthetic` first"
        )
    reports: list[Report] = []
    unread: list[tuple[str, str]] = []
    for folder in folders:
        try:
            reports.append(report_on(folder))
        except (HalfseenError, OSError) as error:
            unread.append((folder.name, str(error)))
    versions: dict[str, Any] = {}
    for report in reports:
        versions |= report.results.manifest.get("versions") or {}
    page = home / "index.html"
    text = render(
        HTML,
        reports=reports,
        unread=unread,
        versions=versions,
        style=Markup((Path(__file__).parent / "assets" / "style.css").read_text(encoding="utf-8")),
        counts=count_outcomes(verdict for report in reports for verdict in report.verdicts),
    )
    page.write_text(text, encoding="utf-8")
    return page


def study_folders(home: Path, first: Sequence[str] = ()) -> list[Path]:
    """Return the folders of studies in a results folder, in the order of the page."""
    found = sorted(file.parent for file in home.glob("*/manifest.json"))
    found = [folder for folder in found if (folder / "summary.csv").exists()]
    known = [home / name for name in first if home / name in found]
    return known + [folder for folder in found if folder not in known]


# Verdicts

OUTCOMES = ("holds", "fails", "differs", "undecided", "vacuous", "too small to judge", "not run")
"""All possible verdicts on a claim."""


def count_outcomes(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return the number of verdicts with each outcome that occurs."""
    outcomes = [verdict.outcome for verdict in verdicts]
    return {outcome: n for outcome in OUTCOMES if (n := outcomes.count(outcome))}


# Templates

MARKDOWN, PUBLISHED = "report.md.j2", "published.md.j2"
CLAIMS, HTML, TABLE = "claims.md.j2", "index.html.j2", "final.md.j2"
"""The templates."""

_MARKDOWN = re.compile(
    r"[\\`*|~$]"  # everywhere
    r"|(?<![^\W_])_|_(?![^\W_])"  # at the edge of a word; inside, it is only a character
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)"  # HTML
    r"|\](?=[(\[:])|!(?=\[)"  # links and images
    r"|^[#>+-](?=\s)"  # headings, quotes and lists
)
_ROUNDING = 1e-6  # a smaller difference of two regrets is due to rounding
_SPACE = re.compile(r"\s+")
_CODE = re.compile(r"`([^`]+)`")


def render(template: str, **context: Any) -> str:
    """Return a template filled with a context."""
    return _environment(template).get_template(template).render(**context)


def markdown_text(text: str) -> str:
    r"""Escape a string for Markdown, including inside a table.

    >>> print(markdown_text("A & B <i>_x_|y% $z$, d_1 < 2 [0, 1]"))
    A & B \<i>\_x\_\|y% \$z\$, d_1 < 2 [0, 1]
    """
    return _MARKDOWN.sub(lambda found: "\\" + found[0], _SPACE.sub(" ", text))


def counted(outcome: str, n: int) -> str:
    """Return how many verdicts have an outcome, as a string.

    >>> counted("holds", 2), counted("holds", 1), counted("undecided", 5)
    ('2 hold', '1 holds', '5 undecided')
    """
    plural = {"holds": "hold", "fails": "fail", "differs": "differ"}.get(outcome, outcome)
    return f"{n} {outcome if n == 1 else plural}"


@cache
def _environment(template: str) -> Environment:
    """Return the environment of a template: how it escapes, and its filters."""

    def safe(value: Any) -> Any:
        if hasattr(value, "__html__"):
            return value
        return escape(str(value)) if template == HTML else Markup(markdown_text(str(value)))

    def prose(text: str) -> Markup:
        """Return the string with `words` between backticks as code."""
        parts = [code(part) if at % 2 else safe(part) for at, part in enumerate(_CODE.split(text))]
        return Markup("".join(parts))

    def code(text: str) -> Markup:
        return Markup(f"<code>{escape(text)}</code>" if template == HTML else f"`{text}`")

    environment = Environment(
        loader=PackageLoader("halfseen.report"),
        autoescape=True,  # `safe` has already escaped what is shown; this keeps macros as they are
        finalize=safe,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "label": label_of,
        "mean": lambda mean, digits=3: format_mean(Mean(*mean), digits),
        "ranges": seed_ranges,
        "prose": prose,
        "code": code,
        "url": lambda text: Markup(quote(text)),
        "minus": lambda text: text.replace("-", "−"),
        "number": number,
        "counted": counted,
        "outcomes": count_outcomes,
        "deviation": lambda size: "rounding" if size < _ROUNDING else number(size, 2),
        "plain": lambda text: text.replace("`", ""),
    }
    return environment
