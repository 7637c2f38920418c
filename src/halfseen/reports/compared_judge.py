"""How claims about a comparison are checked, at every point or on average over all of them."""

import math

from halfseen.reports.comparisons import Compared
from halfseen.reports.comparisons import compared as pairs_of
from halfseen.reports.judges import Case
from halfseen.reports.look import label_of
from halfseen.reports.verdicts import (
    FAILS,
    HOLDS,
    NOT_RUN,
    STANDARD_ERRORS,
    UNDECIDED,
    Finding,
    format_mean,
    side_of,
)
from halfseen.simulation.tables import Mean
from halfseen.studies.claims import ComparedClaim


def compared(case: Case, claim: ComparedClaim) -> list[Finding]:
    """Check a comparison at every point, or the mean of its differences."""
    (spec,) = (each for each in case.study.comparisons if each.name == claim.comparison)
    points = [
        point
        for point in case.points()
        if (spec.setting is None or point.setting in spec.setting)
        and (spec.p is None or point.p in spec.p)
    ]
    pairs = [pair for pair in pairs_of(case.study, case.results, spec) if pair.point in points]
    known = [(pair, base) for pair in pairs if (base := _base(case, pair, claim)) is not None]
    found = {pair.point for pair, _ in known}
    missing = [
        Finding(NOT_RUN, str(point), "no common seeds") for point in points if point not in found
    ]
    if claim.average:
        return ([_on_average(known, claim)] if known else []) + missing
    return [_at_a_point(pair, base, claim, _where(pair, pairs)) for pair, base in known] + missing


def _base(case: Case, pair: Compared, claim: ComparedClaim) -> float | None:
    """Return the mean regret of `lead_over` on the seeds of a pair; None if it was not run."""
    regrets = case.results.regrets(pair.point, claim.lead_over)
    regrets = regrets[regrets.index.isin(pair.seeds)]
    return float(regrets.mean()) if len(regrets) == pair.n else None


def _where(pair: Compared, pairs: list[Compared]) -> str:
    several = len({each.method for each in pairs}) > 1
    words = [str(pair.point), label_of(pair.method) if several else ""]
    return ", ".join(word for word in words if word)


def _at_a_point(pair: Compared, base: float, claim: ComparedClaim, where: str) -> Finding:
    """Check that a difference is no larger than allowed."""
    numbers = (
        f"{pair.mean:.4g} against {pair.other:.4g} of {label_of(pair.against)}, "
        f"difference {pair.text} over {pair.n} seeds"
    )
    if math.isnan(pair.error):
        return Finding(UNDECIDED, where, numbers, pair.n)
    allowed = max(STANDARD_ERRORS * pair.error, claim.margin * (base - pair.other))
    outcome = HOLDS if pair.difference <= allowed else FAILS
    return Finding(outcome, where, f"{numbers}, at most +{allowed:.3g} allowed", pair.n)


def _on_average(known: list[tuple[Compared, float]], claim: ComparedClaim) -> Finding:
    """Check that the mean of the differences, as shares of the regret of `lead_over`, is below 0.

    A share of the lead itself would be huge where the other method has hardly any.
    """
    n_seeds, n = min(pair.n for pair, _ in known), len(known)
    if any(base == 0 for _, base in known):
        text = f"the regret of {label_of(claim.lead_over)} is 0"
        return Finding(UNDECIDED, "", text, n_seeds)
    share = sum(pair.difference / base for pair, base in known) / n
    error = math.sqrt(sum((pair.error / base) ** 2 for pair, base in known)) / n
    mean = Mean(100 * share, None if math.isnan(error) else 100 * error)
    outcome = {-1: HOLDS, 1: FAILS}.get(side_of(mean) or 0, UNDECIDED)
    text = f"in % of the regret of {label_of(claim.lead_over)}, over {n} points"
    return Finding(outcome, "", f"mean difference {format_mean(mean)} {text}", n_seeds)
