"""What the paper has and what was published for it, with ours over the same seeds."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from halfseen.measures import MEASURE
from halfseen.report.data import Point, Results
from halfseen.report.look import in_paper, label_of
from halfseen.report.verdicts import paired_difference
from halfseen.simulation.tables import Mean, mean_of
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.published import Figure, Key, published
from halfseen.studies.published_summary import (
    SummaryComparison,
    compare_summary,
    published_summary,
)
from halfseen.studies.spec import Study


class Comparison(NamedTuple):
    """A published mean and ours over the seeds that both have.

    Attributes
    ----------
    point : Point
    method : str
    exact : bool
        Whether nothing in the policy is random.
    n : int
        Seeds compared.
    published, ours : Mean
    deviation : float
        The largest difference of a seed where `exact`, else the mean difference in standard errors
        of the paired difference (NaN where it has none).
    """

    point: Point
    method: str
    exact: bool
    n: int
    published: Mean
    ours: Mean
    deviation: float


def reproduces_paper(study: Study) -> bool:
    """Tell whether a study is one of the package's, at any scale and perhaps narrowed.

    Another study may have the same name; then its title, figures or claims differ.
    """
    if study.name not in ORDER:
        return False
    ours = builtin_study(study.name)
    return (study.title, study.figures, study.claims) == (ours.title, ours.figures, ours.claims)


def not_from_paper(study: Study) -> list[str]:
    """Return the labels of the policies that are not from the paper, for a study of the package.

    The list is empty for a user's own study: its report does not speak of the paper.
    """
    if not reproduces_paper(study):
        return []
    policies = {
        key: None
        for setting in study.settings.values()
        for key, method in setting.methods.items()
        if method.policy != MEASURE
    }
    return [label_of(key) for key in policies if not in_paper(key)]


def repeats(study: Study, setting: str, method: str) -> bool:
    """Tell whether a study has a method, as it is, in a setting of the package's study."""
    if study.name not in ORDER:
        return False
    ours = study.settings.get(setting)
    theirs = builtin_study(study.name).settings.get(setting)
    return (
        ours is not None
        and theirs is not None
        and ours.world == theirs.world
        and ours.methods.get(method) == theirs.methods.get(method)
    )


def published_for(study: Study) -> dict[Key, Figure]:
    """Return what was published for a study, as far as the study repeats what was published.

    A study at another size, or with other methods under the same names, has nothing to compare.
    """
    figures = published(study.name)
    return {
        key: figure for key, figure in figures.items() if repeats(study, key.setting, key.method)
    }


def compare(results: Results, figures: Mapping[Key, Figure]) -> list[Comparison]:
    """Return published means with ours over the same seeds, for all that both have."""
    groups: dict[tuple[Point, str, bool], dict[int, float]] = {}
    for key, figure in figures.items():
        place = Point(key.setting, key.p), key.method, figure.exact
        groups.setdefault(place, {})[key.seed] = figure.final_regret
    found = []
    for (point, method, exact), regrets in groups.items():
        theirs, ours = pd.Series(regrets), results.regrets(point, method)
        seeds = ours.index.intersection(theirs.index)
        if seeds.empty:
            continue
        ours, theirs = ours[seeds], theirs[seeds]
        largest = float((ours - theirs).abs().max())
        deviation = largest if exact else in_standard_errors(ours, theirs)
        means = mean_of(theirs.tolist()), mean_of(ours.tolist())
        found.append(Comparison(point, method, exact, len(seeds), *means, deviation))
    return found


def in_standard_errors(ours: "pd.Series[float]", theirs: "pd.Series[float]") -> float:
    """Return the mean paired difference in its standard errors; NaN where it has none."""
    difference, _ = paired_difference(ours, theirs)
    if difference.mean == 0:
        return 0.0
    if difference.mean is None or not difference.standard_error:
        return math.nan
    return difference.mean / difference.standard_error


def compare_means(study: Study, results: Results) -> SummaryComparison | None:
    """Return published means over seeds with ours, None where there is nothing to compare.

    Methods of which a published seed was not run are left out.
    """
    means = [m for m in published_summary(study.name) if repeats(study, "default", m.method)]
    if not means:
        return None
    per_seed = results.per_seed.to_dict("records")
    found = compare_summary(per_seed, results.diagnostics.to_dict("records"), means)
    return found if found.excesses else None
