"""Tables larger than memory, part by part: Parquet files and folders, and data frames of Dask.

Rows have numbers: those of files in the order of their names ("part.2" before "part.10"), those of
a Dask frame in the order of its partitions. What is drawn by number does not depend on the parts.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InvalidTableError
from halfseen.lazy import from_extra
from halfseen.values import FloatArray

_CELLS, _ROWS = 2_500_000, 65_536  # of a batch of a Parquet file, at most
_INDEX = re.compile("__(null_dask_index|index_level_[0-9]+)__")  # of a frame, without a name
_GROUP = 8  # sums that are added up at once

T = TypeVar("T")


class Parts(ABC):
    """A table in parts, which are data frames of one library.

    Attributes
    ----------
    empty : frame
        The columns, without rows.
    """

    empty: Any

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Yield the parts in order; one at a time is in memory."""

    def sum(self, function: Callable[[Any], FloatArray]) -> Any:
        """Return the sum of what a function returns for each part that has rows."""
        return _sum(function(part) for part in self if len(part))

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> Any:
        """Return the rows with some numbers, in ascending order, as one frame."""

    @abstractmethod
    def transformed(self, function: Callable[[Any], FloatArray], names: Sequence[str]) -> Any:
        """Return the parts after a function of each that returns these columns."""


def parts_of(table: Any) -> Parts | None:
    """Return the parts of a Parquet file or folder or of a Dask frame; None for other tables.

    Raises
    ------
    InvalidTableError
        A folder has no Parquet files, one of them cannot be read, or has other columns.
    """
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        return _Parquet(path) if path.is_dir() or _is_parquet(path) else None
    if type(table).__module__.startswith("dask.") and hasattr(table, "map_partitions"):
        return _Dask(table)
    return None


def logs_of(parts: Parts, reward: Any, context: Any) -> Iterator[tuple[Any, list[Any], Any]]:
    """Yield of each part of a log its other columns, its rewards, and its contexts or None.

    Raises
    ------
    InvalidTableError
        `reward` or `context` does not name columns.
    """
    from narwhals import from_native

    known = list(from_native(parts.empty).columns)
    names = [context] if isinstance(context, str) else list(context or ())
    for name in (reward, *names):
        if not isinstance(name, str) or name not in known:
            raise InvalidTableError(
                "of a log in parts, rewards and context must be names of its columns "
                f"{', '.join(known[:10])}, got {name!r:.60}"
            )
    others = [name for name in known if name not in (reward, *names)]
    for part in parts:
        if len(part):
            # Numbers of rows in an index are not ids: those of parts differ.
            frame = from_native(part.reset_index() if _has_ids(part) else part)
            given = [*others, *(name for name in frame.columns if name not in known)]
            about = frame.select(names).to_native() if names else None
            yield frame.select(given).to_native(), frame[reward].to_list(), about


def _has_ids(part: Any) -> bool:
    return getattr(getattr(part, "index", None), "name", None) is not None


def whole(table: FloatArray) -> Parts:
    """Return an array in memory as a single part."""
    return _Whole(table)


def _is_parquet(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


class _Whole(Parts):
    def __init__(self, table: FloatArray) -> None:
        self.empty = table[:0]
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[FloatArray]:
        yield self._table

    def take(self, rows: NDArray[np.int64]) -> FloatArray:
        return self._table[rows]

    def transformed(
        self, function: Callable[[Any], FloatArray], names: Sequence[str]
    ) -> FloatArray:
        return function(self._table)


class _Parquet(Parts):
    """Parquet files, read in batches of rows."""

    def __init__(self, path: Path) -> None:
        with from_extra("parquet"):
            from pyarrow.parquet import ParquetFile
        found = [path] if path.is_file() else sorted(path.rglob("*.parquet"), key=_natural)
        if not found:
            raise InvalidTableError(f"{path} has no Parquet files: none is called *.parquet")
        self._files = {}
        for file in found:
            with _reading(file), ParquetFile(file) as opened:
                self._files[file] = opened.metadata.num_rows
                table = opened.schema_arrow.empty_table()
            own = [name for name in table.column_names if not _INDEX.fullmatch(name)]
            if file == found[0]:
                self.empty, names = table.select(own), own
            for name in sorted({*names} ^ {*own}):
                has, lacks = (file, found[0]) if name in own else (found[0], file)
                raise InvalidTableError(f"{lacks} has no column {name!r}, which {has} has")

    def __len__(self) -> int:
        return sum(self._files.values())

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        names = self.empty.column_names
        size = max(1, min(_ROWS, _CELLS // max(1, len(names))))
        for path in self._files:
            # Buffered: otherwise a whole row group is in memory.
            with _reading(path), ParquetFile(path, buffer_size=1 << 20) as file:
                for batch in file.iter_batches(size, columns=names):
                    yield pa.Table.from_batches([batch]).select(names)

    def take(self, rows: NDArray[np.int64]) -> Any:
        import pyarrow as pa

        first, found = 0, []
        for batch in self:
            inside = rows[np.searchsorted(rows, first) : np.searchsorted(rows, first + len(batch))]
            found.append(batch.take(inside - first))
            first += len(batch)
        try:
            return pa.concat_tables([self.empty, *found], promote_options="permissive")
        except (TypeError, ValueError) as error:  # of pyarrow
            raise InvalidTableError(f"the files have columns of other types: {error}") from None

    def transformed(
        self, function: Callable[[Any], FloatArray], names: Sequence[str]
    ) -> Iterator[Any]:
        import pyarrow as pa

        for batch in self:
            if len(batch):
                yield pa.table(dict(zip(names, np.asarray(function(batch)).T, strict=True)))


class _Dask(Parts):
    """The partitions of a Dask frame."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.empty = frame._meta

    @cached_property
    def _sizes(self) -> list[int]:
        return [int(size) for size in self._frame.map_partitions(len).compute()]

    def __len__(self) -> int:
        return sum(self._sizes)

    def __iter__(self) -> Iterator[Any]:
        for part in self._frame.to_delayed():
            yield part.compute()

    def sum(self, function: Callable[[Any], FloatArray]) -> Any:
        import dask

        of_rows = dask.delayed(_of_rows)
        sums = [of_rows(function, part) for part in self._frame.to_delayed()]
        while len(sums) > 1:  # so that few are in memory at once
            groups = [sums[at : at + _GROUP] for at in range(0, len(sums), _GROUP)]
            sums = [dask.delayed(_sum)(group) for group in groups]
        return sums[0].compute()

    def take(self, rows: NDArray[np.int64]) -> Any:
        import dask
        import pandas as pd

        sizes = self._sizes
        ends = np.cumsum(sizes)
        inside = np.split(rows, np.searchsorted(rows, ends))
        found = dask.compute(
            *(
                dask.delayed(_take)(part, some - first)
                for part, first, some in zip(
                    self._frame.to_delayed(), ends - sizes, inside, strict=False
                )
                if len(some)
            )
        )
        return pd.concat([self.empty, *found]) if found else self.empty

    def transformed(self, function: Callable[[Any], FloatArray], names: Sequence[str]) -> Any:
        import pandas as pd

        meta = pd.DataFrame({name: np.empty(0) for name in names}, index=self.empty.index)
        return self._frame.map_partitions(partial(_transformed, function, meta), meta=meta)


def _of_rows(function: Callable[[Any], T], frame: Any) -> T | None:
    """Return what a function returns for a partition; None for an empty one."""
    return function(frame) if len(frame) else None


def _take(frame: Any, rows: NDArray[np.int64]) -> Any:
    return frame.take(rows)


def _sum(found: Iterable[Any]) -> Any:
    """Return the sum of what partitions with rows returned; None if all are empty."""
    total = None
    for each in found:
        if each is not None:
            total = each if total is None else total + each
    return total


def _transformed(function: Callable[[Any], FloatArray], empty: Any, frame: Any) -> Any:
    """Return a partition after a function of it."""
    if not len(frame):
        return empty
    return type(empty)(np.asarray(function(frame)), columns=empty.columns, index=frame.index)


def _natural(path: Path) -> list[Any]:
    """Return a key that sorts part.2 before part.10."""
    pieces = re.split(r"(\d+)", str(path))
    return [int(piece) if piece.isdecimal() else piece for piece in pieces]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what pyarrow says of a damaged file into an error that names the file."""
    try:
        yield
    except (ValueError, OSError) as error:
        if isinstance(error, InvalidTableError):
            raise
        raise InvalidTableError(f"{path} cannot be read as Parquet: {error}") from None
