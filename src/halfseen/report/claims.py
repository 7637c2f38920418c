"""Which statements the data bear out: every verdict is computed from the results."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from halfseen.report import judges
from halfseen.report.data import Results
from halfseen.report.judges import Case, Judge, at_every_point
from halfseen.report.keys import Keys
from halfseen.report.measured_judges import falls_like, measured
from halfseen.report.truth import BOUNDS
from halfseen.report.verdicts import NOT_RUN, TOO_SMALL, Verdict, combine
from halfseen.studies.spec import Study

SMOKE = "smoke"
"""The scale at which no claim is judged."""


class ClaimKind(NamedTuple):
    """How claims of a kind are checked.

    Attributes
    ----------
    judge : Case -> list of Finding
    texts, numbers : tuple of str
        Keys that name a method (or a measured list) or give a number; all are required.
    lists : tuple of str
        Keys that give a number or a list of them; required.
    places : tuple of str
        Optional keys that say where: "setting", "p".
    words : mapping
        Required keys with a choice of words.
    """

    judge: Judge
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    places: tuple[str, ...] = ("setting", "p")
    words: Mapping[str, tuple[str, ...]] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        """All that a claim of this kind may say."""
        return (
            *("text", "kind", *self.texts, *self.numbers, *self.lists),
            *(*self.words, *self.places),
        )


_PAIR = ("method", "than")
_VALUE = ("method", "value")

CLAIMS: Mapping[str, ClaimKind] = {
    "lower": ClaimKind(judges.compared(judges.LOWER), _PAIR),
    "no-higher": ClaimKind(judges.compared(judges.NO_HIGHER), _PAIR),
    "close": ClaimKind(judges.ratio("to"), ("method", "to"), ("tolerance",)),
    "at-most-times": ClaimKind(judges.ratio("than"), _PAIR, ("factor",)),
    "at-most": ClaimKind(judges.at_most, ("method",), lists=("values",)),
    "rises": ClaimKind(judges.rises, ("method",)),
    "rank": ClaimKind(at_every_point(judges.rank, "method"), ("method",), ("tolerance",)),
    "eigengap": ClaimKind(at_every_point(judges.eigengap, "method"), ("method",)),
    "exponent": ClaimKind(judges.exponent, ("method",), ("value", "tolerance"), places=()),
    "exponent-at-most": ClaimKind(judges.exponent, ("method",), ("value",), places=()),
    "above-bound": ClaimKind(judges.above_bound, words={"bound": BOUNDS}),
    "within-bound": ClaimKind(measured("at most", "bound"), (*_VALUE, "bound")),
    "above-floor": ClaimKind(measured("at least", "floor"), (*_VALUE, "floor")),
    "exceeds": ClaimKind(measured("above", "bound", at_end=True), (*_VALUE, "bound")),
    "negative": ClaimKind(measured("below", None), _VALUE, ("share",)),
    "never-negative": ClaimKind(measured("at least", None), _VALUE),
    "zero": ClaimKind(measured("equal to", None), _VALUE),
    "falls-like": ClaimKind(
        at_every_point(falls_like, "method"), (*_VALUE, "x"), ("power", "tolerance")
    ),
}
"""The kinds of claims, and the keys that each takes in addition to kind and text."""


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
        case = Case(study, results, settings)
        found = [finding.judged() for finding in CLAIMS[kind].judge(case)]
        outcome, texts = combine(found), [str(finding) for finding in found]
        left_out = case.points_left_out()
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
    everything = tuple(dict.fromkeys(key for kind in CLAIMS.values() for key in kind.keys))
    name = Keys(plain, where, everything).one_of("kind", tuple(CLAIMS))
    kind = CLAIMS[name]
    keys = Keys(plain, where, kind.keys)
    settings: dict[str, Any] = {key: keys.text(key) for key in kind.texts}
    settings |= {key: keys.number(key) for key in kind.numbers}
    settings |= {key: keys.list_of_numbers(key) for key in kind.lists}
    settings |= {key: keys.one_of(key, words) for key, words in kind.words.items()}
    if "setting" in kind.places:
        settings["setting"] = keys.texts("setting")
    if "p" in kind.places:
        settings["p"] = keys.probs("p")
    return name, keys.text("text"), settings
