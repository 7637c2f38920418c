"""Which statements the data bear out: every verdict is computed from the results."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from halfseen.report.claims_levels import at_most, at_most_times
from halfseen.report.claims_theory import (
    above_bound,
    claimed_points,
    eigengap,
    exponent,
    exponent_at_most,
    points_left_out,
    rank_found,
)
from halfseen.report.data import Point, Results
from halfseen.report.keys import Keys
from halfseen.report.measured_claims import (
    above_floor,
    exceeds,
    falls_like,
    negative,
    never_negative,
    within_bound,
    zero,
)
from halfseen.report.truth import BOUNDS
from halfseen.report.verdicts import (
    FAILS,
    HOLDS,
    NOT_RUN,
    TOO_SMALL,
    UNDECIDED,
    Finding,
    Verdict,
    combine,
    format_mean,
    paired_difference,
    side_of,
)
from halfseen.studies.spec import Study

SMOKE = "smoke"
"""The scale at which no claim is judged."""


class ClaimKind(NamedTuple):
    """How claims of a kind are checked.

    Attributes
    ----------
    judge : (Study, Results, settings) -> list of Finding
    methods, numbers : tuple of str
        Keys that name a method (or a measured list) or give a number; all are required.
    lists : tuple of str
        Keys that give a number or a list of them; required.
    places : tuple of str
        Optional keys that say where: "setting", "p".
    words : mapping
        Required keys with a choice of words.
    """

    judge: Callable[[Study, Results, Mapping[str, Any]], list[Finding]]
    methods: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    places: tuple[str, ...] = ("setting", "p")
    words: Mapping[str, tuple[str, ...]] = {}


def verdicts_on(study: Study, results: Results) -> list[Verdict]:
    """Return a verdict on every claim of a study; `RULE` says how they are judged.

    A run of a part of the study is judged at the points that it has.

    Raises
    ------
    StudyError
        What the study says about its claims is wrong; the message names the key.
    """
    verdicts = []
    for kind, text, settings in read_claims(study):
        if results.manifest.get("scale") == SMOKE:
            verdicts.append(Verdict(text, kind, TOO_SMALL, ("run at smoke scale",)))
            continue
        found = [each.judged() for each in CLAIMS[kind].judge(study, results, settings)]
        outcome, texts = combine(found), [str(each) for each in found]
        left_out = points_left_out(study, settings)
        if outcome == NOT_RUN:
            texts = ["nothing of it was run"]
        elif left_out:
            texts.append(f"not in this run: {', '.join(map(str, left_out))}")
        verdicts.append(Verdict(text, kind, outcome, tuple(texts)))
    return verdicts


def as_frame(verdicts: list[Verdict]) -> pd.DataFrame:
    """Return verdicts as a table: one row each, in order."""
    columns = ["text", "kind", "outcome", "numbers"]
    rows = [[getattr(verdict, column) for column in columns] for verdict in verdicts]
    return pd.DataFrame(rows, columns=columns).rename(columns={"outcome": "verdict"})


def read_claims(study: Study) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the claims of a study as (kind, text, settings), checked.

    Raises
    ------
    StudyError
        The message names the key, such as claims[2].tolerance.
    """
    return [_claim(plain, f"claims[{index}]") for index, plain in enumerate(study.claims)]


def _claim(plain: Any, where: str) -> tuple[str, str, dict[str, Any]]:
    everything = tuple(dict.fromkeys(key for kind in CLAIMS.values() for key in _keys_of(kind)))
    name = Keys(plain, where, everything).one_of("kind", tuple(CLAIMS))
    kind = CLAIMS[name]
    keys = Keys(plain, where, _keys_of(kind))
    settings: dict[str, Any] = {key: keys.text(key) for key in kind.methods}
    settings |= {key: keys.number(key) for key in kind.numbers}
    settings |= {key: keys.list_of_numbers(key) for key in kind.lists}
    settings |= {key: keys.one_of(key, words) for key, words in kind.words.items()}
    if "setting" in kind.places:
        settings["setting"] = keys.texts("setting")
    if "p" in kind.places:
        settings["p"] = keys.probs("p")
    return name, keys.text("text"), settings


def _keys_of(kind: ClaimKind) -> tuple[str, ...]:
    return ("text", "kind", *kind.methods, *kind.numbers, *kind.lists, *kind.words, *kind.places)


def _lower(study: Study, results: Results, settings: Mapping[str, Any]) -> list[Finding]:
    outcomes = {-1: HOLDS, 0: UNDECIDED, 1: FAILS}
    return _compared(study, results, settings, outcomes)


def _no_higher(study: Study, results: Results, settings: Mapping[str, Any]) -> list[Finding]:
    return _compared(study, results, settings, {-1: HOLDS, 0: HOLDS, 1: FAILS})


def _compared(
    study: Study, results: Results, settings: Mapping[str, Any], outcomes: Mapping[int, str]
) -> list[Finding]:
    """Compare two methods seed by seed; `outcomes` says what each side of zero means."""
    method, than = settings["method"], settings["than"]
    findings = []
    for point in claimed_points(study, settings, method, than):
        ours, theirs = results.regrets(point, method), results.regrets(point, than)
        difference, n = paired_difference(ours, theirs)
        if n == 0:
            findings.append(Finding(NOT_RUN, str(point), "no common seeds"))
            continue
        side = side_of(difference)
        both = ours.index.intersection(theirs.index)
        means = f"{ours[both].mean():.3g} against {theirs[both].mean():.3g}"
        numbers = f"{means}, difference {format_mean(difference)} over {n} seeds"
        outcome = UNDECIDED if side is None else outcomes[side]
        findings.append(Finding(outcome, str(point), numbers, n))
    return findings


def _close(study: Study, results: Results, settings: Mapping[str, Any]) -> list[Finding]:
    method, to, tolerance = settings["method"], settings["to"], settings["tolerance"]
    findings = []
    for point in claimed_points(study, settings, method, to):
        ours, theirs = results.regrets(point, method), results.regrets(point, to)
        both = ours.index.intersection(theirs.index)
        if both.empty or theirs[both].mean() == 0:
            why = "no common seeds" if both.empty else "the other regret is 0"
            outcome = NOT_RUN if both.empty else UNDECIDED
            findings.append(Finding(outcome, str(point), why))
            continue
        ratio = ours[both].mean() / theirs[both].mean()
        numbers = (
            f"{ours[both].mean():.3g} / {theirs[both].mean():.3g} = {ratio:.3f} "
            f"(1 ± {tolerance:g} claimed)"
        )
        outcome = HOLDS if abs(ratio - 1) <= tolerance else FAILS
        findings.append(Finding(outcome, str(point), numbers, len(both)))
    return findings


def _rises(study: Study, results: Results, settings: Mapping[str, Any]) -> list[Finding]:
    method, findings = settings["method"], []
    by_setting: dict[str, list[float]] = {}
    for point in claimed_points(study, settings, method):
        if point.p is not None:
            by_setting.setdefault(point.setting, []).append(point.p)
    for name, probs in by_setting.items():
        falling = sorted(probs, reverse=True)
        for more, less in itertools.pairwise(falling):
            before = results.regrets(Point(name, more), method)
            after = results.regrets(Point(name, less), method)
            findings.append(_step(Point(name, less), more, before, after))
    return findings


def _step(
    point: Point, more: float, before: "pd.Series[float]", after: "pd.Series[float]"
) -> Finding:
    """Judge one step from much seen to less."""
    difference, n = paired_difference(after, before)
    where = f"{point} after {more:g}"
    if n == 0:
        return Finding(NOT_RUN, where, "no common seeds")
    side = side_of(difference)
    outcome = UNDECIDED if side is None else {-1: FAILS, 0: UNDECIDED, 1: HOLDS}[side]
    sign = "+" if difference.mean is not None and difference.mean > 0 else ""
    return Finding(outcome, where, f"{sign}{format_mean(difference)}", n)


CLAIMS: Mapping[str, ClaimKind] = {
    "lower": ClaimKind(_lower, ("method", "than")),
    "no-higher": ClaimKind(_no_higher, ("method", "than")),
    "close": ClaimKind(_close, ("method", "to"), ("tolerance",)),
    "at-most": ClaimKind(at_most, ("method",), lists=("values",)),
    "at-most-times": ClaimKind(at_most_times, ("method", "than"), ("factor",)),
    "rises": ClaimKind(_rises, ("method",), places=("setting", "p")),
    "rank": ClaimKind(rank_found, ("method",), ("tolerance",)),
    "eigengap": ClaimKind(eigengap, ("method",)),
    "exponent": ClaimKind(exponent, ("method",), ("value", "tolerance"), places=()),
    "exponent-at-most": ClaimKind(exponent_at_most, ("method",), ("value",), places=()),
    "above-bound": ClaimKind(above_bound, words={"bound": BOUNDS}),
    "within-bound": ClaimKind(within_bound, ("method", "value", "bound")),
    "above-floor": ClaimKind(above_floor, ("method", "value", "floor")),
    "exceeds": ClaimKind(exceeds, ("method", "value", "bound")),
    "falls-like": ClaimKind(falls_like, ("method", "value", "x"), ("power", "tolerance")),
    "negative": ClaimKind(negative, ("method", "value"), ("share",)),
    "never-negative": ClaimKind(never_negative, ("method", "value")),
    "zero": ClaimKind(zero, ("method", "value")),
}
"""The kinds of claims, and what each must and may say beside kind and text."""
