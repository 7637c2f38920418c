"""Why an option has its score, and which missing column is worth measuring."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.agent.state import Ready
from halfseen.errors import InvalidInputError
from halfseen.lazy import new_axes
from halfseen.values import BoolArray, FloatArray, Item, Scores
from halfseen.values.decision import html_table
from halfseen.values.reasons import Reasons

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Columns = Mapping[str, list[int]]
"""The features of each column."""

_ROUNDING = 1e-9  # smaller parts, as a share of the largest one, are not shown
_LEAST_GAIN = 1e-6  # as a share of what estimates and widths differ by; below, it is rounding


class Measurement(NamedTuple):
    """The value of measuring a missing column before choosing.

    Attributes
    ----------
    column : str
    gain : float
        Expected increase of the best estimate if the column is measured wherever it is missing.
    item : str or int, or None
        The option for which measuring it is worth most; None for a column of the context.
    item_gain : float
        Expected increase if it is measured for that option alone.
    cost : float

    Examples
    --------
    >>> Measurement("price", gain=0.3, item="coat", item_gain=0.2, cost=0.25).net
    0.04999999999999999
    """

    column: str
    gain: float
    item: Item | None
    item_gain: float
    cost: float

    @property
    def net(self) -> float:
        """The gain minus the cost."""
        return self.gain - self.cost


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an option has its score.

    Attributes
    ----------
    item : str or int
    parts : list of (str, float)
        What adds up to the score: the intercept; the value of each column, seen or inferred;
        whether it is seen or missing, whatever its value; the item's own rewards; each column of
        the context, for all options and further for this one; the exploration bonus.
    measurements : tuple of Measurement
        For each column that is missing in an option or the context, the largest gain minus cost
        first.
    is_current : bool
        False if the model has learned since the decision: then the parts come from the current
        model and do not add up to the decision's score.

    Examples
    --------
    >>> from halfseen import Agent
    >>> agent = Agent()
    >>> agent.observe({"price": [1.0, 2.0, 3.0, 4.0] * 5}, [1.0, 2.0, 3.0, 4.0] * 5)
    >>> why = agent.explain([{"price": 4.0}, {"price": None}])
    >>> why.item, round(why.score - sum(value for _, value in why.parts), 6)
    (0, 0.0)
    >>> [each.column for each in why.measurements]
    ['price']
    """

    item: Item
    parts: list[tuple[str, float]]
    measurements: tuple[Measurement, ...]
    is_current: bool

    @classmethod
    def of(
        cls,
        ready: Ready,
        items: Sequence[Item],
        *,
        item: Item | None,
        costs: Mapping[str, float],
        made: Scores | None,
    ) -> "Explanation":
        """Explain the score of an item; by default of the one with the best score.

        `made` are the estimates and widths of a decision about this slate.
        """
        policy, slate = ready.policy, ready.slate
        columns, context_columns = (
            {name: list(each.features) for name, each in encoder.columns.items()}
            for encoder in (ready.options, ready.context)
        )
        reasons = policy.explain(slate)
        is_current = made is None or _agree(reasons.estimates, made)
        if made is not None and is_current:
            reasons = reasons._replace(bonus=made.widths)
        if item is not None and not (isinstance(item, str | int | np.integer) and item in items):
            raise InvalidInputError(
                f"{item!r} is not among the options: name one of {list(items)[:10]}"
            )
        arm = int(reasons.scores.argmax()) if item is None else list(items).index(item)
        gains = policy.value_of_seeing(
            slate, [*columns.values()], [*context_columns.values()] if policy.context_dim else None
        )
        own = zip(columns, gains.all_arms.tolist(), gains.single.T, strict=True)
        found = [
            Measurement(name, gain, items[alone.argmax()], float(alone.max()), costs.get(name, 0.0))
            for name, gain, alone in own
        ]
        if slate.context is not None:
            found += [
                Measurement(name, gain, None, gain, costs.get(name, 0.0))
                for name, gain in zip(context_columns, gains.context.tolist(), strict=True)
            ]
        least = _LEAST_GAIN * float(np.ptp(reasons.estimates) + np.abs(reasons.bonus).max())
        found = [each for each in found if each.gain > least]
        return cls(
            items[arm],
            _named_parts(reasons, arm, slate.mask[arm], columns, context_columns),
            tuple(sorted(found, key=lambda each: -each.net)),
            is_current,
        )

    @property
    def score(self) -> float:
        """The sum of all parts."""
        return sum(value for _, value in self.parts)

    @property
    def best_measurement(self) -> Measurement | None:
        """The measurement with the largest gain minus cost; None if none is worth its cost."""
        best = next(iter(self.measurements), None)
        return best if best is not None and best.net > 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain JSON types."""
        return {
            "item": self.item,
            "score": self.score,
            "parts": [list(part) for part in self.parts],
            "measurements": [each._asdict() for each in self.measurements],
            "is_current": self.is_current,
        }

    def __str__(self) -> str:
        shown = [(name, checks.significant(value, sign="+")) for name, value in self.largest()]
        parts = [f"  {value:>10}  {name}" for name, value in shown]
        title, *notes = self._notes()
        return "\n".join([title, *parts, *notes])

    def _repr_html_(self) -> str:
        parts = [(name, checks.significant(value, sign="+")) for name, value in self.largest()]
        title, *notes = (f"<p>{html.escape(note)}</p>" for note in self._notes())
        return "".join([title, html_table([("part", "score"), *parts]), *notes])

    def _notes(self) -> list[str]:
        """Return a title, and which column is worth measuring."""
        stale = "" if self.is_current else " (current model, which has learned since the decision)"
        lines = [f"{self.item}: score {checks.significant(self.score)}{stale}"]
        if not self.largest():
            lines = [f"{self.item}: chosen at random: all rewards so far are equal"]
        best = self.best_measurement
        if best is not None:
            cost = f", cost {checks.significant(best.cost)}" if best.cost else ""
            where = "in the context" if best.item is None else f"most of all for {best.item}"
            lines.append(
                f"{best.column} is worth measuring, {where}: expected gain "
                f"{checks.significant(best.gain)}{cost}"
            )
        return lines

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the parts as bars, and return the axes; needs matplotlib (extra `paper`)."""
        axes = new_axes(5.0, 3.0) if axes is None else axes
        shown = self.largest()
        names, values = [name for name, _ in shown], [value for _, value in shown]
        colours = ["tab:blue" if value >= 0.0 else "tab:red" for value in values]
        axes.barh(range(len(values)), values, color=colours)
        axes.set_yticks(range(len(values)), names)
        axes.invert_yaxis()
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_title(f"{self.item}: score {checks.significant(self.score)}")
        return axes

    def largest(self, most: int = 8) -> list[tuple[str, float]]:
        """Return the largest parts with their names, and the sum of at least two others."""
        parts = sorted(self.parts, key=lambda part: -abs(part[1]))
        least = _ROUNDING * max((abs(part[1]) for part in parts), default=0.0)
        parts = [part for part in parts if abs(part[1]) > least]
        most += len(parts) == most + 1
        shown, others = parts[:most], parts[most:]
        if others:
            shown.append((f"{len(others)} others", sum(value for _, value in others)))
        return shown


def _named_parts(
    reasons: Reasons, arm: int, mask: BoolArray, columns: Columns, context_columns: Columns
) -> list[tuple[str, float]]:
    """Return what adds up to the score of an arm."""

    def added(table: FloatArray, columns: Columns) -> list[tuple[str, float]]:
        return [(name, float(table[arm, places].sum())) for name, places in columns.items()]

    def absurd(table: BoolArray | None, row: int, columns: Columns) -> dict[str, str]:
        found = () if table is None else [n for n, at in columns.items() if table[row, at].any()]
        return dict.fromkeys(found, ", implausible, treated as missing")

    own = absurd(reasons.implausible, arm, columns)
    shared = absurd(reasons.context_implausible, 0, context_columns)
    hidden = {name for name, places in columns.items() if not mask[places[0]]} | own.keys()
    states = {name: "missing" if name in hidden else "seen" for name in columns}
    notes = dict.fromkeys(hidden, " (inferred)") | own
    return [
        ("intercept", float(reasons.intercept)),
        *((name + notes.get(name, ""), value) for name, value in added(reasons.features, columns)),
        *((f"{name} is {states[name]}", value) for name, value in added(reasons.missing, columns)),
        ("the item's own rewards", float(reasons.item[arm])),
        *(
            (f"{name} (context){shared.get(name, '')}", value)
            for name, value in added(reasons.context, context_columns)
        ),
        *(
            (f"{name} (context) for this option", value)
            for name, value in added(reasons.crossed, context_columns)
        ),
        ("bonus", float(reasons.bonus[arm])),
    ]


def checked_costs(costs: Any, known: Mapping[str, Any]) -> dict[str, float]:
    """Return costs of columns after checking them."""
    if costs is None:
        return {}
    if not isinstance(costs, Mapping):
        raise InvalidInputError(f"costs must be a dict of column names, got {costs!r}")
    for name in costs:
        if name not in known:
            raise InvalidInputError(
                f"costs has the column {name!r}, which is unknown: name one of {list(known)}"
            )
    return {name: checks.real(f"the cost of {name!r}", cost, 0.0) for name, cost in costs.items()}


def _agree(estimates: FloatArray, made: Scores) -> bool:
    """Return whether estimates are those of a decision, up to rounding."""
    spread = float(np.ptp(made.estimates) + np.abs(made.widths).max())
    near = 1e-6 * spread + 1e-12 * float(np.abs(made.estimates).max())
    return bool((np.abs(estimates - made.estimates) <= near).all())
