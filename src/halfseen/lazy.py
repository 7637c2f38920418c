"""Modules that are loaded at first use, and optional libraries."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, metadata
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
    halfseen.errors.MissingExtraError: crystal_ball is missing (extra paper): pip install ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(str(error.name), extra, otherwise) from None


def missing(module: str, extra: str, otherwise: str = "") -> MissingExtraError:
    """Return the error that a module is missing, with all libraries of the extra that are.

    Libraries, not the extra itself: that could only be installed from the same place as halfseen.
    """
    root = module.partition(".")[0].replace("_", "-")
    wanted = " ".join(f"'{each}'" for each in _missing(extra)) or root
    alternative = f", or {otherwise}" if otherwise else ""
    return MissingExtraError(
        f"{module} is missing (extra {extra}): pip install {wanted}{alternative}"
    )


def _missing(extra: str) -> list[str]:
    """Return requirements of an extra that are not installed."""
    found = []
    with suppress(metadata.PackageNotFoundError):  # of halfseen itself
        for line in metadata.requires("halfseen") or ():
            requirement, _, condition = line.partition(";")
            name = re.match(r"[\w.-]+", requirement)
            if name is None or not re.search(rf"extra == ['\"]{extra}['\"]", condition):
                continue
            try:
                metadata.version(name[0])
            except metadata.PackageNotFoundError:
                found.append(requirement.strip())
    return found


def new_axes(width: float, height: float) -> "Axes":
    """Return the axes of a new figure, whose size is in inches."""
    with from_extra("paper"):
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height), layout="constrained").subplots()
