"""Decision: what a policy chose and why."""

import json
import math
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidInputError
from halfseen.values.arrays import BoolArray, FloatArray, read_only, seen_entries, zero_filled
from halfseen.values.slate import Slate


class Decision:
    """What a policy chose and why.

    Immutable. Policies create decisions; `from_json` reads one back.

    Attributes
    ----------
    id : str
        Unique among all decisions of all policies.
    arm : int
        Index of the chosen arm in its slate.
    round : int
        Counted from 1.
    epoch : int
        Counted from 0; −1 during burn-in and for policies without epochs.
    values, mask : ndarray, shape (dim,)
        The chosen arm as seen: zero where hidden, True where seen.
    scores, estimates, widths : ndarray, shape (n_arms,)
        The optimistic score of each arm and its two parts: score = estimate + width.
    probabilities : ndarray, shape (n_arms,)
        With which probability each arm was chosen, given all that the policy knew.
    probability : float
        That of the chosen arm; 1 if nothing was drawn.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> decision = AmbientOful(dim=2).choose([[1.0, float("nan")], [0.5, 0.0]])
    >>> decision.arm, decision.round, decision.probability
    (0, 1, 1.0)
    >>> decision.values.tolist(), decision.mask.tolist()
    ([1.0, 0.0], [True, False])
    """

    __slots__ = ("_arm", "_chosen", "_epoch", "_id", "_parts", "_probabilities", "_round")

    def __init__(
        self,
        id: str,
        arm: int,
        round: int,
        epoch: int,
        chosen: FloatArray,
        parts: FloatArray,
        probabilities: FloatArray | None = None,
    ) -> None:
        """Take over the arrays.

        `chosen` is the chosen arm with NaN where hidden, `parts` has shape (3, n_arms): scores,
        estimates, widths. Without `probabilities` the choice was not drawn.
        """
        self._id = id
        self._arm = arm
        self._round = round
        self._epoch = epoch
        self._chosen = chosen
        self._parts = parts
        self._probabilities = probabilities

    @property
    def id(self) -> str:
        """Unique name of this decision among all decisions of all policies."""
        return self._id

    @property
    def arm(self) -> int:
        """Index of the chosen arm in its slate."""
        return self._arm

    @property
    def round(self) -> int:
        """Round of the decision, counted from 1."""
        return self._round

    @property
    def epoch(self) -> int:
        """Epoch of the decision, counted from 0; −1 if there is none."""
        return self._epoch

    @property
    def values(self) -> FloatArray:
        """The chosen arm, zero where hidden; read-only, shape (dim,)."""
        return zero_filled(self._chosen)

    @property
    def mask(self) -> BoolArray:
        """True where the chosen arm is seen; read-only, shape (dim,)."""
        return seen_entries(self._chosen)

    @property
    def scores(self) -> FloatArray:
        """Optimistic score of each arm; read-only, shape (n_arms,)."""
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
        """Probability with which each arm was chosen; read-only, shape (n_arms,)."""
        return chances(self._probabilities, self._arm, self._parts.shape[1])

    @property
    def probability(self) -> float:
        """Probability with which the chosen arm was chosen."""
        return 1.0 if self._probabilities is None else float(self._probabilities[self._arm])

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain JSON types; hidden values are null."""
        return {
            "id": self.id,
            "arm": self.arm,
            "round": self.round,
            "epoch": self.epoch,
            "values": [None if math.isnan(value) else value for value in self._chosen.tolist()],
            "scores": self.scores.tolist(),
            "estimates": self.estimates.tolist(),
            "widths": self.widths.tolist(),
            "probability": self.probability,
            "probabilities": self.probabilities.tolist(),
        }

    def to_json(self) -> str:
        """Return the decision as one line of JSON; floats come back with the same bits."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, plain: Any) -> "Decision":
        """Build a decision from what `to_dict` returned.

        One of an earlier version has no probabilities; it is taken for one that was not drawn.

        Raises
        ------
        InvalidInputError
            A field is missing, of the wrong type, or not finite.
        """
        try:
            id, arm, round, epoch = (plain[name] for name in ("id", "arm", "round", "epoch"))
            for name, value, low in (("arm", arm, 0), ("round", round, 1), ("epoch", epoch, -1)):
                checks.integer(name, value, low)
            values = [math.nan if value is None else _number(value) for value in plain["values"]]
            parts = [
                [_number(value) for value in plain[name]]
                for name in ("scores", "estimates", "widths")
            ]
            if not isinstance(id, str):
                raise TypeError(f"id must be a text, got {id!r}")
            if not arm < len(parts[0]) == len(parts[1]) == len(parts[2]):
                raise ValueError("scores, estimates and widths must have an entry for each arm")
            law = plain.get("probabilities")
            law = None if law is None else _checked_law(law, arm, len(parts[0]))
            table = Slate([values])._table
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"not a decision: {type(error).__name__}: {error}") from None
        return cls(id, arm, round, epoch, table[0], np.array(parts), law)

    @classmethod
    def from_json(cls, text: str) -> "Decision":
        """Build a decision from what `to_json` returned."""
        try:
            plain = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"not a decision: {error}") from None
        return cls.from_dict(plain)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"Decision(arm={self._arm}, round={self._round}, epoch={self._epoch})"


def chances(probabilities: FloatArray | None, arm: int, n_arms: int) -> FloatArray:
    """Return probabilities of arms, read-only; without them the arm is certain.

    >>> chances(None, 1, 3).tolist()
    [0.0, 1.0, 0.0]
    """
    if probabilities is None:
        probabilities = np.zeros(n_arms)
        probabilities[arm] = 1.0
    return read_only(probabilities)


def _checked_law(given: Any, arm: int, n_arms: int) -> FloatArray:
    law = np.array([_number(value) for value in given])
    is_law = len(law) == n_arms and law.min() >= 0.0 and abs(law.sum() - 1.0) <= 1e-9
    if not is_law or law[arm] == 0.0:
        raise ValueError("probabilities must add up to 1, that of the arm above 0")
    return law


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {value!r}")
    return number
