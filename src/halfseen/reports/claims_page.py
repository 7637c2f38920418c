"""One table of all claims of the paper with their verdicts, from results on disk."""

from pathlib import Path
from typing import NamedTuple

from halfseen.reports.claims import verdicts_on
from halfseen.reports.data import Results
from halfseen.reports.render import CLAIMS, render, seed_ranges
from halfseen.reports.verdicts import NOT_RUN, Verdict, count_outcomes
from halfseen.studies.builtin import BEYOND_PAPER, ORDER, builtin_study
from halfseen.studies.spec import Study

PAST_PAPER = "Past the paper"
"""How the text of a claim begins that the paper does not make."""


class StudyClaims(NamedTuple):
    """The claims of the paper in a study, and on which run they were judged."""

    study: Study
    run: str
    verdicts: list[Verdict]


def paper_claims(study: Study) -> list[str]:
    """Return the texts of all claims of a study that the paper makes."""
    return [claim.text for claim in study.claims if not claim.text.startswith(PAST_PAPER)]


def write_claims(results: str | Path, path: str | Path) -> dict[str, int]:
    """Write all claims of the paper with verdicts and numbers, and return how many have which.

    Parameters
    ----------
    results : path
        Holds the folders of studies, as `halfseen reproduce all` leaves them. The claims of a study
        without a folder are listed as not run.
    path : path
        The Markdown file to write.

    Raises
    ------
    StoreError
        A table of a folder is damaged.
    """
    names = [name for name in ORDER if name not in BEYOND_PAPER]
    found = [_judged(builtin_study(name), Path(results) / name) for name in names]
    counts = count_outcomes(verdict for each in found for verdict in each.verdicts)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(render(CLAIMS, studies=found, counts=counts), encoding="utf-8")
    return counts


def _seeds(results: Results) -> str:
    """Return the seeds of most settings as text, and those of others with their settings."""
    by_seeds: dict[str, list[str]] = {}
    for setting, rows in results.per_seed.groupby("setting", sort=False):
        seeds = seed_ranges(sorted(rows["seed"].unique().tolist()))
        by_seeds.setdefault(seeds, []).append(str(setting))
    usual = max(by_seeds, key=lambda seeds: len(by_seeds[seeds]))
    others = [
        f"{seeds} for {' and '.join(names)}" for seeds, names in by_seeds.items() if seeds != usual
    ]
    return f"{usual} ({'; '.join(others)})" if others else usual


def _judged(study: Study, folder: Path) -> StudyClaims:
    wanted = paper_claims(study)
    if not (folder / "manifest.json").exists():
        kinds = {claim.text: claim.kind for claim in study.claims}
        missing = [Verdict(text, kinds[text], NOT_RUN, ()) for text in wanted]
        return StudyClaims(study, "not run", missing)
    results = Results.load(folder)
    version = results.manifest.get("versions", {}).get("halfseen", "?")
    scale = results.manifest.get("scale", "another")
    run = f"{scale} scale, seeds {_seeds(results)}, halfseen {version}"
    verdicts = [each for each in verdicts_on(study, results) if each.text in wanted]
    return StudyClaims(study, run, verdicts)
