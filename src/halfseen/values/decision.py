"""Decision: what was chosen and why, with all that is needed to learn its reward; and rewards."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidInputError, InvalidRewardError, UnknownDecisionError
from halfseen.values.slate import (
    LARGEST,
    LARGEST_ITEM,
    BoolArray,
    FloatArray,
    Slate,
    read_only,
    seen_entries,
    zero_filled,
)

Item = str | int
"""An item id: a string or an integer."""


class Note(NamedTuple):
    """The part of a decision that a policy needs to learn its reward.

    Attributes
    ----------
    round, epoch : int
        As in the decision.
    arm : ndarray, shape (dim,)
        The chosen arm as it was seen, NaN where hidden.
    context : ndarray, shape (context_dim,), optional
        That of the round, NaN where hidden.
    item : int, optional
        The item id of the chosen arm.
    inner : Note, optional
        The note of the inner policy, if one made the choice.

    Examples
    --------
    >>> note = Note(round=1, epoch=-1, arm=np.array([1.0, np.nan]))
    >>> note.to_dict()["values"]
    [1.0, None]
    """

    round: int
    epoch: int
    arm: FloatArray
    context: FloatArray | None = None
    item: int | None = None
    inner: "Note | None" = None

    def widened(self, dim: int | None, context_dim: int) -> "Note":
        """Return a note for a policy that has learned of more features since: these are hidden."""
        if dim is not None and (n_new := dim - len(self.arm)) > 0:
            self = self._replace(arm=np.pad(self.arm, (0, n_new), constant_values=np.nan))
        if self.context is not None and (n_new := context_dim - len(self.context)) > 0:
            self = self._replace(context=np.pad(self.context, (0, n_new), constant_values=np.nan))
        return self

    def check(self, round: int, epoch: int, dim: int, context_dim: int) -> None:
        """Raise an error unless a policy with these figures can have made the decision."""
        n, n_context = len(self.arm), 0 if self.context is None else len(self.context)
        if self.round > round or self.epoch > epoch or n > dim or n_context > context_dim:
            made, known = (self.round, self.epoch, n, n_context), (round, epoch, dim, context_dim)
            raise UnknownDecisionError(
                "this policy cannot have made the decision: round, epoch, features and context "
                f"features are {made}, and {known} are the largest so far"
            )

    def __deepcopy__(self, memo: dict[int, Any]) -> "Note":
        return self  # nobody changes it, and thousands may wait

    def to_dict(self) -> dict[str, Any]:
        """Return the note as plain JSON types; hidden values are null."""
        return {
            "round": self.round,
            "epoch": self.epoch,
            "values": _plain_row(self.arm),
            "context": None if self.context is None else _plain_row(self.context),
            "item": self.item,
            "inner": None if self.inner is None else self.inner.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Any) -> "Note":
        """Build a note from what `to_dict` returned; a mistake raises some exception."""
        context, item, inner = (plain.get(name) for name in ("context", "item", "inner"))
        return cls(
            checks.integer("round", plain["round"], 1),
            checks.integer("epoch", plain["epoch"], -1),
            _row(plain["values"]),
            None if context is None else _row(context),
            None if item is None else checks.integer("item", item, 0, LARGEST_ITEM),
            None if inner is None else cls.from_dict(inner),
        )


class Choice(NamedTuple):
    """What a policy decided in a round.

    Attributes
    ----------
    arm : int
        Index of the chosen arm.
    parts : ndarray, shape (3, n_arms)
        Score, estimate and width of each arm.
    epoch : int
        −1 without epochs.
    probabilities : ndarray, shape (n_arms,), optional
        With which the arm was drawn; None if it was not drawn.

    Examples
    --------
    >>> choice = Choice.best(estimates=[0.1, 0.3], widths=[0.5, 0.2])
    >>> choice.arm, choice.parts.round(1).tolist()
    (0, [[0.6, 0.5], [0.1, 0.3], [0.5, 0.2]])
    """

    arm: int
    parts: FloatArray
    epoch: int = -1
    probabilities: FloatArray | None = None

    @classmethod
    def best(cls, estimates: Any, widths: Any = 0.0) -> "Choice":
        """Return the choice of the arm with the largest estimate plus width; ties go to the first.

        >>> Choice.best([0.1, 0.3, 0.3]).arm
        1
        """
        parts = np.empty((3, len(estimates)))
        parts[1], parts[2] = estimates, widths
        np.add(parts[1], parts[2], out=parts[0])
        return cls(int(parts[0].argmax()), parts)


class Scores(NamedTuple):
    """What a policy expects of arms, without choosing one.

    Attributes
    ----------
    estimates, widths : ndarray, shape (n_arms,)

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> policy = AmbientOful(dim=1)
    >>> policy.learn_logged([[1.0], [1.0], [1.0]], [1.0, 1.0, 1.0])
    >>> policy.score([[1.0], [2.0]]).estimates.tolist()
    [0.75, 1.5]
    """

    estimates: FloatArray
    widths: FloatArray


class Decision:
    """A choice, with scores and probabilities.

    Immutable. It carries what `learn` needs, also through `to_dict` and `from_dict`, so a policy
    keeps no list of its decisions.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> decision = AmbientOful(dim=2).choose([[1.0, float("nan")], [0.5, 0.0]])
    >>> decision.arm, decision.round, decision.probability
    (0, 1, 1.0)
    >>> decision.values.tolist(), decision.mask.tolist()
    ([1.0, 0.0], [True, False])
    """

    __slots__ = (
        "_arm",
        "_id",
        "_items",
        "_note",
        "_parts",
        "_places",
        "_policy",
        "_probabilities",
        "_request",
    )

    def __init__(
        self,
        policy: str,
        arm: int,
        note: Note,
        parts: FloatArray,
        probabilities: FloatArray | None = None,
        *,
        id: str = "",
        items: Sequence[Item] | None = None,
        request: Any = None,
        places: Sequence[tuple[int, float]] = (),
    ) -> None:
        """Take over the arrays.

        `policy` is the name of the policy's class, `parts` has shape (3, n_arms): scores,
        estimates, widths. Without `probabilities` the choice was not drawn. `items` name the arms.
        An agent adds the id, what it was asked, and arm and probability of further places.
        """
        self._policy, self._note, self._parts = policy, note, parts
        self._probabilities = probabilities
        self._arm, self._id = arm, id
        self._items = None if items is None else tuple(items)
        self._request = request
        self._places = tuple(places)

    @property
    def arm(self) -> int:
        """Index of the chosen arm in its slate."""
        return self._arm

    @property
    def id(self) -> str:
        """Unique among the decisions of all agents; empty if no agent made it."""
        return self._id

    @property
    def policy(self) -> str:
        """Name of the class of the policy that made it."""
        return self._policy

    @property
    def note(self) -> Note:
        """What the policy needs to learn the reward."""
        return self._note

    @property
    def request(self) -> Any:
        """What an agent was asked; None if no agent made it."""
        return self._request

    @property
    def items(self) -> tuple[Item, ...]:
        """Item ids of the options, in their order; without ids the indices of the arms."""
        return tuple(range(self._parts.shape[1])) if self._items is None else self._items

    @property
    def round(self) -> int:
        """Counted from 1."""
        return self._note.round

    @property
    def epoch(self) -> int:
        """Counted from 0; −1 during burn-in and for policies without epochs."""
        return self._note.epoch

    @property
    def values(self) -> FloatArray:
        """The chosen arm, zero where hidden; read-only, shape (dim,)."""
        return zero_filled(self._note.arm)

    @property
    def mask(self) -> BoolArray:
        """True where the chosen arm is seen; read-only, shape (dim,)."""
        return seen_entries(self._note.arm)

    @property
    def scores(self) -> FloatArray:
        """Score of each arm, its estimate plus its width; read-only, shape (n_arms,)."""
        return read_only(self._parts[0])

    @property
    def estimates(self) -> FloatArray:
        """Estimated reward of each arm; read-only, shape (n_arms,)."""
        return read_only(self._parts[1])

    @property
    def widths(self) -> FloatArray:
        """Confidence width of each arm; read-only, shape (n_arms,)."""
        return read_only(self._parts[2])

    @property
    def probabilities(self) -> FloatArray:
        """Probability of each arm, given all that the policy knew; read-only, shape (n_arms,)."""
        if self._probabilities is not None:
            return read_only(self._probabilities)
        certain = np.zeros(self._parts.shape[1])
        certain[self.arm] = 1.0
        return read_only(certain)

    @property
    def probability(self) -> float:
        """Probability of the chosen arm; 1 if the choice was deterministic."""
        return 1.0 if self._probabilities is None else float(self._probabilities[self.arm])

    @property
    def item(self) -> Item:
        """The chosen item."""
        return self._arm if self._items is None else self._items[self._arm]

    @property
    def chosen(self) -> tuple[Item, ...]:
        """The items of all places, if an agent was asked for the top k; the first one first."""
        items = self.items
        return (self.item, *(items[arm] for arm, _ in self._places))

    @property
    def chosen_probabilities(self) -> tuple[float, ...]:
        """Probability of the item of each place, given the places before it."""
        return (self.probability, *(probability for _, probability in self._places))

    @property
    def ranking(self) -> tuple[Item, ...]:
        """The chosen items, then the others by score."""
        scores, items = self._parts[0].tolist(), self.items
        places = {arm: at for at, arm in enumerate([self.arm, *(arm for arm, _ in self._places)])}
        last = len(places)
        order = sorted(range(len(scores)), key=lambda arm: (places.get(arm, last), -scores[arm]))
        return tuple(items[arm] for arm in order)

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain JSON types; hidden values are null.

        For an agent's decision the id replaces what `learn` needs, which the agent keeps.
        """
        own: dict[str, Any] = {"policy": self._policy, "arm": self.arm} | self._note.to_dict()
        if self._id:
            own = {"id": self.id, "item": self.item, "items": list(self.items)}
            own |= {"ranking": list(self.ranking), "round": self.round, "epoch": self.epoch}
            own["chosen"] = list(self.chosen)
            own["chosen_probabilities"] = list(self.chosen_probabilities)
        return own | {
            "scores": self.scores.tolist(),
            "estimates": self.estimates.tolist(),
            "widths": self.widths.tolist(),
            "probability": self.probability,
            "probabilities": self.probabilities.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: Any) -> "Decision":
        """Build the decision of a policy from what `to_dict` returned.

        Raises
        ------
        InvalidInputError
            A field is missing, of the wrong type, or not finite.
        """
        try:
            parts = [
                [checks.real(name, value) for value in plain[name]]
                for name in ("scores", "estimates", "widths")
            ]
            arm = checks.integer("arm", plain["arm"], 0)
            if not arm < len(parts[0]) == len(parts[1]) == len(parts[2]):
                raise ValueError("scores, estimates and widths must have an entry for each arm")
            policy = checks.text("policy", plain["policy"])
            law = _checked_law(plain["probabilities"], arm, len(parts[0]))
            note = Note.from_dict(plain)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"not a decision: {type(error).__name__}: {error}") from None
        except RecursionError:
            raise InvalidInputError("not a decision: inner policies are nested too deep") from None
        return cls(policy, arm, note, np.array(parts), law)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.id, self.arm, self.round))

    def __repr__(self) -> str:
        if self._id:
            return f"Decision(id={self.id!r}, item={self.item!r}, round={self.round})"
        return f"Decision(arm={self.arm}, round={self.round}, epoch={self.epoch})"

    def _repr_html_(self) -> str:
        columns = (self.estimates, self.widths, self.scores, self.probabilities)
        rows = zip(self.items, *(each.tolist() for each in columns), strict=True)
        ranked = sorted(rows, key=lambda row: (row[0] != self.item, -row[3]))
        cells = [
            [item, *(checks.significant(value) for value in values)] for item, *values in ranked
        ]
        return html_table([["item", "estimate", "width", "score", "probability"], *cells])


def text_table(cells: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines with aligned columns.

    >>> print(text_table([("item", "score"), ("hat", "1")]))
    item  score
    hat   1
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


def html_table(cells: Sequence[Sequence[object]]) -> str:
    """Return rows of cells as an HTML table; the first row is its head.

    >>> html_table([["item", "score"], ["<hat>", 1]])
    '<table><tr><th>item</th><th>score</th></tr><tr><td>&lt;hat&gt;</td><td>1</td></tr></table>'
    """
    head, *rows = [[html.escape(str(cell)) for cell in row] for row in cells]
    body = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows)
    return f"<table><tr><th>{'</th><th>'.join(head)}</th></tr>{body}</table>"


def _plain_row(row: FloatArray) -> list[float | None]:
    return [None if math.isnan(value) else value for value in row.tolist()]


def _row(values: Any) -> FloatArray:
    row = [math.nan if value is None else checks.real("values", value) for value in values]
    seen: FloatArray = Slate([row]).table[0]
    return seen


def _checked_law(given: Any, arm: int, n_arms: int) -> FloatArray | None:
    law = np.array([checks.real("probabilities", value) for value in given])
    is_law = len(law) == n_arms and law.min() >= 0.0 and abs(law.sum() - 1.0) <= 1e-9
    if not is_law or law[arm] == 0.0:
        raise ValueError("probabilities must add up to 1, and be above 0 for the arm")
    return None if law[arm] == 1.0 else law


def checked_reward(reward: Any, place: str = "") -> float:
    """Return a reward as a float if it is a finite number."""
    if isinstance(reward, float | Real | np.bool_):  # float first: it is the common case
        value = checks.as_float(reward)
        if -LARGEST <= value <= LARGEST:
            return value
    got = checks.shown(reward)
    raise InvalidRewardError(
        f"a reward must be a finite number of size at most {LARGEST:g}, got {got}{place}"
    )


def checked_rewards(rewards: Any, n_rewards: int) -> list[float]:
    """Return rewards as floats if they are as many finite numbers as there should be."""
    rewards = listed(rewards)
    if isinstance(rewards, str | bytes | Mapping) or not isinstance(rewards, Iterable):
        raise InvalidRewardError(f"rewards must be a list of numbers, got {rewards!r}")
    values = [checked_reward(reward, f" in place {at}") for at, reward in enumerate(rewards)]
    if len(values) != n_rewards:
        raise InvalidRewardError(f"there must be {n_rewards} rewards, got {len(values)}")
    return values


def listed(column: Any) -> Any:
    """Return a column of numpy, pandas, polars or pyarrow as a list; anything else as it is."""
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, name):
            return getattr(column, name)()
    return column
