"""What keeps of the offered arms what an estimate of their subspace needs."""

from typing import Any, Protocol

from halfseen.values import FloatArray


class Collector(Protocol):
    """Moments, or a sample of the arms themselves."""

    n_arms: int

    def reserve(self, table: FloatArray) -> Any:
        """Return what `add` needs for these arms, doing all that may fail and changing nothing."""

    def add(self, table: FloatArray, reserved: Any) -> None:
        """Add arms, NaN where hidden, shape (n, dim), given what `reserve` returned for them."""

    def state(self) -> dict[str, Any]:
        """Return the whole state of this collector."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
