"""The results folder of a run as typed data frames."""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from halfseen.errors import StoreError
from halfseen.simulation.tables import (
    DIAGNOSTICS,
    INTEGERS,
    PER_SEED,
    SUMMARY,
    TEXTS,
    TRAJECTORIES,
    Mean,
    mean_of,
)
from halfseen.studies.spec import Study

_FILES = {
    "per_seed.csv": PER_SEED,
    "summary.csv": SUMMARY,
    "trajectories.csv.gz": TRAJECTORIES,
    "diagnostics.csv": DIAGNOSTICS,
}


class Point(NamedTuple):
    """Where methods meet: a setting of a study and an observation probability in it."""

    setting: str
    p: float | None

    def __str__(self) -> str:
        """Return what people read, without the name that a single setting has.

        >>> str(Point("default", 0.3)), str(Point("blocks", None)), str(Point("default", None))
        ('p = 0.3', 'blocks', '')
        """
        prob = "" if self.p is None else f"p = {self.p:g}"
        if self.setting == "default":
            return prob
        # Some settings carry their probability in the name.
        named = self.p is None or f"p{self.p:g}" in self.setting
        return self.setting if named else f"{self.setting}, {prob}"


@dataclass(frozen=True, slots=True)
class Results:
    """What a run left behind.

    The frames have the columns of `simulation.tables`. `p` is NaN where a world has none, and
    numbers are NaN where a cell failed.
    """

    folder: Path
    per_seed: pd.DataFrame
    summary: pd.DataFrame
    trajectories: pd.DataFrame
    diagnostics: pd.DataFrame
    manifest: dict[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> "Results":
        """Read a results folder.

        Raises
        ------
        StoreError
            A file is missing or damaged; the message names it and says what to do.
        """
        folder = Path(folder)
        per_seed, summary, trajectories, diagnostics = (
            _frame(folder / name, columns) for name, columns in _FILES.items()
        )
        manifest = _manifest(folder / "manifest.json")
        return cls(folder, per_seed, summary, trajectories, diagnostics, manifest)

    def regrets(self, point: Point, method: str) -> "pd.Series[float]":
        """Return the final regrets of a method by seed, without failed cells."""
        found = rows(self.per_seed, point, method)
        return found.set_index("seed")["final_regret"].dropna().sort_index()

    def mean(self, point: Point, method: str) -> Mean:
        """Return mean final regret and its standard error; both None where nothing was run."""
        return mean_of(self.regrets(point, method).tolist())

    def has(self, point: Point, method: str) -> bool:
        """Tell whether a method was run and has a regret."""
        return not self.regrets(point, method).empty

    def diagnostic(self, point: Point, method: str, name: str) -> pd.DataFrame:
        """Return a diagnostic of a method: one row per seed, one column per position."""
        found = rows(self.diagnostics, point, method)
        found = found[(found["name"] == name) & found["value"].notna()]
        # What `pivot_table` does, in a third of the time.
        return found.groupby(["seed", "position"])["value"].mean().unstack()

    def horizon(self, point: Point, method: str) -> int | None:
        """Return the last round that a method played, None where it did not."""
        rounds = rows(self.trajectories, point, method)["round"]
        return None if rounds.empty else int(rounds.max())


def rows(frame: pd.DataFrame, point: Point, method: str) -> pd.DataFrame:
    """Return the rows of a method at a point."""
    at = frame["p"].isna() if point.p is None else frame["p"] == point.p
    return frame[at & (frame["setting"] == point.setting) & (frame["method"] == method)]


def points_of(study: Study, settings: tuple[str, ...] | None = None) -> list[Point]:
    """Return all points of a study, or those of some settings, in its order."""
    return [
        Point(name, p)
        for name, setting in study.settings.items()
        if settings is None or name in settings
        for p in setting.worlds()
    ]


def _frame(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        # As texts first: pandas' own numbers are not exact in every version, and a method may be
        # called "nan".
        texts = pd.read_csv(path, dtype=str, keep_default_na=False)
        return pd.DataFrame({name: _column(texts, name) for name in columns})
    except FileNotFoundError:
        raise StoreError(f"{path} is not there: {_REMEDY}") from None
    except (ValueError, OverflowError, OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path} is damaged ({error}): {_REMEDY}") from None


def _column(texts: pd.DataFrame, name: str) -> "pd.Series[Any]":
    """Return a column in its type; only numbers that are not whole may be missing."""
    if name not in texts:
        raise ValueError(f"it has no column {name!r}")
    values = ["" if pd.isna(text) else text for text in texts[name]]
    if name in TEXTS or name in INTEGERS:
        if "" in values:
            raise ValueError(f"column {name!r} is empty in line {values.index('') + 2}")
        if name in TEXTS:
            return pd.Series(values, dtype="str")
        return pd.Series([int(value) for value in values], dtype="int64")
    return pd.Series([float(value or "nan") for value in values], dtype="float64")


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{path} is not there: {_REMEDY}") from None
    except (ValueError, RecursionError, OSError) as error:
        raise StoreError(f"{path} is damaged ({error}): {_REMEDY}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("versions", {}), dict):
        raise StoreError(f"{path} is damaged (it is not a table of tables): {_REMEDY}")
    return manifest


_REMEDY = "run the study again into this folder; finished cells are not repeated"
