"""What the theory bounds, measured on a realization: by name, so that a study can ask for it.

A measure is a function from a realization (and settings) to named lists of numbers, which end up in
`diagnostics.csv`, as those of the policies do.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.measures.coverage import coverage
from halfseen.measures.excitation import excitation
from halfseen.measures.freezing import freezing
from halfseen.measures.regression import algorithm_1_run
from halfseen.measures.representation import gram, representation, subspace_error
from halfseen.worlds.base import Realization

MEASURE = "measure"
"""Stands for a policy in a method that measures instead of playing."""

Measure = Callable[..., dict[str, list[float]]]

MEASURES: Mapping[str, Measure] = {
    "algorithm-1": algorithm_1_run,
    "coverage": coverage,
    "excitation": excitation,
    "freezing": freezing,
    "gram": gram,
    "representation": representation,
    "subspace-error": subspace_error,
}


def measure_named(name: Any) -> Measure:
    """Return the measure of a name."""
    return MEASURES[checks.one_of("measure", name, tuple(MEASURES))]


def check_measure(*, measure: Any = None, **settings: Any) -> None:
    """Raise InvalidSettingError unless `measure` names a measure that has these settings."""
    known = list(inspect.signature(measure_named(measure)).parameters)[1:]  # not the realization
    for name in settings:
        if name not in known:
            raise InvalidSettingError(
                f"is not a setting of {measure}, which has {known}", name=name
            )


def measured(realization: Realization, *, measure: str, **settings: Any) -> dict[str, list[float]]:
    """Return what a measure finds on a realization."""
    check_measure(measure=measure, **settings)
    return measure_named(measure)(realization, **settings)
