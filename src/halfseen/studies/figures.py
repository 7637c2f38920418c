"""What a study can draw and compare: one table for each kind of panel, with the keys it takes."""

from collections import Counter
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from halfseen.studies.fields import (
    Flag,
    Label,
    Name,
    Place,
    Prob,
    Probs,
    Seeds,
    Table,
    Text,
    Texts,
    Words,
    must_be,
    one_of,
    refuse,
)

ROLES = ("measured", "second", "third", "fourth", "bound", "other-bound", "reference")
"""How a line is drawn: up to four measured things, up to two bounds, something to compare with."""

EXPECTED = ("wait", "cost")
"""What the construction of the hard family implies, beside what was measured."""

SCALES = ("log", "linear", "symlog")
Scale: TypeAlias = Annotated[str, one_of(SCALES)]


def _slopes(value: Any) -> tuple[float, ...]:
    values = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in values):
        raise ValueError
    return tuple(float(each) for each in values)


def _columns(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4:
        raise ValueError
    return value


Columns: TypeAlias = Annotated[int, must_be("a whole number from 1 to 4", _columns)]
Slopes: TypeAlias = Annotated[tuple[float, ...], must_be("one number or a list", _slopes)]


class _Panel(Table):
    """What one panel shows; by default the methods of its figure."""

    methods: Texts | None = None
    title: Words = ""


class RoundsPanel(_Panel):
    """Regret or rank over rounds, at one point."""

    kind: Literal["rounds"]
    value: Annotated[str, one_of(("regret", "rank"))] = "regret"
    setting: Text | None = None
    p: Prob | None = None
    log: Flag = False


class SweepPanel(_Panel):
    """Final regret, or its excess over that of `minus`, along an axis.

    Over "p", over a number of the world ("horizon", "n_arms", "rank", "conditioning", …) with its
    exponent and `slopes` to compare with, or over a setting that was tuned. With `powers`, an axis
    over p is logarithmic and has exponents, too. `minus` is one method for all, or one for each of
    `methods`. `expected` adds what the construction of the hard family implies for the policy that
    only has to discover the hidden sign: its "wait" in rounds, or the "cost" of it in regret.
    """

    kind: Literal["sweep"]
    over: Text = "p"
    setting: Text | None = None
    p: Prob | None = None
    log: Flag = False
    bounds: Flag = False
    settings: Texts | None = None
    minus: Texts | None = None
    value: Text | None = None
    ylabel: Words = ""
    powers: Flag = False
    slopes: Slopes | None = None
    expected: Annotated[str, one_of(EXPECTED)] | None = None

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        mistakes: dict[Place, str] = {}
        if self.over == "p" and self.p is not None:
            mistakes["p",] = "must be left out: the panel sweeps over p"
        if self.over == "horizon" and self.setting is not None:
            mistakes["setting",] = "must be left out: horizons are those of all settings"
        if len(self.minus or ()) > 1 and len(self.minus or ()) != len(self.methods or ()):
            mistakes["minus",] = "must be one method, or one for each of the panel's methods"
        if self.over == "p" and not self.powers and (self.minus or self.value or self.slopes):
            mistakes["powers",] = "must be true for minus, value or slopes over p"
        if self.over != "p" and self.bounds:
            mistakes["bounds",] = "must be left out: lower bounds are drawn over p"
        refuse(mistakes)
        return self


class SpectrumPanel(_Panel):
    """Eigenvalues of the last epoch by position, and the gap after the true rank."""

    kind: Literal["spectrum"]
    setting: Text | None = None
    p: Prob | None = None


def _as_line(value: Any) -> Any:
    return {"value": value} if isinstance(value, str) else value


class Line(Table):
    """One line: a diagnostic over another one. What it leaves out is taken from its panel."""

    value: Text
    x: Text | None = None
    label: Text | None = None
    role: Annotated[str, one_of(ROLES)] = "measured"
    setting: Text | None = None
    p: Prob | None = None
    method: Text | None = None


class MeasuredPanel(_Panel):
    """Diagnostics over other diagnostics."""

    kind: Literal["measured"]
    lines: Annotated[tuple[Annotated[Line, BeforeValidator(_as_line)], ...], Field(min_length=1)]
    xlabel: Text
    ylabel: Text
    xscale: Scale = "log"
    yscale: Scale = "log"
    setting: Text | None = None
    p: Prob | None = None
    method: Text | None = None
    x: Text | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        refuse(
            {
                ("lines", index, key): "must be given, here or in the panel"
                for index, line in enumerate(self.lines)
                for key in ("x", "method")
                if getattr(line, key) is None and getattr(self, key) is None
            }
        )
        return self

    def filled_lines(self) -> tuple[Line, ...]:
        """Return the lines with what they take from the panel."""
        keys = ("x", "setting", "p", "method")
        return tuple(
            line.model_copy(
                update={key: getattr(self, key) for key in keys if getattr(line, key) is None}
            )
            for line in self.lines
        )


class BarsPanel(_Panel):
    """Final regret of every method at every point, or at those with one p."""

    kind: Literal["bars"]
    p: Prob | None = None
    ranks: Texts = ()
    log: Flag = False


class DifferencesPanel(_Panel):
    """The paired differences of a comparison."""

    kind: Literal["differences"]
    comparison: Text
    setting: Text | None = None
    p: Prob | None = None
    log: Flag = False
    relative: Flag = False


class Part(Table):
    """A part of a regret: regrets of some methods less those of others, seed by seed."""

    label: Text
    plus: Texts = ()
    minus: Texts = ()


class SplitPanel(_Panel):
    """The regret of a method as a sum of parts."""

    kind: Literal["split"]
    total: Text
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]
    setting: Text | None = None

    @model_validator(mode="after")
    def _balanced(self) -> Self:
        balance = Counter({self.total: -1})
        for part in self.parts:
            balance.update(part.plus)
            balance.subtract(part.minus)
        left = {method: count for method, count in balance.items() if count}
        if left:
            text = f"must sum up to {self.total!r}, with nothing left over, got {left}"
            refuse({("parts",): text})
        return self


AnyPanel: TypeAlias = (
    RoundsPanel
    | SweepPanel
    | SpectrumPanel
    | MeasuredPanel
    | BarsPanel
    | DifferencesPanel
    | SplitPanel
)
Panel: TypeAlias = Annotated[AnyPanel, Field(discriminator="kind")]


class Figure(Table):
    """Panels side by side, in `columns`. The label is that of the paper if it has this figure."""

    label: Label
    caption: Words = ""
    methods: Texts | None = None
    columns: Columns | None = None
    panels: Annotated[tuple[Panel, ...], Field(min_length=1)]

    @property
    def name(self) -> str:
        """The name of its files, without suffix."""
        return self.label.removeprefix("fig:")


class Comparison(Table):
    """Methods compared seed by seed with the first of some others that was run.

    With `choose_seeds` it is the best of the others on these seeds, compared on all other seeds.
    """

    name: Name
    caption: Words = ""
    methods: Texts
    against: Texts
    choose_seeds: Seeds | None = None
    setting: Texts | None = None
    p: Probs | None = None

    @property
    def heading(self) -> str:
        """The caption, or the name."""
        return self.caption or self.name
