"""A result that a thread computes."""

import threading
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A result that is computed in a separate thread: the next epoch, while the current one serves.

    Copies of a policy share it: nobody changes the result. A pickle of it is None.

    Parameters
    ----------
    work : callable
        Must not use anything that changes while it runs.
    n_known : int
        Rows of the history that it knows.

    Examples
    --------
    >>> background = Background(lambda: 6 * 7)
    >>> background.wait()
    >>> background.is_done, background.result()
    (True, 42)
    """

    def __init__(self, work: Callable[[], T], n_known: int = 0) -> None:
        self._work, self.n_known = work, n_known
        self._found: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="halfseen refit", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # there are too many threads
            self._error = error

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:
            self._error = error

    @property
    def is_done(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    @property
    def is_lost(self) -> bool:
        """Whether it ended without a result: a process that is forked has no threads."""
        return self.is_done and not self._found and self._error is None

    def wait(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def result(self) -> T:
        """Return what was computed; a RuntimeError, also for an interrupt, if nothing was."""
        if self._error is not None:
            raise RuntimeError("there is no result") from self._error
        return self._found[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()
