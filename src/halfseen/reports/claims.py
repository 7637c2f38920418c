"""Which claims hold: every verdict is computed from the results."""

from collections.abc import Mapping

import pandas as pd

from halfseen.reports import judges
from halfseen.reports.compared_judge import compared
from halfseen.reports.data import Results
from halfseen.reports.judges import Case, Judge
from halfseen.reports.measured_judges import exponent, measured
from halfseen.reports.verdicts import NOT_RUN, TOO_SMALL, Verdict, combine
from halfseen.studies.spec import Study

SMOKE = "smoke"
"""The scale at which no claim is judged."""

JUDGES: Mapping[str, Judge] = {
    "lower": judges.lower,
    "regret": judges.regret,
    "rises": judges.rises,
    "rank": judges.rank,
    "exponent": exponent,
    "above-bound": judges.above_bound,
    "measured": measured,
    "compared": compared,
}
"""The function that checks each kind of claim."""


def verdicts_on(study: Study, results: Results) -> list[Verdict]:
    """Return a verdict on every claim of a study; `RULE` says how they are judged.

    A run of a part of the study is judged at the points that it has.
    """
    verdicts = []
    for claim in study.claims:
        if results.manifest.get("scale") == SMOKE:
            verdicts.append(Verdict(claim.text, claim.kind, TOO_SMALL, ("run at smoke scale",)))
            continue
        case = Case(study, results, claim)
        found = [finding.judged() for finding in JUDGES[claim.kind](case, claim)]
        outcome, texts = combine(found), [str(finding) for finding in found]
        left_out = case.points_left_out()
        if outcome == NOT_RUN:
            texts = ["nothing of it was run"]
        elif left_out:
            texts.append(f"not in this run: {', '.join(map(str, left_out))}")
        verdicts.append(Verdict(claim.text, claim.kind, outcome, tuple(texts)))
    return verdicts


def as_frame(verdicts: list[Verdict]) -> pd.DataFrame:
    """Return verdicts as a table: one row each, in order."""
    columns = ["text", "kind", "outcome", "numbers"]
    rows = [[getattr(verdict, column) for column in columns] for verdict in verdicts]
    return pd.DataFrame(rows, columns=columns).rename(columns={"outcome": "verdict"})
