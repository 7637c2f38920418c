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
    leads = [(pair, lead) for pair in pairs if (lead := _lead(case, pair, claim)) is not None]
    found = {pair.point for pair, _ in leads}
    missing = [
        Finding(NOT_RUN, str(point), "no common seeds") for point in points if point not in found
    ]
    if claim.average:
        return ([_on_average(leads, claim)] if leads else []) + missing
    return [_at_a_point(pair, lead, claim, _where(pair, pairs)) for pair, lead in leads] + missing


def _lead(case: Case, pair: Compared, claim: ComparedClaim) -> float | None:
    """Return by how much the other method is ahead; None where that was not run."""
    behind = case.results.regrets(pair.point, claim.lead_over)
    behind = behind[behind.index.isin(pair.seeds)]
    return float(behind.mean()) - pair.other if len(behind) == pair.n else None


def _where(pair: Compared, pairs: list[Compared]) -> str:
    several = len({each.method for each in pairs}) > 1
    words = [str(pair.point), label_of(pair.method) if several else ""]
    return ", ".join(word for word in words if word)


def _at_a_point(pair: Compared, lead: float, claim: ComparedClaim, where: str) -> Finding:
    """Check that a difference is no larger than allowed."""
    numbers = (
        f"{pair.mean:.4g} against {pair.other:.4g} of {label_of(pair.against)}, "
        f"difference {pair.text} over {pair.n} seeds"
    )
    if math.isnan(pair.error):
        return Finding(UNDECIDED, where, numbers, pair.n)
    allowed = max(STANDARD_ERRORS * pair.error, claim.margin * lead)
    outcome = HOLDS if pair.difference <= allowed else FAILS
    return Finding(outcome, where, f"{numbers} (at most +{allowed:.3g} allowed)", pair.n)


def _on_average(leads: list[tuple[Compared, float]], claim: ComparedClaim) -> Finding:
    """Check that the mean of the differences, as shares of the leads, is below 0."""
    n_seeds = min(pair.n for pair, _ in leads)
    behind = [pair.point for pair, lead in leads if lead <= 0]
    if behind:
        text = f"the other method has no lead over {label_of(claim.lead_over)}"
        return Finding(UNDECIDED, ", ".join(map(str, behind)), text, n_seeds)
    share = sum(pair.difference / lead for pair, lead in leads) / len(leads)
    error = math.sqrt(sum((pair.error / lead) ** 2 for pair, lead in leads)) / len(leads)
    mean = Mean(100 * share, None if math.isnan(error) else 100 * error)
    outcome = {-1: HOLDS, 1: FAILS}.get(side_of(mean) or 0, UNDECIDED)
    text = f"in % of the lead over {label_of(claim.lead_over)}, over {len(leads)} points"
    return Finding(outcome, "", f"mean difference {format_mean(mean)} {text}", n_seeds)
