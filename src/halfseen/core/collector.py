"""The interface of what collects offered arms for an estimate of their subspace."""

from typing import Any, Protocol, Self

from halfseen.values import FloatArray


class Collector(Protocol):
    """Moments, or a sample of the arms themselves."""

    n_arms: int

    def fork(self) -> Self:
        """Return a copy that continues in place of this one, which must not be changed any more."""

    def add(self, table: FloatArray) -> None:
        """Add arms, NaN where hidden, shape (n, dim), which must not be changed afterwards."""

    def state(self) -> dict[str, Any]:
        """Return the whole state of this collector."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
