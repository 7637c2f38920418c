"""Modules that are loaded at first use, and optional libraries."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from halfseen.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LazyModule:
    """Import a module when one of its attributes is first used: compiled loops load slowly.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> LazyModule("math").sqrt(4.0)
    2.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        setattr(self, attribute, found)  # next time a plain attribute lookup
        return found


@contextmanager
def from_extra(extra: str, otherwise: str = "") -> Iterator[None]:
    """Turn a failed import inside the block into an error that names the extra to install.

    Parameters
    ----------
    extra : str
    otherwise : str
        An alternative that the message offers.

    Raises
    ------
    MissingExtraError

    Examples
    --------
    >>> with from_extra("paper"):
    ...     import crystal_ball
    Traceback (most recent call last):
    halfseen.errors.MissingExtraError: crystal_ball is missing: pip install 'halfseen[paper]' ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        alternative = f", or {otherwise}" if otherwise else ""
        raise MissingExtraError(
            f"{error.name} is missing: pip install 'halfseen[{extra}]'{alternative}"
        ) from None


def new_axes(width: float, height: float) -> "Axes":
    """Return the axes of a new figure, whose size is in inches."""
    with from_extra("paper"):
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height), layout="constrained").subplots()
