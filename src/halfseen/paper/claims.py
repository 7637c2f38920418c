"""How a claim of the paper is judged: one function per kind of claim, and the page of verdicts.

A study's `claims(results)` returns what these functions found, a `Finding` at every point, by the
text of the claim; `judged` turns them into verdicts.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.report.figures import true_rank
from halfseen.report.look import label_of
from halfseen.report.numbers import (
    Comparison,
    Growth,
    Pair,
    difference,
    format_mean,
    growth_of,
    number,
    quantity,
    seed_ranges,
    words_for,
)
from halfseen.report.render import CLAIMS, render
from halfseen.report.report import Verdict, count_outcomes
from halfseen.simulation.results import Mean, Point, Results, mean_of
from halfseen.values import FloatArray

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
TOO_SMALL, NOT_RUN = "too small to judge", "not run"
_LEFT_OUT = "left out"  # of this run, on purpose

FEWEST_SEEDS = 3
"""With fewer seeds a mean is shown but not judged."""

STANDARD_ERRORS = 2.0
"""A difference counts when it is larger than this many of its standard errors."""

SMOKE = "smoke"
"""The scale at which no claim is judged."""

PAST_PAPER = "Past the paper"
"""How the text of a claim begins that the paper does not make."""

_ROUNDING = 1e-9  # a measured number is beyond zero or a bound only by more than this
_MOST_FAILURES_SHOWN = 5


class Finding(NamedTuple):
    """What was found at one point: an outcome, and the numbers behind it.

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


Claims = Mapping[str, list[Finding]]
"""What `claims(results)` of a study returns: findings by the text of the claim."""


class NotRunError(Exception):
    """What a check needs was not run; the message says what."""


def judged(claims: Claims, scale: str = "paper") -> list[Verdict]:
    """Return a verdict on every claim; nothing is judged at smoke scale."""
    if scale == SMOKE:
        return [Verdict(text, TOO_SMALL, ("run at smoke scale",)) for text in claims]
    return [_verdict(text, findings) for text, findings in claims.items()]


def _verdict(text: str, findings: Sequence[Finding]) -> Verdict:
    left_out = [each.where for each in findings if each.outcome == _LEFT_OUT]
    found = [finding.judged() for finding in findings if finding.outcome != _LEFT_OUT]
    outcome, texts = combine(found), [str(finding) for finding in found]
    if outcome == NOT_RUN:
        texts = ["nothing of it was run"]
    elif left_out:
        texts.append(f"not in this run: {', '.join(left_out)}")
    return Verdict(text, outcome, tuple(texts))


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


def side_of(mean: Mean) -> int | None:
    """Return −1, 0 or 1: clearly below zero, within two standard errors, clearly above.

    None where a single value has no standard error.

    >>> side_of(Mean(-3.0, 1.0)), side_of(Mean(1.0, 1.0)), side_of(Mean(1.0, None))
    (-1, 0, None)
    """
    if mean.mean is None or mean.standard_error is None or math.isnan(mean.mean):
        return None
    if abs(mean.mean) <= STANDARD_ERRORS * mean.standard_error:
        return 0
    return 1 if mean.mean > 0 else -1


# Where a claim is made

Names = str | Sequence[str] | None
Probs = Sequence[float] | None
Check = Callable[[Point], tuple[str, str, int | None]]
"""Looks at one point: returns outcome, numbers, and the number of seeds where it judges means."""


def _points(results: Results, methods: Sequence[str], setting: Names, p: Probs) -> list[Point]:
    """Return all points of a claim, whether this run has them or not.

    Where it lists no settings or probabilities, these are all in which its methods play.
    """
    names = [setting] if isinstance(setting, str) else setting
    if names is None:
        names = [
            name
            for name, each in results.settings.items()
            if all(method in each.methods for method in methods)
        ]
    if p is None:
        return [point for name in names for point in results.points([name])]
    return [Point(name, prob) for name in names for prob in p]


def _at_every_point(
    results: Results, check: Check, methods: Sequence[str], setting: Names, p: Probs
) -> list[Finding]:
    """Return what a check finds at every point of a claim."""
    known, findings = results.points(), []
    for point in _points(results, methods, setting, p):
        if point not in known:
            findings.append(Finding(_LEFT_OUT, str(point), ""))
            continue
        try:
            outcome, numbers, n_seeds = check(point)
            findings.append(Finding(outcome, str(point), numbers, n_seeds))
        except NotRunError as why:
            findings.append(Finding(NOT_RUN, str(point), str(why)))
    return findings


def _shared(results: Results, point: Point, *methods: str) -> list[list[float]]:
    """Return the regrets of methods on the seeds that all of them have."""
    found = [results.regrets(point, method) for method in methods]
    seeds = [seed for seed in found[0] if all(seed in each for each in found)]
    if not seeds:
        raise NotRunError("no common seeds" if len(methods) > 1 else "no regret")
    return [[each[seed] for seed in seeds] for each in found]


# Claims about regret


def lower(
    results: Results,
    method: str,
    than: str,
    *,
    setting: Names = None,
    p: Probs = None,
    or_equal: bool = False,
) -> list[Finding]:
    """Compare two methods seed by seed; a tie decides only where the regrets may be equal."""
    outcomes = {-1: HOLDS, 0: HOLDS if or_equal else UNDECIDED, 1: FAILS}

    def check(point: Point) -> tuple[str, str, int]:
        ours, theirs = _shared(results, point, method, than)
        found = mean_of([one - other for one, other in zip(ours, theirs, strict=True)])
        means = f"{number(float(np.mean(ours)))} against {number(float(np.mean(theirs)))}"
        numbers = f"{means}, difference {format_mean(found)} over {len(ours)} seeds"
        side = side_of(found)
        return UNDECIDED if side is None else outcomes[side], numbers, len(ours)

    return _at_every_point(results, check, (method, than), setting, p)


def within(
    results: Results,
    method: str,
    *,
    at_least: float | Sequence[float] | None = None,
    at_most: float | Sequence[float] | None = None,
    relative_to: str | None = None,
    setting: Names = None,
    p: Probs = None,
) -> list[Finding]:
    """Check that mean regret, or its ratio to that of another method, lies within limits.

    A limit is one number, or one number for each of the probabilities.
    """
    methods = (method,) if relative_to is None else (method, relative_to)

    def check(point: Point) -> tuple[str, str, int | None]:
        found = _shared(results, point, *methods)
        low, high = (_limit(each, point, p) for each in (at_least, at_most))
        means = [float(np.mean(regrets)) for regrets in found]
        if len(means) > 1 and means[1] == 0:
            return UNDECIDED, "the other regret is 0", None
        value = means[0] if len(means) == 1 else means[0] / means[1]
        text = format_mean(mean_of(found[0]))
        if len(means) > 1:
            text = f"{number(means[0], 4)} / {number(means[1], 4)} = {value:.3f}"
        inside = (low is None or low <= value) and (high is None or value <= high)
        numbers = f"{text} ({_interval(low, high)} claimed)"
        return HOLDS if inside else FAILS, numbers, len(found[0])

    return _at_every_point(results, check, methods, setting, p)


def _limit(limit: float | Sequence[float] | None, point: Point, probs: Probs) -> float | None:
    if limit is None or isinstance(limit, int | float):
        return limit
    assert probs is not None
    return dict(zip(probs, limit, strict=True))[point.p]  # type: ignore[index]


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"at most {high:g}" if low is None else f"at least {low:g}"
    return f"{low:g} to {high:g}"


def rises(
    results: Results, method: str, *, minus: str | None = None, setting: Names = None
) -> list[Finding]:
    """Check that regret, or a gap between two, rises with every step from much seen to less."""
    settings, findings = list(results.settings), []
    falling = sorted(
        _points(results, (method,), setting, None),
        key=lambda point: (settings.index(point.setting), -(point.p or 0.0)),
    )
    for before, after in itertools.pairwise(falling):
        if before.setting != after.setting or after.p is None:
            continue
        more, less = (
            quantity(results, point, method, minus=minus, value=None) for point in (after, before)
        )
        where = f"{after} after {before.p:g}"
        step = mean_of(list(difference(more, less).values()))
        if step.mean is None:
            findings.append(Finding(NOT_RUN, where, "no common seeds"))
            continue
        outcome = {-1: FAILS, 1: HOLDS}.get(side_of(step) or 0, UNDECIDED)
        means = " → ".join(number(float(np.mean(list(each.values())))) for each in (less, more))
        text = f"{means}, {'+' if step.mean > 0 else ''}{format_mean(step)}"
        findings.append(Finding(outcome, where, text, len(difference(more, less))))
    return findings


def above_bound(
    results: Results,
    bound: Callable[[Point], float | None],
    methods: Sequence[str],
    *,
    most: float = math.inf,
    setting: Names = None,
    p: Probs = None,
) -> list[Finding]:
    """Check that mean regret plus two standard errors reaches a lower bound everywhere.

    Regret less two standard errors must not be above `most` times the bound. The findings are the
    failures, and otherwise the place that comes closest to the bound.
    """
    known, missing = results.points(), 0
    found: list[tuple[float, Finding]] = []
    left_out = []
    for point in _points(results, (), setting, p):
        if point not in known:
            left_out.append(Finding(_LEFT_OUT, str(point), ""))
            continue
        least = bound(point)
        played = results.settings[point.setting].methods
        for method in (key for key in methods if key in played and least is not None):
            regrets = list(results.regrets(point, method).values())
            mean = mean_of(regrets)
            if mean.mean is None:
                missing += 1
                continue
            assert least is not None
            slack = STANDARD_ERRORS * (mean.standard_error or 0.0)
            holds = mean.mean + slack >= least and mean.mean - slack <= most * least
            factor = f"{number(mean.mean / least)} times the bound"
            numbers = f"{format_mean(mean)} against {number(least)}, {factor}"
            where, outcome = f"{label_of(method)}, {point}", HOLDS if holds else FAILS
            finding = Finding(outcome, where, numbers, len(regrets)).judged()
            found.append((mean.mean / least, finding))
    absent = left_out + ([Finding(NOT_RUN, "", f"{missing} more")] if missing else [])
    if not found:
        return absent or [Finding(UNDECIDED, "", "the bound applies nowhere")]
    found.sort(key=lambda pair: pair[0])
    return _in_short([finding for _, finding in found]) + absent


def _in_short(findings: list[Finding]) -> list[Finding]:
    """Return what did not hold, or what came closest to it; `findings` come closest first."""
    bad = [finding for finding in findings if finding.outcome != HOLDS]
    if not bad:
        closest = findings[0]
        text = f"{closest.where}: {closest.numbers} is the closest of {len(findings)}"
        return [Finding(HOLDS, "", text)]
    shown = bad[:_MOST_FAILURES_SHOWN]
    more = f", and {len(bad) - len(shown)} more" if len(bad) > len(shown) else ""
    total = f"{len(bad)} of {len(findings)} do not hold{more}"
    worst = FAILS if any(finding.outcome == FAILS for finding in bad) else bad[0].outcome
    return [*shown, Finding(worst, "", total)]


# Claims about ranks


def final_rank(
    results: Results, method: str, *, tolerance: float = 0.0, below: bool = False
) -> list[Finding]:
    """Check that the mean final rank is near the true one, or clearly below it."""

    def check(point: Point) -> tuple[str, str, int | None]:
        ranks = results.final_ranks(point, method)
        final = mean_of(ranks)
        if final.mean is None:
            raise NotRunError("no final rank")
        true = true_rank(results, point)
        if true is None:
            return UNDECIDED, "the world does not know its rank", None
        numbers = f"mean rank {format_mean(final)}, true rank {true}"
        away = final.mean - true
        if below:
            side = side_of(Mean(away, final.standard_error)) or 0
            return {-1: HOLDS, 1: FAILS}.get(side, UNDECIDED), numbers, len(ranks)
        return HOLDS if abs(away) <= tolerance else FAILS, numbers, len(ranks)

    return _at_every_point(results, check, (method,), None, None)


def eigengap(results: Results, method: str) -> list[Finding]:
    """Check that the largest gap of the mean spectrum is after the true rank."""

    def check(point: Point) -> tuple[str, str, int | None]:
        spectra = results.diagnostic(point, method, "eigenvalues")
        if not spectra:
            raise NotRunError("no spectrum")
        positions = sorted({position for each in spectra.values() for position in each})
        means = [
            float(np.mean([each[at] for each in spectra.values() if at in each]))
            for at in positions
        ]
        true = true_rank(results, point)
        if true is None:
            return UNDECIDED, "the world does not know its rank", None
        if len(means) <= true:
            return UNDECIDED, f"rank {true}, but {len(means)} eigenvalues are known", None
        gaps = [high - low for high, low in itertools.pairwise(means)]
        others = [gap for index, gap in enumerate(gaps, start=1) if index != true]
        numbers = f"gap {number(gaps[true - 1])} after position {true}"
        if others:
            numbers += f", the largest other one is {number(max(others))}"
        return HOLDS if gaps.index(max(gaps)) + 1 == true else FAILS, numbers, len(spectra)

    return _at_every_point(results, check, (method,), None, None)


# Claims about exponents


def exponent(
    results: Results,
    method: str,
    over: str = "horizon",
    *,
    minus: str | None = None,
    value: str | None = None,
    settings: Sequence[str] | None = None,
    p: float | None = None,
    near: tuple[float, float] | None = None,
    at_most: float | None = None,
    at_least: float | None = None,
) -> list[Finding]:
    """Check the 95 % interval of an exponent: a limit, or `near` a number up to a tolerance.

    The other parameters are those of `growth_of`.
    """
    found = growth_of(results, method, over, minus=minus, value=value, settings=settings, p=p)
    letter = words_for(over)[0]
    if found is None:
        return [Finding(NOT_RUN, "", f"fewer than two values of {letter}")]
    first, last = found.numbers[0], found.numbers[-1]
    text = f"exponent {found} over {letter} from {first:g} to {last:g}".replace("-", "−")
    outcome = _of_interval(found, near, at_most, at_least)
    findings = [Finding(outcome, "", text, found.n_seeds)]
    n_settings = sum(method in setting.methods for setting in results.settings.values())
    if over == "horizon" and n_settings > len(found.numbers):
        missing = f"{n_settings - len(found.numbers)} more horizons"
        findings.append(Finding(NOT_RUN, "", missing))
    return findings


def _of_interval(
    growth: Growth,
    near: tuple[float, float] | None,
    at_most: float | None,
    at_least: float | None,
) -> str:
    """Tell whether an interval ends below a limit, or meets a number to its tolerance."""
    if math.isnan(growth.low):
        return UNDECIDED
    if at_most is not None:
        if growth.high <= at_most:
            return HOLDS
        return FAILS if growth.low > at_most else UNDECIDED
    if at_least is not None:
        if growth.low >= at_least:
            return HOLDS
        return FAILS if growth.high < at_least else UNDECIDED
    assert near is not None
    value, tolerance = near
    meets = growth.low <= value + tolerance and growth.high >= value - tolerance
    return HOLDS if meets else FAILS


def slope(
    results: Results,
    method: str,
    value: str,
    x: str,
    *,
    near: tuple[float, float],
    setting: Names = None,
    p: Probs = None,
) -> list[Finding]:
    """Check the mean exponent of a diagnostic as another one grows: near a number."""
    expected, tolerance = near

    def check(point: Point) -> tuple[str, str, None]:
        values, places = _measured(results, point, method, value, x)
        slopes = mean_of([_slope(at, each) for at, each in zip(places, values, strict=True)])
        assert slopes.mean is not None
        holds = abs(slopes.mean - expected) <= tolerance
        numbers = f"slope {format_mean(slopes)} ({expected:g} ± {tolerance:g} claimed)"
        return HOLDS if holds else FAILS, numbers.replace("-", "−"), None

    return _at_every_point(results, check, (method,), setting, p)


def _slope(x: FloatArray, value: FloatArray) -> float:
    if (x <= 0).any() or (value <= 0).any():
        return math.nan
    return float(np.polyfit(np.log(x), np.log(value), 1)[0])


# Claims about diagnostics

_RELATIONS: Mapping[str, Callable[[FloatArray, FloatArray, FloatArray], NDArray[np.bool_]]] = {
    "at most": lambda value, other, rounding: value <= other + rounding,
    "at least": lambda value, other, rounding: value >= other - rounding,
    "equal to": lambda value, other, rounding: np.abs(value - other) <= rounding,
    "below": lambda value, other, rounding: value < other - rounding,
    "above": lambda value, other, rounding: value > other,
}
_CALLED = {
    "observe_prob": "p",
    "failure_prob": "δ",
    "far_rank_length": "t_rank",
    "floor": "the floor",
    "imputation_bound_actual": "the bound at the measured distance",
    "surrogate_bound_actual": "the bound at the measured distance",
    "squared_widths_bound": "twice the potential",
    "reestimated_potential_sum": "the potential bound",
    "lemma_bound": "the bound of the lemmas",
    "theorem_bound": "the bound of the theorem",
}


def measured(
    results: Results,
    method: str,
    value: str,
    relation: str,
    to: str | None = None,
    *,
    at_end: bool = False,
    setting: Names = None,
    p: Probs = None,
) -> list[Finding]:
    """Compare a diagnostic with another one, or with 0, in every seed.

    The relation ("at most", "at least", "equal to", "below", "above") holds at all positions, or
    at the last one. Points at which one of them was not measured are not run.
    """

    def check(point: Point) -> tuple[str, str, None]:
        values, *others = _measured(results, point, method, value, *([to] if to else []))
        bounds = others[0] if others else np.zeros_like(values)
        if at_end:
            values, bounds = values[:, -1:], bounds[:, -1:]
        holds = _RELATIONS[relation](values, bounds, _ROUNDING * (1 + np.abs(bounds)))
        if at_end:
            ends = " against ".join(
                format_mean(mean_of(e[:, 0].tolist())) for e in (values, bounds)
            )
            numbers = (
                f"{ends} at the end, {relation} it in {int(holds.sum())} of {len(holds)} seeds"
            )
        else:
            other = _CALLED.get(to, to.replace("_", " ")) if to else "0"
            words = f"{relation} {other} {_how_often(holds)}"
            numbers = f"{words}, {_room(values, bounds, to is None)}"
        return HOLDS if holds.all() else FAILS, numbers.replace("-", "−"), None

    return _at_every_point(results, check, (method,), setting, p)


def _measured(results: Results, point: Point, method: str, *names: str) -> list[FloatArray]:
    """Return diagnostics at the seeds and positions that all of them have, (seeds, positions)."""
    tables = [results.diagnostic(point, method, name) for name in names]
    seeds = sorted(set.intersection(*(set(table) for table in tables)))
    rows = [table[seed] for table in tables for seed in seeds]
    positions = sorted(set.intersection(*(set(row) for row in rows))) if rows else []
    if not positions:
        raise NotRunError("not measured")
    return [np.array([[table[seed][at] for at in positions] for seed in seeds]) for table in tables]


def _how_often(holds: NDArray[np.bool_]) -> str:
    """Return at how many positions something holds, and in how many seeds at all of them."""
    n_holds, n_seeds = int(holds.sum()), int(holds.all(axis=1).sum())
    if n_holds == holds.size:
        return f"at all {holds.size} positions"
    return f"at {n_holds} of {holds.size} positions, throughout in {n_seeds} of {len(holds)} seeds"


def _room(value: FloatArray, bound: FloatArray, from_zero: bool) -> str:
    """Return how far a value is from what it is compared with, as a string."""
    if from_zero:
        low, high, mean = (number(float(e)) for e in (value.min(), value.max(), value.mean()))
        return f"from {low} to {high}, {mean} on average"
    ratios = np.divide(bound, value, out=np.full_like(bound, math.nan), where=value > 0)
    if np.isnan(ratios).all():
        return "the value is never above 0"
    last = ratios[:, -1]
    at_last = (
        "" if np.isnan(last).all() else f", {number(float(np.nanmean(last)))} times at the end"
    )
    low, high = number(np.nanmin(ratios)), number(np.nanmax(ratios))
    return f"which is {low} to {high} times the value{at_last}"


# Claims about comparisons


def no_worse(
    results: Results, comparison: Comparison, *, than: str, margin: float
) -> list[Finding]:
    """Check that at every point a difference is at most two standard errors.

    Allowed is also `margin` times the lead of the other method over the method `than`.
    """
    pairs = comparison.pairs

    def finding(pair: Pair, base: float) -> Finding:
        several = len({each.method for each in pairs}) > 1
        words = [str(pair.point), label_of(pair.method) if several else ""]
        where = ", ".join(word for word in words if word)
        numbers = (
            f"{pair.mean:.4g} against {pair.other:.4g} of {label_of(pair.against)}, "
            f"difference {pair.text} over {pair.n} seeds"
        )
        if math.isnan(pair.error):
            return Finding(UNDECIDED, where, numbers, pair.n)
        allowed = max(STANDARD_ERRORS * pair.error, margin * (base - pair.other))
        outcome = HOLDS if pair.difference <= allowed else FAILS
        return Finding(outcome, where, f"{numbers}, at most +{allowed:.3g} allowed", pair.n)

    known = _with_base(results, comparison, than)
    return [finding(*each) for each in known] + _absent(known, comparison)


def better_on_average(results: Results, comparison: Comparison, *, than: str) -> list[Finding]:
    """Check that the mean of the differences, as shares of the regret of `than`, is below 0.

    A share of the lead over it would be huge where the other method has hardly any.
    """
    known = _with_base(results, comparison, than)
    if not known:
        return _absent(known, comparison)
    n_seeds, n = min(pair.n for pair, _ in known), len(known)
    if any(base == 0 for _, base in known):
        text = f"the regret of {label_of(than)} is 0"
        return [Finding(UNDECIDED, "", text, n_seeds), *_absent(known, comparison)]
    share = sum(pair.difference / base for pair, base in known) / n
    error = math.sqrt(sum((pair.error / base) ** 2 for pair, base in known)) / n
    mean = Mean(100 * share, None if math.isnan(error) else 100 * error)
    outcome = {-1: HOLDS, 1: FAILS}.get(side_of(mean) or 0, UNDECIDED)
    text = f"in % of the regret of {label_of(than)}, over {n} points"
    finding = Finding(outcome, "", f"mean difference {format_mean(mean)} {text}", n_seeds)
    return [finding, *_absent(known, comparison)]


def _with_base(results: Results, comparison: Comparison, than: str) -> list[tuple[Pair, float]]:
    """Return pairs with the mean regret of a method on their seeds, where it was run on all."""
    found = []
    for pair in comparison.pairs:
        regrets = results.regrets(pair.point, than)
        if all(seed in regrets for seed in pair.seeds):
            found.append((pair, float(np.mean([regrets[seed] for seed in pair.seeds]))))
    return found


def _absent(known: Sequence[tuple[Pair, float]], comparison: Comparison) -> list[Finding]:
    found = {pair.point for pair, _ in known}
    missing = [point for point in comparison.points if point not in found]
    return [Finding(NOT_RUN, str(point), "no common seeds") for point in missing]


# The page of all verdicts


class StudyClaims(NamedTuple):
    """The claims of the paper in a study, and on which run they were judged."""

    name: str
    title: str
    run: str
    verdicts: list[Verdict]


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
    from halfseen.paper.studies import BEYOND_PAPER, ORDER  # they import this module

    names = [name for name in ORDER if name not in BEYOND_PAPER]
    found = [_of_study(name, Path(results) / name) for name in names]
    counts = count_outcomes(verdict for each in found for verdict in each.verdicts)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(render(CLAIMS, studies=found, counts=counts), encoding="utf-8")
    return counts


def _of_study(name: str, folder: Path) -> StudyClaims:
    from halfseen.paper.studies import study_named

    study = study_named(name)
    if (folder / "manifest.json").exists():
        results = Results.load(folder, study.places())
        version = results.manifest.get("versions", {}).get("halfseen", "?")
        scale = results.manifest.get("scale", "another")
        run = f"{scale} scale, seeds {_seeds(results)}, halfseen {version}"
    else:
        results, scale, run = study.no_results(folder), "paper", "not run"
    claims = {
        text: findings
        for text, findings in study.claims(results).items()
        if not text.startswith(PAST_PAPER)
    }
    return StudyClaims(name, study.title, run, judged(claims, scale))


def _seeds(results: Results) -> str:
    """Return the seeds of most settings as a string, and those of others with their settings."""
    by_setting: dict[str, set[int]] = {}
    for row in results.per_seed:
        by_setting.setdefault(row["setting"], set()).add(row["seed"])
    by_seeds: dict[str, list[str]] = {}
    for setting, seeds in by_setting.items():
        by_seeds.setdefault(seed_ranges(sorted(seeds)), []).append(setting)
    usual = max(by_seeds, key=lambda seeds: len(by_seeds[seeds]))
    others = [
        f"{seeds} for {' and '.join(names)}" for seeds, names in by_seeds.items() if seeds != usual
    ]
    return f"{usual} ({'; '.join(others)})" if others else usual
