"""What an agent decided: which item, and how all items rank."""

import json
from collections.abc import Sequence
from typing import Any

from halfseen.policies.notes import Choice
from halfseen.tables import Item
from halfseen.values import FloatArray, chances


class AgentDecision:
    """What an agent chose, and why.

    Immutable.

    Attributes
    ----------
    id : str
        Unique among all decisions of all agents; the reward is learned by it.
    item : str or int
        The chosen option.
    items : tuple
        All options, in the order in which they were offered.
    ranking : tuple
        All options: the chosen one, then the others by score, the best first.
    round, epoch : int
        As in `halfseen.Decision`.
    scores, estimates, widths : ndarray, shape (n_options,)
        In the order of `items`: score = estimate + width.
    probability, probabilities
        As in `halfseen.Decision`, in the order of `items`.

    Examples
    --------
    >>> from halfseen import Agent
    >>> decision = Agent(id="sku").choose([{"sku": "hat", "price": 3.0}, {"sku": "coat"}])
    >>> decision.items, decision.item in decision.items
    (('hat', 'coat'), True)
    >>> decision.ranking[0] == decision.item
    True
    >>> decision.probabilities.tolist()  # no reward is known yet
    [0.5, 0.5]
    """

    __slots__ = ("_arm", "_asked", "_parts", "epoch", "id", "items", "probabilities", "round")

    def __init__(
        self, id: str, items: Sequence[Item], choice: Choice, round: int, epoch: int, asked: Any
    ) -> None:
        self.id, self.items = id, tuple(items)
        self.round, self.epoch = round, epoch
        self._asked = asked  # for `Agent.explain`
        self._arm = choice.arm
        choice.parts.setflags(write=False)
        self._parts: tuple[FloatArray, ...] = tuple(choice.parts)
        self.probabilities = chances(choice.probabilities, choice.arm, len(self.items))

    @property
    def item(self) -> Item:
        """The chosen option."""
        return self.items[self._arm]

    @property
    def ranking(self) -> tuple[Item, ...]:
        """The chosen option, then the others by score."""
        scores, arm = self._parts[0].tolist(), self._arm
        order = sorted(range(len(scores)), key=lambda each: (each != arm, -scores[each]))
        return tuple(self.items[each] for each in order)

    @property
    def scores(self) -> FloatArray:
        """Optimistic score of each option."""
        return self._parts[0]

    @property
    def estimates(self) -> FloatArray:
        """Estimated reward of each option."""
        return self._parts[1]

    @property
    def widths(self) -> FloatArray:
        """Confidence width of each option."""
        return self._parts[2]

    @property
    def probability(self) -> float:
        """Probability with which the chosen option was chosen."""
        return float(self.probabilities[self._arm])

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain JSON types."""
        return {
            "id": self.id,
            "item": self.item,
            "items": list(self.items),
            "ranking": list(self.ranking),
            "round": self.round,
            "epoch": self.epoch,
            "scores": self.scores.tolist(),
            "estimates": self.estimates.tolist(),
            "widths": self.widths.tolist(),
            "probability": self.probability,
            "probabilities": self.probabilities.tolist(),
        }

    def to_json(self) -> str:
        """Return the decision as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __repr__(self) -> str:
        return f"AgentDecision(id={self.id!r}, item={self.item!r}, round={self.round})"
