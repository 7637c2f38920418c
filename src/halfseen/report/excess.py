"""Regret above what nobody can avoid, where a world knows how much that is."""

import pandas as pd

from halfseen.report.data import Point, Results, points_of
from halfseen.report.table import FinalTable, markdown_table
from halfseen.simulation.tables import mean_of
from halfseen.studies.spec import Study

EXCESS = (
    "setting",
    "p",
    "method",
    "n",
    "mean_irreducible",
    "se_irreducible",
    "mean_excess",
    "se_excess",
)
"""Columns of `excess.csv`."""


def irreducible_at(results: Results, point: Point) -> "pd.Series[float]":
    """Return the irreducible regret at a point by seed; empty where no world tells it."""
    told = results.diagnostics
    at = told["p"].isna() if point.p is None else told["p"] == point.p
    found = told[at & (told["setting"] == point.setting) & (told["name"] == "irreducible")]
    return found.drop_duplicates("seed").set_index("seed")["value"].sort_index()


def excess_table(study: Study, results: Results) -> pd.DataFrame:
    """Return mean irreducible regret and mean excess of every method, paired seed by seed.

    Returns
    -------
    table : DataFrame
        With the columns `EXCESS`; empty where no world tells what is irreducible.
    """
    rows = []
    for point in points_of(study):
        irreducible = irreducible_at(results, point)
        for method in study.methods:
            regrets = results.regrets(point, method)
            excess = (regrets - irreducible).dropna()
            if excess.empty:
                continue
            unavoidable = mean_of(irreducible[excess.index].tolist())
            mean = mean_of(excess.tolist())
            rows.append((point.setting, point.p, method, len(excess), *unavoidable, *mean))
    return pd.DataFrame(rows, columns=list(EXCESS))


def write_excess(study: Study, results: Results) -> pd.DataFrame:
    """Write `excess.csv` into the folder of a run, and return it; remove it where there is none."""
    table, path = excess_table(study, results), results.folder / "excess.csv"
    if table.empty:
        path.unlink(missing_ok=True)
    else:
        table.to_csv(path, index=False, lineterminator="\n")
    return table


def excess_section(study: Study, results: Results, table: pd.DataFrame) -> str:
    """Return what the page says about it, empty where there is nothing to say."""
    if table.empty:
        return ""
    renamed = table.rename(columns={"mean_excess": "mean_regret", "se_excess": "se_regret"})
    final = FinalTable.of(renamed, study)
    heads = final.heads()
    lines = [
        "| " + " | ".join([*heads, "seeds", "irreducible part"]) + " |",
        "| " + " | ".join(["---"] * len(heads) + ["---:", "---:"]) + " |",
    ]
    for point in final.points:
        found = irreducible_at(results, point)
        mean, error = mean_of(found.tolist())
        told = f"{mean:.1f}" if error is None else f"{mean:.1f} ± {error:.1f}"
        cells = [*final.head(point), str(len(found)), told]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([_MEANING, "", *lines, "", _BELOW, "", markdown_table(final)])


_MEANING = (
    "Most of these regrets is not the methods' doing: the trained classifier itself, with nothing "
    "hidden, gets some of the very rounds wrong that were played. That part, mean ± standard error "
    "over seeds:"
)
_BELOW = "Mean final regret above it ± standard error, paired seed by seed:"
