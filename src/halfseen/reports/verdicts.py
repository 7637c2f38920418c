"""Outcomes of claims, at one point and over all points."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from halfseen.reports.words import number
from halfseen.simulation.tables import Mean, mean_of

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
TOO_SMALL, NOT_RUN = "too small to judge", "not run"
OUTCOMES = (HOLDS, FAILS, UNDECIDED, TOO_SMALL, NOT_RUN)
"""All possible verdicts."""

FEWEST_SEEDS = 3
"""With fewer seeds a mean is shown but not judged."""

RULE = (
    "Claims are judged at full scale, and claims about means only with three seeds or more; a "
    "smaller run is too small to judge. A difference counts if it is larger than two standard "
    "errors of the difference, seed by seed; anything smaller is undecided."
)
"""How a claim is judged, for readers of a report."""

# A standard error below this share of the mean is rounding.
_ROUNDING = 1e-12

STANDARD_ERRORS = 2.0
"""A difference counts when it is larger than this many of its standard errors."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the data say about a claim."""

    text: str  # the claim in words
    kind: str  # how it was checked
    outcome: str  # one of `OUTCOMES`
    findings: tuple[str, ...]  # the numbers behind it, one text per point

    @property
    def numbers(self) -> str:
        """All findings in one text."""
        return "; ".join(self.findings)


class Finding(NamedTuple):
    """What was found at one point: one of `OUTCOMES`, and the numbers behind it.

    `n_seeds` is None where every seed is judged by itself and no mean is taken.
    """

    outcome: str
    where: str
    numbers: str
    n_seeds: int | None = None

    def judged(self) -> "Finding":
        """Return the finding, too small to judge where it is a mean over too few seeds."""
        if self.n_seeds is None or self.n_seeds >= FEWEST_SEEDS or self.outcome == NOT_RUN:
            return self
        return self._replace(outcome=TOO_SMALL)

    def __str__(self) -> str:
        """Return place, numbers, and the outcome unless the claim holds."""
        text = f"{self.where}: {self.numbers}" if self.where else self.numbers
        return text if self.outcome == HOLDS else f"{text} ({self.outcome})"


def combine(findings: Sequence[Finding]) -> str:
    """Return the outcome over all points.

    One failure fails all; what was not run, or not decided, at some point leaves all undecided.
    A run that is too small everywhere decides nothing.

    >>> combine([Finding("holds", "p = 0.8", "1 < 2"), Finding("undecided", "p = 0.2", "1 < 1.1")])
    'undecided'
    """
    outcomes = {finding.outcome for finding in findings}
    if outcomes <= {NOT_RUN}:
        return NOT_RUN
    if FAILS in outcomes:
        return FAILS
    if outcomes <= {TOO_SMALL, NOT_RUN}:
        return TOO_SMALL
    return HOLDS if outcomes == {HOLDS} else UNDECIDED


def count_outcomes(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return the number of verdicts with each outcome that occurs."""
    outcomes = [verdict.outcome for verdict in verdicts]
    return {outcome: n for outcome in OUTCOMES if (n := outcomes.count(outcome))}


def counted(outcome: str, n: int) -> str:
    """Return how many verdicts have an outcome, as text.

    >>> counted("holds", 2), counted("holds", 1), counted("undecided", 5)
    ('2 hold', '1 holds', '5 undecided')
    """
    plural = {HOLDS: "hold", FAILS: "fail"}.get(outcome, outcome)
    return f"{n} {outcome if n == 1 else plural}"


def paired_difference(ours: "pd.Series[float]", theirs: "pd.Series[float]") -> tuple[Mean, int]:
    """Return mean and standard error of ours − theirs over common seeds, and their number."""
    difference = (ours - theirs).dropna()
    return mean_of(difference.tolist()), len(difference)


def side_of(difference: Mean) -> int | None:
    """Return −1, 0 or 1: clearly below zero, within two standard errors, clearly above.

    None where a single value has no standard error.

    >>> side_of(Mean(-3.0, 1.0)), side_of(Mean(1.0, 1.0)), side_of(Mean(1.0, None))
    (-1, 0, None)
    """
    mean, error = difference
    if mean is None or error is None or math.isnan(mean):
        return None
    if abs(mean) <= STANDARD_ERRORS * error:
        return 0
    return 1 if mean > 0 else -1


def format_mean(mean: Mean, digits: int = 3) -> str:
    """Return a mean and its standard error as text.

    >>> format_mean(Mean(-1265.4, 1.0)), format_mean(Mean(0.0123, None))
    ('−1,265 ± 1', '0.0123')
    """
    value = "–" if mean.mean is None else number(mean.mean, digits)
    error = mean.standard_error
    if error is None:
        return value
    is_rounding = error < _ROUNDING * abs(mean.mean or 0.0)
    return f"{value} ± {'0' if is_rounding else number(error, 2)}"
