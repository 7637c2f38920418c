"""What an agent decided: which item, and how all items rank."""

import json
from typing import Any

from halfseen.tables import Item
from halfseen.values import FloatArray


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
        All options by score, the best first; among equals the chosen one is first.
    round, epoch : int
        As in `halfseen.Decision`.
    scores, estimates, widths : ndarray, shape (n_options,)
        In the order of `items`: score = estimate + width.
    """

    __slots__ = ("_arm", "_parts", "epoch", "id", "items", "round")

    def __init__(
        self, id: str, items: tuple[Item, ...], arm: int, parts: FloatArray, round: int, epoch: int
    ) -> None:
        self.id, self.items = id, items
        self.round, self.epoch = round, epoch
        self._arm = arm
        parts.setflags(write=False)
        self._parts: tuple[FloatArray, ...] = tuple(parts)

    @property
    def item(self) -> Item:
        """The chosen option."""
        return self.items[self._arm]

    @property
    def ranking(self) -> tuple[Item, ...]:
        """All options by score, the best first."""
        scores, arm = self._parts[0].tolist(), self._arm
        order = sorted(range(len(scores)), key=lambda each: (-scores[each], each != arm))
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
        }

    def to_json(self) -> str:
        """Return the decision as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __repr__(self) -> str:
        return f"AgentDecision(id={self.id!r}, item={self.item!r}, round={self.round})"
