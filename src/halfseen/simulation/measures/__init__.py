"""What is measured on a realization when nobody plays, or beside the play: by name, as data.

A measure is a function from a realization (and settings) to named lists of numbers, which end up in
`diagnostics.csv` beside those that policies tell.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.worlds.base import Realization

MEASURE = "measure"
"""Stands for a policy in a method that measures instead of playing."""

Measure = Callable[..., Mapping[str, Any]]
M = TypeVar("M", bound=Measure)

_MEASURES: dict[str, Measure] = {}


def register_measure(name: str) -> Callable[[M], M]:
    """Make a measure known by a name (a decorator)."""

    def keep(measure: M) -> M:
        _MEASURES[name] = measure
        return measure

    return keep


def measure_named(name: Any) -> Measure:
    """Return the measure of a name."""
    if not isinstance(name, str):
        raise InvalidSettingError(f"must be a text, got {name!r}", name="measure")
    return _MEASURES[checks.one_of("measure", name, tuple(sorted(_MEASURES)))]


def check_measure(*, measure: Any = None, **settings: Any) -> None:
    """Raise InvalidSettingError unless `measure` is the name of a known one with such settings."""
    known = list(inspect.signature(measure_named(measure)).parameters)[1:]  # not the realization
    for name in settings:
        if name not in known:
            raise InvalidSettingError(
                f"is not a setting of {measure}, which has {known}", name=name
            )


def measured(realization: Realization, *, measure: str, **settings: Any) -> dict[str, Any]:
    """Return what a measure finds on a realization."""
    check_measure(measure=measure, **settings)
    return dict(measure_named(measure)(realization, **settings))


# At the end: these register themselves with what is defined above.
from halfseen.simulation.measures import (  # noqa: E402
    coverage,
    freezing,
    regression,
    representation,
    subspaces,
)

assert all((coverage, freezing, regression, representation, subspaces))
