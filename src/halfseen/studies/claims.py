"""What a study can claim: one table for each kind of claim, with the keys that it takes."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from halfseen.studies.fields import (
    Flag,
    Number,
    Numbers,
    Place,
    Probs,
    Table,
    Text,
    Texts,
    must_be,
    one_of,
    refuse,
)

BOUNDS = ("explicit", "optimized", "context-limited", "hidden")
"""The forms of the paper's lower bound; "hidden" is the part of the explicit one that is due to the
masks, the only part that concerns a policy that knows the other sign."""

RELATIONS = ("at most", "at least", "equal to", "below", "above")
"""How a diagnostic may compare with another one."""

RANKS = ("policy", "eigengap")
"""Where a rank comes from: the policy's choice, or the largest gap of its spectrum."""


def _exponent(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return float(value)


Exponent: TypeAlias = Annotated[float, must_be("a number", _exponent)]


class _Claim(Table):
    """A statement, and where it is made: everywhere unless it lists settings or probabilities."""

    text: Text
    setting: Texts | None = None
    p: Probs | None = None


class LowerClaim(_Claim):
    """A method's regret is lower than another one's, compared seed by seed."""

    kind: Literal["lower"]
    method: Text
    than: Text
    or_equal: Flag = False


class RegretClaim(_Claim):
    """Mean final regret, or its ratio to that of another method, lies within limits.

    A limit is one number, or one number for each point.
    """

    kind: Literal["regret"]
    method: Text
    relative_to: Text | None = None
    at_least: Numbers | None = None
    at_most: Numbers | None = None

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.at_least is None and self.at_most is None:
            refuse({("at_most",): "must be given, or at_least: a claim needs a limit"})
        return self


class RisesClaim(_Claim):
    """A method's regret, or the gap between it and that of `minus`, rises whenever less is seen."""

    kind: Literal["rises"]
    method: Text
    minus: Text | None = None


class RankClaim(_Claim):
    """The mean final rank, or the place of the largest eigengap, is the true rank.

    "near" allows a tolerance. "below" asks for less than the true rank, by more than two standard
    errors.
    """

    kind: Literal["rank"]
    method: Text
    source: Annotated[str, one_of(RANKS)] = "policy"
    relation: Annotated[str, one_of(("near", "below"))] = "near"
    tolerance: Number = 0.0


class ExponentClaim(_Claim):
    """The exponent of a power law is near a number, at most or at least a number.

    It is that of mean final regret (in excess of `minus`), or of a diagnostic `value`, as the
    horizon or what `over` names grows, over all settings or those listed; or, with `value` and `x`,
    that of one diagnostic as another one grows.
    """

    kind: Literal["exponent"]
    method: Text
    over: Text = "horizon"
    minus: Text | None = None
    value: Text | None = None
    x: Text | None = None
    near: Exponent | None = None
    tolerance: Number | None = None
    at_most: Exponent | None = None
    at_least: Exponent | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        mistakes: dict[Place, str] = {}
        if self.value is None and self.x is not None:
            mistakes["value",] = "must be given: it grows with x"
        if self.value is not None and self.minus is not None:
            mistakes["minus",] = "must be left out: only a regret has an excess"
        if (self.near is None) != (self.tolerance is None):
            missing = "near" if self.near is None else "tolerance"
            mistakes[missing,] = "must be given: near and tolerance belong together"
        limits = (self.near, self.at_most, self.at_least)
        if sum(limit is not None for limit in limits) != 1:
            mistakes["at_most",] = "must be given, or at_least, or near and tolerance; one of them"
        if self.x is None and self.over == "p" and len(self.setting or ()) > 1:
            mistakes["setting",] = "must be one setting, over whose probabilities something grows"
        if self.x is None and self.p and (self.over == "p" or len(self.p) > 1):
            mistakes["p",] = "must be left out, or be one probability"
        refuse(mistakes)
        return self


class AboveBoundClaim(_Claim):
    """No method pays less than the lower bound, and with `within` at most so many times it."""

    kind: Literal["above-bound"]
    bound: Annotated[str, one_of(BOUNDS)]
    methods: Texts | None = None
    within: Number | None = None


class MeasuredClaim(_Claim):
    """A diagnostic is compared with another one, or with 0, in every seed.

    The relation holds at all positions, at a share of them, or at the last one.
    """

    kind: Literal["measured"]
    method: Text
    value: Text
    relation: Annotated[str, one_of(RELATIONS)]
    to: Text | None = None
    share: Number = 1.0
    at_end: Flag = False


class ComparedClaim(_Claim):
    """In a comparison, the first method pays no more than the other, up to what is allowed.

    Allowed are two standard errors of the difference, or `margin` times the lead of the other
    method over `lead_over` if that is more. With `average` the mean over all points, of differences
    as shares of the regret of `lead_over`, is below 0.
    """

    kind: Literal["compared"]
    comparison: Text
    lead_over: Text
    margin: Number = 0.0
    average: Flag = False

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.average and self.margin:
            refuse({("margin",): "must be left out: an average must be below 0"})
        return self


AnyClaim: TypeAlias = (
    LowerClaim
    | RegretClaim
    | RisesClaim
    | RankClaim
    | ExponentClaim
    | AboveBoundClaim
    | MeasuredClaim
    | ComparedClaim
)
Claim: TypeAlias = Annotated[AnyClaim, Field(discriminator="kind")]
