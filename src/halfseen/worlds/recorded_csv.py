"""Recorded arms from a .csv file: one line per offered arm, empty cells are holes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InvalidInputError
from halfseen.lazy import from_extra
from halfseen.values import FloatArray
from halfseen.worlds.recorded import Columns, present

if TYPE_CHECKING:
    from pandas import DataFrame


def read_csv(
    file: Path, columns: Columns, source: str
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """Return the arrays of a file as `record_arrays` takes them, and the line of each row.

    Messages call the file `source`. A column of texts alone is no feature; a text among numbers is
    an error.

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
    features = _features(frame, columns, source)
    _check_twins(frame, columns, source)
    arrays = {
        "arms": np.column_stack([_numbers(frame, name, source) for name in features]),
        "means" if paid == [columns.mean] else "rewards": _numbers(frame, paid[0], source),
        "rounds": rounds,
        "features": np.array(features),
    }
    return arrays, frame.index.to_numpy() + 2  # the header is line 1


def _frame(file: Path, source: str) -> "DataFrame":
    with from_extra("paper", "give the table as arrays: TableWorld.from_arrays"):
        import pandas as pd

    try:
        # Blank lines are read as rows, so that the index gives the number of the line.
        frame = pd.read_csv(file, low_memory=False, skip_blank_lines=False, skipinitialspace=True)
    except pd.errors.EmptyDataError:
        raise InvalidInputError(f"{source} is empty: its first line must name columns") from None
    except (pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise InvalidInputError(f"{source} cannot be read as a table: {error}") from None
    if not isinstance(frame.index, pd.RangeIndex):
        raise InvalidInputError(f"{source} has lines with more cells than its first line has names")
    frame = frame.dropna(how="all")
    if not len(frame):
        raise InvalidInputError(f"{source} has no lines below its first: nothing was recorded")
    return frame


def _features(frame: "DataFrame", columns: Columns, source: str) -> tuple[str, ...]:
    import pandas as pd

    names = tuple(str(name) for name in frame.columns)
    if columns.features is not None:
        return tuple(present(name, names, source) for name in columns.features)
    others = {columns.round, columns.arm, columns.mean, columns.reward}
    found = []
    for name in names:
        column = frame[name]
        texts = column.notna().any() and pd.to_numeric(column, errors="coerce").isna().all()
        if name not in others and not texts:
            found.append(name)
    if not found:
        raise InvalidInputError(
            f"{source} has no features: no column of numbers besides {sorted(others & set(names))}"
        )
    return tuple(found)


def _numbers(frame: "DataFrame", name: str, source: str) -> FloatArray:
    import pandas as pd

    column = frame[name]
    parsed = pd.to_numeric(column, errors="coerce")
    numbers: FloatArray = parsed.to_numpy(dtype=np.float64, na_value=np.nan)
    texts = np.flatnonzero(column.notna().to_numpy() & np.isnan(numbers))
    if len(texts):
        row = int(texts[0])
        raise InvalidInputError(
            f"column {name!r} must be numbers, got {column.iloc[row]!r} in line "
            f"{frame.index[row] + 2} of {source}: correct it, leave it empty, or list the other "
            f"columns in `features`"
        )
    return numbers


def _rounds(frame: "DataFrame", name: str, source: str) -> NDArray[np.int64]:
    numbers = _numbers(frame, name, source)
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
