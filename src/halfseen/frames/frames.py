"""Reads data frames of any library that narwhals knows, column by column."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from halfseen.errors import InvalidTableError
from halfseen.frames.cells import date_refusal, nested_refusal, read_cells
from halfseen.frames.rows import Item, Labels, Rows
from halfseen.values import FloatArray

if TYPE_CHECKING:
    from halfseen.frames.reading import Reader


def read_frame(native: Any, reader: "Reader") -> Rows:
    """Return the rows of a data frame."""
    frame = _frame(native)
    kinds = {name: kind for name, kind in frame.schema.items() if reader.reads(str(name))}
    # All columns of floats at once, which saves most of the time.
    floats = [
        name
        for name, kind in kinds.items()
        if kind.is_float() and str(name) not in reader.categorical
    ]
    read: dict[str, FloatArray | Labels] = {str(name): [] for name in kinds}
    if floats:
        block = np.asarray(frame.select(*floats).to_numpy(), dtype=np.float64)
        read.update(zip(map(str, floats), block.T, strict=True))
    for name in kinds.keys() - set(floats):
        column, categorical = frame.get_column(name), str(name) in reader.categorical
        read[str(name)] = _values(str(name), column, kinds[name], categorical)
    return Rows(_items(frame, reader), tuple(read), list(read.values()))


def _frame(native: Any) -> Any:
    from halfseen.frames.reading import FORMS

    if hasattr(native, "set_axis") and hasattr(native, "columns"):  # pandas, with any names
        native = native.set_axis([str(name) for name in native.columns], axis=1)
    try:
        frame = nw.from_native(native, pass_through=True, allow_series=True)
    except Exception as error:  # the object's own code runs here; or two columns have one name
        _check_names(getattr(native, "column_names", getattr(native, "columns", ())))
        raise InvalidTableError(f"the table cannot be read: {error}") from None
    if isinstance(frame, nw.DataFrame):
        _check_names(frame.columns)
        return frame
    if isinstance(frame, nw.LazyFrame):
        raise InvalidTableError("the table is lazy: call .collect() on it first")
    if isinstance(frame, nw.Series):
        raise InvalidTableError(
            "one column is no table: options must be "
            f"{FORMS}; one row of a pandas frame is frame.loc[[label]]"
        )
    raise InvalidTableError(f"options must be {FORMS}, got {type(native).__name__}")


def _check_names(names: Iterable[Any]) -> None:
    from halfseen.frames.reading import twice

    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        raise twice(next(text for text in texts if texts.count(text) > 1))


def _items(frame: Any, reader: "Reader") -> list[Item]:
    if reader.id is not None:
        found = {name: None for name in frame.columns if name != reader.id}
        if len(found) < len(frame.columns):
            found[reader.id] = frame.get_column(reader.id).to_list()
        return reader.ids_in(found, len(frame))
    index = nw.maybe_get_index(frame)
    if index is None:
        return list(range(len(frame)))
    return reader.items(index.tolist(), "the index")


def _values(name: str, column: Any, kind: Any, categorical: bool) -> FloatArray | Labels:
    if kind.is_temporal():
        raise date_refusal(name, f"got {kind}")
    if kind.is_nested():
        raise nested_refusal(name, f"got {kind}")
    if kind in (nw.Categorical, nw.Enum):
        return read_cells(name, column.to_list(), categorical=True)
    if not categorical and (kind.is_numeric() or kind == nw.Boolean):
        numbers = column.to_numpy()
        if numbers.dtype.kind in "fiub":  # not so for decimals, or booleans with holes
            return np.asarray(numbers, dtype=np.float64)
    return read_cells(name, column.to_list(), categorical=categorical)
