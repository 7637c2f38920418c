"""Finished cells on disk: a run that was cut off goes on where it stopped."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from halfseen.errors import StoreError
from halfseen.simulation.cells import Cell, CellKey, Result

Key = tuple[Any, ...]
"""A `CellKey`, and the fingerprint of the cell."""


class Store:
    """A folder with one line of JSON per finished cell, from which tables are made.

    Lines are appended, each in one write, so that a process that is killed leaves at most one
    broken line at the end. It is ignored, and cut off before the next line is written.

    Parameters
    ----------
    folder : path
        Made when the first result arrives.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._results = dict(self._read())

    @property
    def path(self) -> Path:
        """The file of finished cells."""
        return self.folder / "cells.jsonl"

    def get(self, cell: Cell) -> Result | None:
        """Return what came out of a cell, or None if it has not been run (or has changed)."""
        return self._results.get((*cell.key, cell.fingerprint))

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells to run: those without a result, and those that failed."""
        return [cell for cell in cells if (found := self.get(cell)) is None or not found.finished]

    def add(self, cell: Cell, result: Result) -> None:
        """Keep the result of a cell, in the file before this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        line = {**cell.key._asdict(), "fingerprint": cell.fingerprint, "result": result.to_dict()}
        text = json.dumps(line, allow_nan=False) + "\n"
        self._mend()
        with self.path.open("ab") as file:
            file.write(text.encode())
        self._results[(*cell.key, cell.fingerprint)] = result

    def forget(self, cells: Sequence[Cell]) -> None:
        """Remove what is known of some cells, so that they are run again."""
        gone = {(*cell.key, cell.fingerprint) for cell in cells} & set(self._results)
        if not gone:
            return
        lines = self.path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if (read := _read(line)) is None or read[0] not in gone]
        draft = self.path.with_suffix(".draft")
        draft.write_bytes(b"".join(kept))
        draft.replace(self.path)  # all or nothing
        self._results = {key: found for key, found in self._results.items() if key not in gone}

    def _mend(self) -> None:
        """Make the file end with a whole line."""
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return
            file.seek(-1, os.SEEK_END)
            if file.read(1) == b"\n":
                return
            file.seek(0)
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if _read(content[whole:]) is None:
                file.truncate(whole)
            else:
                file.write(b"\n")  # only the end of the line was cut off

    def _read(self) -> Iterator[tuple[Key, Result]]:
        if not self.path.exists():
            return
        lines = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            found = _read(line)
            if found is not None:
                yield found
            elif number < len(lines) and line.strip():
                raise StoreError(
                    f"{self.path}, line {number} is not a finished cell, got {line[:60]!r}: remove "
                    "the line or the file"
                )


def _read(line: bytes) -> tuple[Key, Result] | None:
    """Return the cell and the result of a line, or None if it holds none."""
    try:
        plain = json.loads(line)
        key = tuple(plain[name] for name in (*CellKey._fields, "fingerprint"))
        told = plain["result"]
        for name in ("rounds", "regret", "ranks"):
            told[name] = tuple(told[name])
        return key, Result(**told)
    except (ValueError, KeyError, TypeError):
        return None
