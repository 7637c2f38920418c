"""Objects that change in steps, each of which is done or undone as a whole."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Steps:
    """An object whose attributes are its state.

    Any exception, an interrupt included, leaves it exactly as it was: when a step fails, every
    attribute is set back to the object that it held before. So a step assigns a new object to an
    attribute and never changes the old one in place: `self._sum = self._sum + reward`, not
    `self._sums.append(reward)`. Then forks are independent as well, whatever happens to each. A
    part that is too large to copy in every step can be a value of `halfseen.linear.versions`.
    """

    def fork(self) -> Self:
        """Return an independent copy that shares the values of attributes."""
        fork = object.__new__(type(self))
        fork.__dict__.update(self.__dict__)
        return fork

    def __copy__(self) -> Self:
        return deepcopy(self)  # also right if a step of somebody's class edits in place

    def _attempt(self, step: Callable[..., T], *given: Any, keep: bool = True) -> T:
        """Do a step; if it fails, or unless changes are kept, undo it."""
        before, is_kept = self.__dict__.copy(), False
        try:
            result = step(*given)
            is_kept = keep
            return result
        finally:
            if not is_kept:
                self.__dict__ = before
