"""The studies that ship with the package, one data file each."""

from functools import cache

from halfseen import checks
from halfseen.errors import StudyError
from halfseen.studies.reading import package_study
from halfseen.studies.spec import Study

ORDER = (
    "synthetic",
    "synthetic-fh",
    "rank-selection",
    "warm-start",
    "two-phase",
    "scaling",
    "theory",
    "hard-instance",
    "masks",
    "digits",
    "digits-160",
    "mnist",
    "newsgroups",
    "tables",
    "contexts",
    "beyond",
)
"""Names in the order in which `halfseen studies` lists them and `reproduce all` runs them."""

CORE_MINUTES = {
    "synthetic": 2,
    "synthetic-fh": 1,
    "rank-selection": 1,
    "warm-start": 1,
    "two-phase": 11,
    "scaling": 2,
    "theory": 2,
    "hard-instance": 7,
    "masks": 2,
    "digits": 2,
    "digits-160": 1,
    "mnist": 10,
    "newsgroups": 19,
    "tables": 30,
    "contexts": 15,
    "beyond": 10,
}
"""Minutes that each study takes on one core, roughly."""

BEYOND_PAPER = ("masks", "digits-160", "tables", "contexts", "beyond")
"""Studies of which the paper has nothing."""


@cache
def builtin_study(name: str, scale: str = "paper") -> Study:
    """Return a study of the package by name.

    >>> builtin_study("synthetic").seeds == tuple(range(20))
    True
    """
    if name not in ORDER:
        near = checks.did_you_mean(name, ORDER)
        raise StudyError(f"there is no study {name!r}{near or f', there are {list(ORDER)}'}")
    return package_study(name, scale)
