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
    if study.name in ORDER:
        full = builtin_study(study.name)
        for key, figure in published(study.name).items():
            ours, theirs = study.settings.get(key.setting), full.settings.get(key.setting)
            same = (
                ours is not None
                and theirs is not None
                and ours.world == theirs.world
                and ours.methods.get(key.method) == theirs.methods.get(key.method)
            )
            if same:
                kind = "exact" if figure.exact else "statistical"
                rows.append((*key, figure.final_regret, kind))
    return pd.DataFrame(rows, columns=list(COLUMNS))


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
