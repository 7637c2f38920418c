"""How a claim is judged: one function per kind of claim, and the page of verdicts.

A study's `claims(results)` lists what is claimed, by the place in the paper that claims it, or
`OURS` or `BEYOND`. Each function below looks at the results and returns a `Check`: a `Finding` at
every point, and what would have made it fail. `judged` turns claims into verdicts.

Means over seeds are judged by Student's 95 % interval. A claim holds where the whole interval is
within the claimed limits, fails where all of it is outside, and is undecided otherwise.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from halfseen.report.figures import Keys, keys_of
from halfseen.report.look import label_of
from halfseen.report.numbers import (
    Comparison,
    Interval,
    difference,
    growth_of,
    number,
    seed_ranges,
    words_for,
)
from halfseen.report.report import CLAIMS, Verdict, count_outcomes, render
from halfseen.simulation.results import Point, Results
from halfseen.theory import Problem, trivial_regret_bound
from halfseen.values import FloatArray

HOLDS, FAILS, UNDECIDED, VACUOUS = "holds", "fails", "undecided", "vacuous"
DIFFERS = "differs"
TOO_SMALL, NOT_RUN = "too small to judge", "not run"
_LEFT_OUT = "left out"  # of this run, on purpose

OURS, BEYOND = "our own test of the paper", "beyond the paper"
"""Where a claim stands that the paper does not make."""

FEWEST_SEEDS = 3
"""With fewer seeds a mean is shown but not judged."""

SMOKE = "smoke"
"""The scale at which no claim is judged."""

_ROUNDING = 1e-9  # a measured number is beyond a bound only by more than this


class Finding(NamedTuple):
    """What was found at one point: an outcome, and the numbers behind it.

    `n_seeds` is None where every seed is judged by itself and no mean is taken.
    """

    outcome: str
    numbers: str = ""
    n_seeds: int | None = None
    where: str = ""

    def judged(self) -> "Finding":
        """Return the finding, too small to judge where it is a mean over too few seeds."""
        if self.n_seeds is None or self.n_seeds >= FEWEST_SEEDS or self.outcome == NOT_RUN:
            return self
        return self._replace(outcome=TOO_SMALL)

    def __str__(self) -> str:
        """Return place, numbers, and the outcome unless the claim holds."""
        text = f"{self.where}: {self.numbers}" if self.where else self.numbers
        return text if self.outcome == HOLDS else f"{text} ({self.outcome})"


class Check(NamedTuple):
    """What was found at every point of a claim, and what would have made it fail.

    `failed` is the verdict if it did: `DIFFERS` where no outcome could contradict the paper.
    """

    findings: list[Finding]
    fails_if: str
    failed: str = FAILS


Claims = Mapping[str, Mapping[str, Check]]
"""What `claims(results)` of a study returns: by place (of the paper, `OURS`, `BEYOND`), by text."""


class NotRunError(Exception):
    """What a check needs was not run; the message says what."""


def judged(claims: Claims, scale: str = "paper") -> list[Verdict]:
    """Return a verdict on every claim; nothing is judged at smoke scale."""
    return [
        _verdict(place, text, check, scale)
        for place, checks in claims.items()
        for text, check in checks.items()
    ]


def _verdict(place: str, text: str, check: Check, scale: str) -> Verdict:
    if scale == SMOKE:
        return Verdict(text, TOO_SMALL, ("run at smoke scale",), place, check.fails_if)
    left_out = [each.where for each in check.findings if each.outcome == _LEFT_OUT]
    found = [finding.judged() for finding in check.findings if finding.outcome != _LEFT_OUT]
    named = {FAILS: check.failed}
    texts = [str(each._replace(outcome=named.get(each.outcome, each.outcome))) for each in found]
    outcome = named.get(outcome := combine(found), outcome)
    if outcome == NOT_RUN:
        texts = ["none of it was run"]
    elif left_out:
        texts.append(f"not in this run: {', '.join(left_out)}")
    return Verdict(text, outcome, tuple(texts), place, check.fails_if)


def combine(findings: Sequence[Finding]) -> str:
    """Return the outcome over all points.

    One failure fails all; what was not run, or not decided, at some point leaves all undecided.
    Points where a bound says nothing do not count, unless that is all of them. A run that is too
    small everywhere decides nothing.

    >>> combine([Finding("holds", "1 < 2"), Finding("undecided", "1 < 1.1")])
    'undecided'
    """
    outcomes = {finding.outcome for finding in findings}
    if FAILS in outcomes:
        return FAILS
    kinds = ({NOT_RUN}, {TOO_SMALL, NOT_RUN}, {VACUOUS}, {HOLDS, VACUOUS})
    names = (NOT_RUN, TOO_SMALL, VACUOUS, HOLDS)
    return next(
        (name for name, kind in zip(names, kinds, strict=True) if outcomes <= kind), UNDECIDED
    )


def judge(found: Interval, at_least: float = -math.inf, at_most: float = math.inf) -> str:
    """Return whether an interval is inside of limits (holds), outside (fails), or across one.

    The ends of an interval are NaN for a single seed, which decides nothing.

    >>> judge(Interval(-3.0, -4.0, -2.0, 9), at_most=0), judge(Interval(0, 0, 0, 9), at_most=0)
    ('holds', 'undecided')
    """
    if at_least < found.low and found.high < at_most:
        return HOLDS
    return FAILS if found.high < at_least or found.low > at_most else UNDECIDED


# Where a claim is made

Names = str | Sequence[str] | None
Probs = Sequence[float] | None


def _everywhere(
    results: Results,
    check: Callable[..., Finding | None],
    *methods: Keys,
    setting: Names = None,
    p: Probs = None,
) -> list[Finding]:
    """Return what a check finds at every point, for each of the methods, or each pair of them.

    A check returns None where its claim says nothing. Where a claim lists no settings or
    probabilities, these are all in which its methods play.
    """
    known, findings = results.points(), []
    tuples = list(itertools.product(*map(keys_of, methods)))
    for keys in tuples:
        names = [setting] if isinstance(setting, str) else setting
        if names is None:
            found = results.settings.items()
            names = [name for name, each in found if each.methods.keys() >= {*keys}]
        listed = [Point(name, prob) for name in names for prob in p or ()]
        for point in listed if p is not None else results.points(names):
            labels = [label_of(key) for key in keys] if len(tuples) > 1 else []
            where = ", ".join(filter(None, [*labels, str(point)]))
            try:
                finding = check(point, *keys) if point in known else Finding(_LEFT_OUT)
            except NotRunError as why:
                finding = Finding(NOT_RUN, str(why))
            if finding is not None:
                findings.append(finding._replace(where=where))
    return findings


def _shared(results: Results, point: Point, *methods: str) -> FloatArray:
    """Return the regrets of methods on the seeds that all of them have, (methods, seeds)."""
    found = [results.regrets(point, method) for method in methods]
    seeds = [seed for seed in found[0] if all(seed in each for each in found)]
    if not seeds:
        raise NotRunError("no common seeds" if len(methods) > 1 else "no regret")
    return np.array([[each[seed] for seed in seeds] for each in found])


# Claims about regret


def lower(
    results: Results, methods: Keys, than: Keys, *, setting: Names = None, p: Probs = None
) -> Check:
    """Check that each method has lower regret than each of the others, seed by seed."""

    def check(point: Point, method: str, other: str) -> Finding:
        ours, theirs = _shared(results, point, method, other)
        found = Interval.of(ours - theirs)
        means = f"{number(ours.mean())} against {number(theirs.mean())}"
        numbers = f"{means}, difference {found} over {found.n} seeds"
        return Finding(judge(found, at_most=0), numbers, found.n)

    findings = _everywhere(results, check, methods, than, setting=setting, p=p)
    return Check(findings, "somewhere the mean difference is above 0")


def within(
    results: Results,
    methods: Keys,
    than: Keys,
    *,
    setting: Names = None,
    p: Probs = None,
    **limits: float,
) -> Check:
    """Check that the ratio of mean regrets lies within limits, `at_least` and `at_most`."""

    def check(point: Point, method: str, other: str) -> Finding:
        ours, theirs = _shared(results, point, method, other)
        found = Interval.of_ratio(ours, theirs)
        means = f"{number(ours.mean(), 4)} / {number(theirs.mean(), 4)}"
        return Finding(judge(found, **limits), f"{means} = {found.fixed(3)}", found.n)

    findings = _everywhere(results, check, methods, than, setting=setting, p=p)
    return Check(findings, f"somewhere the ratio is {outside(**limits)}")


def outside(at_least: float = -math.inf, at_most: float = math.inf) -> str:
    """Return what a number is that is not within limits, as a string."""
    words = [f"below {number(at_least)}"] * (at_least > -math.inf)
    words += [f"above {number(at_most)}"] * (at_most < math.inf)
    return " or ".join(words)


def rises(
    results: Results,
    methods: Keys,
    *,
    minus: Keys = "",
    groups: Sequence[Sequence[float]] | None = None,
) -> Check:
    """Check that regret, or a gap between two, rises with every step from much seen to less.

    With `groups` of probabilities a step is from the mean over one group to that over the next.
    """
    findings, pairs = [], list(itertools.product(keys_of(methods), keys_of(minus) or [""]))
    for method, other in pairs:

        def gap(point: Point, method: str = method, other: str = other) -> dict[int, float]:
            regrets = results.regrets(point, method)
            return difference(regrets, results.regrets(point, other)) if other else regrets

        words = " less ".join(label_of(key) for key in (method, other) if key)
        prefix = f"{words}, " if len(pairs) > 1 else ""
        findings += _steps(results, method, gap, groups, prefix, at_least=0)
    what = "difference" if minus else "regret"
    return Check(findings, f"the mean {what} falls at one of the steps")


def rank_falls(results: Results, method: str) -> Check:
    """Check that the final rank falls with every step from much seen to less."""
    findings = _steps(results, method, partial(results.final_ranks, method=method), at_most=0)
    return Check(findings, "the mean rank rises at one of the steps")


def _steps(
    results: Results,
    method: str,
    values: Callable[[Point], Mapping[int, float]],
    groups: Sequence[Sequence[float]] | None = None,
    prefix: str = "",
    **limits: float,
) -> list[Finding]:
    """Judge the steps of values by seed, in every setting in which a method plays."""
    findings = []
    for name, setting in results.settings.items():
        if method not in setting.methods:
            continue
        probs = sorted((p for p in setting.worlds if p is not None), reverse=True)
        for pair in itertools.pairwise(groups or [[p] for p in probs]):
            step = " after ".join(" and ".join(f"{p:g}" for p in each) for each in pair[::-1])
            where = prefix + ", ".join(filter(None, [str(Point(name, None)), f"p = {step}"]))
            before, after = (_averaged([values(Point(name, p)) for p in each]) for each in pair)
            found = Interval.of(difference(after, before).values())
            if not found.n:
                findings.append(Finding(NOT_RUN, "no common seeds", where=where))
                continue
            means = " → ".join(number(Interval.of(e.values()).mean) for e in (before, after))
            findings.append(Finding(judge(found, **limits), f"{means}, {found}", found.n, where))
    return findings


def _averaged(columns: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Return means over columns by seed, for the seeds that all of them have."""
    seeds = set.intersection(*(set(each) for each in columns))
    return {seed: float(np.mean([each[seed] for each in columns])) for seed in sorted(seeds)}


def above_bound(
    results: Results, bound: Callable[[Point], float | None], methods: Sequence[str]
) -> Check:
    """Check that mean regret is above a lower bound everywhere.

    The findings are what does not hold, and the place that comes closest to the bound.
    """
    shares: list[float] = []

    def check(point: Point, method: str) -> Finding | None:
        least = bound(point)
        if least is None:
            return None
        found = Interval.of(_shared(results, point, method)[0])
        shares.append(found.mean / least)
        numbers = f"{found} against {number(least)}, {number(shares[-1])} times the bound"
        return Finding(judge(found, at_least=least), numbers, found.n)

    findings = [each.judged() for each in _everywhere(results, check, methods)]
    bad = [each for each in findings if each.outcome != HOLDS]
    known = [each for each in findings if each.outcome != NOT_RUN]
    if known and (closest := known[int(np.argmin(shares))]).outcome == HOLDS:
        text = f"{closest.numbers} is the closest of {len(known)}"
        bad.append(closest._replace(numbers=text))
    nowhere = [Finding(UNDECIDED, "the bound applies nowhere")]
    return Check(bad or nowhere, "somewhere the mean regret is below the bound")


def below_bound(results: Results, method: str, bound: Callable[[Problem], float]) -> Check:
    """Check that mean regret is below an upper bound, unless that is above the trivial one."""

    def check(point: Point, method: str) -> Finding:
        problem = results.realization(point).problem()
        most, trivial = bound(problem), trivial_regret_bound(problem)
        found = Interval.of(_shared(results, point, method)[0])
        if most >= trivial:
            share = number(most / trivial)
            return Finding(VACUOUS, f"{found}; the bound is {share} times the trivial one")
        return Finding(judge(found, at_most=most), f"{found} against {number(most)}", found.n)

    findings = _everywhere(results, check, method)
    return Check(
        findings, "the mean regret is above the bound, where that is below the trivial one"
    )


# Claims about ranks


def final_rank(results: Results, method: str, *, p: Probs = None, **limits: float) -> Check:
    """Check that the mean final rank, less the true one, lies within `at_least` and `at_most`."""

    def check(point: Point, method: str) -> Finding:
        ranks, true = results.final_ranks(point, method), results.fact(point, "rank")
        if not ranks:
            raise NotRunError("no final rank")
        if true is None:
            return Finding(UNDECIDED, "the world does not know its rank")
        found = Interval.of(list(ranks.values()))
        outcome = judge(found, **{name: true + limit for name, limit in limits.items()})
        return Finding(outcome, f"mean rank {found}, true rank {true}", found.n)

    findings = _everywhere(results, check, method, p=p)
    return Check(findings, f"somewhere the mean rank less the true one is {outside(**limits)}")


def gap_after_true_rank(results: Results, point: Point, method: str) -> Interval | None:
    """Return by how much the gap after the true rank exceeds the nearest other gap of the spectrum.

    None where the rank or enough eigenvalues of the last epoch are not known.
    """
    true = results.fact(point, "rank")
    spectra = results.diagnostic(point, method, "eigenvalues").values()
    gaps = [-np.diff([found[position] for position in sorted(found)]) for found in spectra]
    shared = min((len(each) for each in gaps), default=0)
    if true is None or shared < max(true, 2):
        return None
    table = np.array([each[:shared] for each in gaps])
    leads = table[:, [true - 1]] - np.delete(table, true - 1, axis=1)
    return min((Interval.of(lead) for lead in leads.T), key=lambda lead: lead.mean)


def eigengap(results: Results, method: str) -> Check:
    """Check that the largest gap of the spectrum is after the true rank, on average over seeds."""

    def check(point: Point, method: str) -> Finding:
        found = gap_after_true_rank(results, point, method)
        if found is None:
            raise NotRunError("no spectrum")
        numbers = f"larger than any other gap by {found}"
        return Finding(judge(found, at_least=0), numbers, found.n)

    findings = _everywhere(results, check, method)
    return Check(findings, "somewhere another gap of the spectrum is larger")


# Claims about exponents


def exponent(
    results: Results,
    method: str,
    over: str = "horizon",
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    **where: Any,
) -> Check:
    """Check that the 95 % intervals of an exponent and of the slope of each step are in limits.

    A curve whose slope changes has no exponent: one step outside of the limits fails the claim.
    `where` are the other parameters of `growth_of`.
    """
    found, letter = growth_of(results, method, over, **where), words_for(over)[0]
    fails_if = f"the slope of a step is {outside(at_least, at_most)}"
    if found is None:
        return Check([Finding(NOT_RUN, f"fewer than two values of {letter}")], fails_if)
    first, last = found.numbers[0], found.numbers[-1]
    text = f"exponent {found.exponent.fixed(2)} over {letter} from {first:g} to {last:g}"
    if len(found.steps) > 1:
        text += f"; step by step {', '.join(step.fixed(2) for step in found.steps)}"
    slopes = {found.exponent, *found.steps}
    outcome = combine([Finding(judge(slope, at_least, at_most)) for slope in slopes])
    return Check([Finding(outcome, text, found.exponent.n)], fails_if)


# Claims about diagnostics


def bounded(
    results: Results,
    method: str,
    value: str,
    bound: str,
    *,
    trivial: str | None = None,
    setting: Names = None,
) -> Check:
    """Check that a diagnostic is nowhere above another one, in any seed.

    A bound that is not below the `trivial` one says nothing: such positions are not judged, and
    where there are no others the bound is vacuous.
    """

    def check(point: Point, method: str) -> Finding:
        names = [value, bound, *([trivial] if trivial else [])]
        values, bounds, *trivials = _measured(results, point, method, *names)
        telling = bounds < trivials[0] if trivials else np.ones_like(bounds, dtype=bool)
        if not telling.any():
            factor = number(float(np.min(bounds / trivials[0])))
            return Finding(VACUOUS, f"the bound is at least {factor} times the trivial one")
        holds = (values <= bounds + _ROUNDING * (1 + np.abs(bounds))) | ~telling
        n, n_telling = int((holds & telling).sum()), int(telling.sum())
        where = f"all {n}" if n == n_telling else f"{n} of {n_telling}"
        numbers = f"within the bound at {where} positions{_room(values[telling], bounds[telling])}"
        if n_telling < telling.size:
            numbers += f"; at {telling.size - n_telling} others the bound is vacuous"
        return Finding(HOLDS if holds.all() else FAILS, numbers)

    findings = _everywhere(results, check, method, setting=setting)
    return Check(findings, "the bound is exceeded at any position of any seed")


def near(
    results: Results,
    method: str,
    value: str,
    other: str,
    *,
    setting: Names = None,
    p: Probs = None,
    **limits: float,
) -> Check:
    """Check that the ratio of the means of two diagnostics, at their ends, is within limits.

    Where the second one is 0 in all seeds the claim says nothing.
    """

    def check(point: Point, method: str) -> Finding | None:
        pair = [each[:, -1] for each in _measured(results, point, method, value, other)]
        if not pair[1].any():
            return None
        found = Interval.of_ratio(*pair)
        means = " / ".join(number(each.mean(), 4) for each in pair)
        return Finding(judge(found, **limits), f"{means} = {found.fixed(3)}", found.n)

    findings = _everywhere(results, check, method, setting=setting, p=p)
    return Check(findings, f"somewhere the ratio is {outside(**limits)}")


def exceeds(
    results: Results, method: str, value: str, other: str, *, setting: Names = None
) -> Check:
    """Check that a diagnostic ends above another one in every seed."""

    def check(point: Point, method: str) -> Finding:
        values, others = (each[:, -1] for each in _measured(results, point, method, value, other))
        ends = " against ".join(str(Interval.of(each)) for each in (values, others))
        holds = values > others
        numbers = f"{ends} at the end, above it in {int(holds.sum())} of {len(holds)} seeds"
        return Finding(HOLDS if holds.all() else FAILS, numbers)

    findings = _everywhere(results, check, method, setting=setting)
    return Check(findings, "it does not end above in any one seed")


def _measured(results: Results, point: Point, method: str, *names: str) -> list[FloatArray]:
    """Return diagnostics at the seeds and positions that all of them have, (seeds, positions)."""
    tables = [results.diagnostic(point, method, name) for name in names]
    seeds = sorted(set.intersection(*(set(table) for table in tables)))
    rows = [table[seed] for table in tables for seed in seeds]
    positions = sorted(set.intersection(*(set(row) for row in rows))) if rows else []
    if not positions:
        raise NotRunError("not measured")
    return [np.array([[table[seed][at] for at in positions] for seed in seeds]) for table in tables]


def _room(value: FloatArray, bound: FloatArray) -> str:
    """Return how many times the value a bound is, as a string."""
    ratios = bound[value > 0] / value[value > 0]
    if not ratios.size:
        return ", the value is never above 0"
    return f", which is {number(ratios.min())} to {number(ratios.max())} times the value"


# Claims about comparisons


def no_worse(results: Results, comparison: Comparison, *, than: str, margin: float) -> Check:
    """Check that at no point a difference is above a share of the other method's lead.

    The lead is that over the method `than`. A difference whose interval contains 0 is allowed.
    """
    findings, pairs = [], {pair.point: pair for pair in comparison.pairs}
    for point in comparison.points:
        pair, base = pairs.get(point), results.regrets(point, than)
        if pair is None or not all(seed in base for seed in pair.seeds):
            findings.append(Finding(NOT_RUN, "no common seeds", where=str(point)))
            continue
        lead = float(np.mean([base[seed] for seed in pair.seeds])) - pair.other
        allowed = margin * lead
        mean, low, _, n = pair.difference
        numbers = (
            f"{pair.mean:.4g} against {pair.other:.4g} of {label_of(pair.against)}, "
            f"difference {pair.text} over {n} seeds, at most +{allowed:.3g} allowed"
        )
        outcome = HOLDS if mean <= allowed or low <= 0 else FAILS
        findings.append(Finding(outcome if n > 1 else UNDECIDED, numbers, n, str(point)))
    fails_if = f"a difference is clearly above 0 and above {100 * margin:g} % of that lead"
    return Check(findings, fails_if)


# The page of all verdicts


class StudyClaims(NamedTuple):
    """Claims of a study, and on which run they were judged."""

    name: str
    title: str
    run: str
    verdicts: list[Verdict]


def write_claims(results: str | Path, path: str | Path) -> dict[str, int]:
    """Write all claims with verdicts and numbers; return how many of the paper's have which.

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
    from halfseen.paper.studies import ORDER  # they import this module

    studies = [_of_study(name, Path(results) / name) for name in ORDER]
    studies.append(_of_two_studies(Path(results)))
    lists: dict[str, list[StudyClaims]] = {"the paper's claim": [], OURS: [], BEYOND: []}
    for study in studies:
        for kind, found in lists.items():
            own = [each for each in study.verdicts if kind == _kind(each.place)]
            found += [study._replace(verdicts=own)] if own else []
    counts = [
        count_outcomes(verdict for study in found for verdict in study.verdicts)
        for found in lists.values()
    ]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    text = render(CLAIMS, lists=list(lists.values()), counts=counts)
    Path(path).write_text(text, encoding="utf-8")
    return counts[0]


def _kind(place: str) -> str:
    return place if place in (OURS, BEYOND) else "the paper's claim"


def _of_study(name: str, folder: Path) -> StudyClaims:
    from halfseen.paper.studies import study_named

    study = study_named(name)
    results, scale, run = study.no_results(folder), "paper", "not run"
    if (folder / "manifest.json").exists():
        results = Results.load(folder, study.places())
        version = results.manifest.get("versions", {}).get("halfseen", "?")
        scale = results.manifest.get("scale", "another")
        run = f"{scale} scale, seeds {seeds_of(results)}, halfseen {version}"
    return StudyClaims(name, study.title, run, judged(study.claims(results), scale))


def _of_two_studies(folder: Path) -> StudyClaims:
    """Return the claim that compares two studies."""
    from halfseen.paper.studies import newsgroups, study_named

    both = []
    for name in ("newsgroups", "mnist"):
        places, there = study_named(name).places(), (folder / name / "manifest.json").exists()
        both.append(
            Results.load(folder / name, places) if there else study_named(name).no_results(folder)
        )
    scales = {each.manifest.get("scale", "paper") for each in both}
    scale = "paper" if scales == {"paper"} else SMOKE
    verdicts = judged(newsgroups.smaller_gains(*both), scale)
    return StudyClaims("newsgroups", "Newsgroups against MNIST", "with `mnist`", verdicts)


def seeds_of(results: Results) -> str:
    """Return the seeds of most settings as a string, and those of others with their settings."""
    by_setting: dict[str, set[int]] = {}
    for row in results.per_seed:
        by_setting.setdefault(row["setting"], set()).add(row["seed"])
    by_seeds: dict[str, list[str]] = {}
    for setting, found in by_setting.items():
        by_seeds.setdefault(seed_ranges(sorted(found)), []).append(setting)
    usual = max(by_seeds, key=lambda seeds: len(by_seeds[seeds]))
    others = []
    for seeds, names in by_seeds.items():
        kinds = dict.fromkeys(name.partition(", ")[0] for name in names)
        others += [f"{seeds} for {' and '.join(kinds)}"] if seeds != usual else []
    return f"{usual} ({'; '.join(others)})" if others else usual
