"""What keeps of the offered arms what an estimate of their subspace needs."""

from typing import Any, Protocol

from halfseen.values import FloatArray, Slate


class Collector(Protocol):
    """Moments, or a sample of the arms themselves.

    Arms wait in, or are kept in, the first `n_waiting` rows of a block. What stands in later rows
    means nothing, so that a compiled loop may write there before anything is decided.
    """

    hidden: float
    """What stands for a hidden entry in the block."""
    n_arms: int
    block: FloatArray

    @property
    def n_waiting(self) -> int:
        """Rows of the block that count."""

    def room_for(self, n_arms: int) -> int:
        """Return how many slates of that size can be claimed without anything that may fail."""

    def claim(self, table: FloatArray) -> None:
        """Add the arms of a table that was copied into the block's next rows.

        A failure changes nothing.
        """

    def claim_all(self, tables: FloatArray) -> None:
        """Add slates of equal size that were copied there, at most `room_for` that size."""

    def prepare(self, slate: Slate, sums: Any = None) -> Any:
        """Return what `commit` needs, doing all that may fail and changing nothing."""

    def commit(self, slate: Slate, prepared: Any) -> None:
        """Add a slate, given what `prepare` returned for it."""

    def state(self) -> dict[str, Any]:
        """Return everything that tells this collector from a fresh one."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
