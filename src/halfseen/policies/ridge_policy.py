"""What policies share whose whole knowledge is one regression in all features."""

from typing import Any

from halfseen.core.ridge import Ridge
from halfseen.core.span_ridge import SpanRidge
from halfseen.policies.base import Note, Policy


class RidgePolicy(Policy):
    """Learns rewards on the arm as it was seen, what is hidden counting as zero, and nothing else.

    Subclasses set `_model` and say how to choose from it.
    """

    _model: Ridge | SpanRidge

    @property
    def current_rank(self) -> int:
        """All features."""
        return self.dim

    def _learn(self, note: Note, reward: float) -> None:
        self._model.update(note.arm, reward)

    def _state(self) -> dict[str, Any]:
        return self._model.state()

    def _restore(self, state: dict[str, Any]) -> None:
        self._model.restore(state)
