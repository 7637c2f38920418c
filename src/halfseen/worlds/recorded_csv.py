"""Recorded arms from a .csv file: one line per offered arm, empty cells are holes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InvalidInputError, InvalidSettingError
from halfseen.lazy import from_extra
from halfseen.tables.encoder import Encoder
from halfseen.tables.rows import Labels, Rows
from halfseen.values import FloatArray
from halfseen.worlds.recorded import Columns, present

if TYPE_CHECKING:
    from pandas import DataFrame

CHOSEN = "chosen"
"""A column of this name says what was played; it is never a feature."""


def read_csv(
    file: Path, columns: Columns, source: str
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """Return the arrays of a file as `record_arrays` takes them, and the line of each row.

    Messages call the file `source`. A column of texts alone is a category, one feature per text. A
    text among numbers is an error, and so are more texts than categories can have.

    Raises
    ------
    InvalidInputError
        Names the line and the column, the value got, and the remedy.
    """
    frame = _frame(file, source)
    names = tuple(str(name) for name in frame.columns)
    rounds = _rounds(frame, present(columns.round, names, source), source)
    paid = [name for name in (columns.mean, columns.reward) if name in names]
    if len(paid) != 1:
        raise InvalidInputError(
            f"{source} must have one of the columns {columns.mean!r} and {columns.reward!r}, got "
            f"{paid or list(names)}: rename or remove columns, or set mean_column, reward_column"
        )
    features = _features(names, columns, source)
    _check_twins(frame, columns, source)
    arms, feature_names = _arms(frame, features, source)
    arrays = {
        "arms": arms,
        "means" if paid == [columns.mean] else "rewards": _numbers(
            frame, paid[0], source, "correct it"
        ),
        "rounds": rounds,
        "features": np.array(feature_names),
    }
    return arrays, frame.index.to_numpy() + 2  # the header is line 1


def _frame(file: Path, source: str) -> "DataFrame":
    with from_extra("paper", "give the table as arrays: TableWorld.from_arrays"):
        import pandas as pd

    try:
        # Blank lines are read as rows, so that the index gives the number of the line.
        given: Any = {"skip_blank_lines": False, "skipinitialspace": True}
        header = pd.read_csv(file, header=None, nrows=1, dtype=str, **given).iloc[0].dropna()
        frame = pd.read_csv(file, low_memory=False, **given)
    except pd.errors.EmptyDataError:
        raise InvalidInputError(f"{source} is empty: its first line must name columns") from None
    except (pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise InvalidInputError(f"{source} cannot be read as a table: {error}") from None
    if not header.is_unique:  # pandas would call the second one "x.1"
        name = header[header.duplicated()].iloc[0]
        raise InvalidInputError(f"column {name!r} is twice in {source}: rename or remove one")
    if not isinstance(frame.index, pd.RangeIndex):
        raise InvalidInputError(f"{source} has lines with more cells than its first line has names")
    frame = frame.dropna(how="all")
    if not len(frame):
        raise InvalidInputError(f"{source} has no lines below its first: nothing was recorded")
    return frame


def _features(names: tuple[str, ...], columns: Columns, source: str) -> tuple[str, ...]:
    """Return the columns that are features: those listed, or all that have no other meaning."""
    if columns.features is not None:
        meanings = {CHOSEN: "what was played", columns.mean: "the mean reward"}
        for name, meaning in {**meanings, columns.reward: "the reward"}.items():
            if name in columns.features:
                raise InvalidSettingError(
                    f"must not have {name!r}, which is {meaning} and no feature of an option: "
                    f"rename it in {source} if it is something else",
                    name="features",
                )
        if len(set(columns.features)) < len(columns.features):
            raise InvalidSettingError(
                f"must name every column once, got {list(columns.features)}", name="features"
            )
        return tuple(present(name, names, source) for name in columns.features)
    others = {columns.round, columns.arm, columns.mean, columns.reward, CHOSEN}
    found = tuple(name for name in names if name not in others)
    if not found:
        raise InvalidInputError(
            f"{source} has no features: no column besides {sorted(others & set(names))}"
        )
    return found


def _arms(
    frame: "DataFrame", features: tuple[str, ...], source: str
) -> tuple[FloatArray, list[str]]:
    """Return all features, shape (n_rows, dim), and their names, in the order of the columns."""
    values: list[FloatArray | Labels] = []
    for name in features:
        column = frame[name]
        remedy = "correct it, leave it empty, or list the other columns in `features`"
        values.append(
            _labels(column, source) if _is_text(column) else _numbers(frame, name, source, remedy)
        )
    table, encoder, _ = Encoder(max_columns=len(features)).table(
        Rows(list(range(len(frame))), features, values)
    )
    places: list[int] = []
    names: list[str] = []
    for name in features:
        known = encoder.columns.get(name)
        if known is None:
            raise InvalidInputError(f"feature {name!r} was never recorded: leave it out")
        places += known.features
        names += [f"{name}={level}" for level in known.levels] or [name]
    return np.take(table, places, axis=1), names


def _is_text(column: Any) -> bool:
    import pandas as pd

    return bool(column.notna().any() and pd.to_numeric(column, errors="coerce").isna().all())


def _labels(column: Any, source: str) -> Labels:
    n_levels, most = column.nunique(), Encoder.max_levels
    if n_levels > most:
        raise InvalidInputError(
            f"column {str(column.name)!r} of {source} has {n_levels} different texts, more than "
            f"the {most} that categories can have: list the other columns in `features`"
        )
    return [str(cell) if seen else None for cell, seen in zip(column, column.notna(), strict=True)]


def _numbers(frame: "DataFrame", name: str, source: str, remedy: str) -> FloatArray:
    import pandas as pd

    column = frame[name]
    parsed = pd.to_numeric(column, errors="coerce")
    numbers: FloatArray = parsed.to_numpy(dtype=np.float64, na_value=np.nan)
    texts = np.flatnonzero(column.notna().to_numpy() & np.isnan(numbers))
    if len(texts):
        row = int(texts[0])
        raise InvalidInputError(
            f"column {name!r} must be numbers, got {column.iloc[row]!r} in line "
            f"{frame.index[row] + 2} of {source}: {remedy}"
        )
    return numbers


def _rounds(frame: "DataFrame", name: str, source: str) -> NDArray[np.int64]:
    numbers = _numbers(frame, name, source, "correct it")
    whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**53)
    if not whole.all():
        row = int(np.argmin(whole))
        raise InvalidInputError(
            f"column {name!r} must be whole numbers, got {numbers[row]} in line "
            f"{frame.index[row] + 2} of {source}"
        )
    return numbers.astype(np.int64)


def _check_twins(frame: "DataFrame", columns: Columns, source: str) -> None:
    if columns.arm not in frame.columns:
        return
    twins = np.flatnonzero(frame.duplicated([columns.round, columns.arm]).to_numpy())
    if len(twins):
        row = frame.iloc[int(twins[0])]
        raise InvalidInputError(
            f"arm {row[columns.arm]} is twice in round {row[columns.round]}, the second time in "
            f"line {frame.index[int(twins[0])] + 2} of {source}"
        )
