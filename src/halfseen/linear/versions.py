"""Arrays and entries of which many versions exist; each stays right, whatever others become."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Columns = tuple[NDArray[Any], ...]
Places = Any  # what indexes the rows of an array
K = TypeVar("K")
V = TypeVar("V")


class Version:
    """One version of some arrays; all versions share the memory of the newest one.

    A write makes a newer version and keeps here what it overwrote. So it costs as much as the rows
    that it changes, as long as only the newest version is used. An older version that is used again
    copies the arrays and takes back what was written since (Baker, Shallow binding makes functional
    arrays fast, 1991).

    Examples
    --------
    >>> old = Version(np.zeros(3))
    >>> new = old.written([1], (5.0,))
    >>> new.columns[0].tolist(), old.columns[0].tolist()
    ([0.0, 5.0, 0.0], [0.0, 0.0, 0.0])
    """

    __slots__ = ("_cause", "_columns", "_newer", "_undo")

    def __init__(self, *columns: NDArray[Any]) -> None:
        self._columns: Columns = columns
        self._newer: Version | None = None
        self._cause: Any = None
        self._undo: tuple[Places, Columns] | None = None

    @property
    def columns(self) -> Columns:
        """The arrays, which nobody else may change."""
        if self._newer is not None:
            self._part()
        return self._columns

    def written(
        self, places: Places, values: Any, *, cause: Any = None, is_new: bool = False
    ) -> "Version":
        """Return the version with other values in some rows of each array.

        Writing again for the same cause gives the same version. Rows that are new need not be kept:
        no older version reads them.
        """
        if self._newer is not None and cause is not None and self._cause is cause:
            return self._newer
        columns = self._columns if self._newer is None else self.columns
        newer = object.__new__(Version)
        newer._columns, newer._newer, newer._undo, newer._cause = columns, None, None, None
        # In this order an interrupt does no harm: from now on this version takes back the rest.
        self._undo = None if is_new else (places, tuple([each[places].copy() for each in columns]))
        self._cause, self._newer = cause, newer
        for column, value in zip(columns, values, strict=True):
            column[places] = value
        return newer

    def _part(self) -> None:
        """Copy the arrays of the newest version and take back what was written since this one."""
        at, undone = self, []
        while at._newer is not None:
            undone.append(at._undo)
            at = at._newer
        columns = tuple([each.copy() for each in at._columns])
        for places, values in filter(None, reversed(undone)):
            for column, value in zip(columns, values, strict=True):
                column[places] = value
        self._columns, self._newer, self._undo, self._cause = columns, None, None, None

    def __deepcopy__(self, memo: dict[int, Any]) -> "Version":
        return Version(*(each.copy() for each in self.columns))


class Entries(Generic[K, V]):
    """A dictionary of which many versions exist, as those of a `Version` do.

    Examples
    --------
    >>> old = Entries({1: "a"})
    >>> new = old.plus(2, "b").without(1)
    >>> new.now, old.now
    ({2: 'b'}, {1: 'a'})
    """

    __slots__ = ("_entries", "_newer", "_undo")

    def __init__(self, entries: Mapping[K, V] | None = None) -> None:
        self._entries: dict[K, V] = dict(entries or {})
        self._newer: Entries[K, V] | None = None
        self._undo: Any = None

    @property
    def now(self) -> dict[K, V]:
        """The entries of this version, which nobody else may change."""
        if self._newer is not None:
            at, undone = self, []
            while at._newer is not None:
                undone.append(at._undo)
                at = at._newer
            entries = at._entries.copy()
            for key, value in reversed(undone):
                entries[key] = value
            kept = {key: value for key, value in entries.items() if value is not _NOTHING}
            self._entries, self._newer, self._undo = kept, None, None
        return self._entries

    def plus(self, key: K, value: V) -> "Entries[K, V]":
        """Return the entries with another value of a key."""
        entries, newer = self.now, self._next(key)
        entries[key] = value
        return newer

    def without(self, key: K) -> "Entries[K, V]":
        """Return the entries without a key."""
        entries, newer = self.now, self._next(key)
        del entries[key]
        return newer

    def _next(self, key: K) -> "Entries[K, V]":
        """Return the next version, before a key changes; this one takes it back from now on."""
        newer: Entries[K, V] = Entries.__new__(Entries)
        newer._entries, newer._newer, newer._undo = self._entries, None, None
        self._undo, self._newer = (key, self._entries.get(key, _NOTHING)), newer
        return newer

    def __deepcopy__(self, memo: dict[int, Any]) -> "Entries[K, V]":
        return Entries(deepcopy(self.now, memo))


_NOTHING: Any = object()
_FIRST_ROOM = 64


class Growing:
    """Columns that grow row by row; all versions share the memory of the longest one.

    A version that is no longer the longest copies the columns before it grows.

    Examples
    --------
    >>> few = Growing([np.zeros(0), np.zeros((0, 2))])
    >>> more, other = few.plus((1.0, [2.0, 3.0])), few.plus((4.0, [5.0, 6.0]))
    >>> [each.columns[0].tolist() for each in (few, more, other)]
    [[], [1.0], [4.0]]
    """

    __slots__ = ("_longest", "_memory", "_n_rows")

    def __init__(self, columns: Iterable[NDArray[Any]]) -> None:
        self._memory: Columns = tuple(columns)
        self._n_rows = len(self._memory[0])
        self._longest = [self._n_rows]  # shared by all versions

    def __len__(self) -> int:
        return self._n_rows

    @property
    def columns(self) -> Columns:
        """Views of the columns, which must not be changed."""
        return tuple([each[: self._n_rows] for each in self._memory])

    def plus(self, row: Iterable[Any]) -> "Growing":
        """Return the columns with one more row."""
        n = self._n_rows
        more = object.__new__(Growing)
        more._memory, more._longest, more._n_rows = self._memory, self._longest, n + 1
        if self._longest[0] > n or len(self._memory[0]) == n:
            more._memory = tuple([_with_room(each, n) for each in self._memory])
            more._longest = [n]
        for column, value in zip(more._memory, row, strict=True):
            column[n] = value
        more._longest[0] = n + 1
        return more


def _with_room(column: NDArray[Any], n_rows: int) -> NDArray[Any]:
    wider = np.zeros((max(_FIRST_ROOM, 2 * n_rows), *column.shape[1:]), dtype=column.dtype)
    wider[:n_rows] = column[:n_rows]
    return wider
