"""Published figures beside ours."""

import math

import pandas as pd

from halfseen.report.data import Point, Results
from halfseen.report.verdicts import paired_difference
from halfseen.simulation.tables import mean_of
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.published import published
from halfseen.studies.spec import Study

COLUMNS = ("setting", "p", "method", "seed", "final_regret", "kind")
"""Of published figures: `kind` is "exact" or "statistical"."""

COMPARED = (
    "setting",
    "p",
    "method",
    "kind",
    "n",
    "published_mean",
    "published_se",
    "our_mean",
    "our_se",
    "deviation",
)
"""Of the comparison: the largest difference of a seed, or the mean one in standard errors."""


def published_for(study: Study) -> pd.DataFrame:
    """Return what was published for a study, as far as the study repeats what was published.

    A study at another size, or with other methods under the same names, has nothing to compare.
    """
    rows = []
    for key, figure in published(study.name).items():
        if repeats(study, key.setting, key.method):
            kind = "exact" if figure.exact else "statistical"
            rows.append((*key, figure.final_regret, kind))
    return pd.DataFrame(rows, columns=list(COLUMNS))


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


def compare(results: Results, published: pd.DataFrame) -> pd.DataFrame:
    """Return published means beside ours over the same seeds, for all that both have.

    Parameters
    ----------
    published : DataFrame
        With the columns `COLUMNS`.
    """
    rows = []
    for key, group in published.groupby(
        ["setting", "p", "method", "kind"], sort=False, dropna=False
    ):
        setting, p, method, kind = key
        point = Point(str(setting), None if pd.isna(p) else float(p))
        theirs = group.set_index("seed")["final_regret"]
        ours = results.regrets(point, str(method))
        seeds = ours.index.intersection(theirs.index)
        if seeds.empty:
            continue
        told, found = mean_of(theirs[seeds].tolist()), mean_of(ours[seeds].tolist())
        if kind == "exact":
            deviation = float((ours[seeds] - theirs[seeds]).abs().max())
        else:
            deviation = in_standard_errors(ours[seeds], theirs[seeds])
        rows.append((point.setting, point.p, method, kind, len(seeds), *told, *found, deviation))
    return pd.DataFrame(rows, columns=list(COMPARED))


def in_standard_errors(ours: "pd.Series[float]", theirs: "pd.Series[float]") -> float:
    """Return the mean paired difference in its standard errors; NaN where it has none."""
    difference, _ = paired_difference(ours, theirs)
    if difference.mean == 0:
        return 0.0
    if difference.mean is None or not difference.standard_error:
        return math.nan
    return difference.mean / difference.standard_error
