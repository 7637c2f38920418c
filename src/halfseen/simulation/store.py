"""Finished cells on disk: a run that was cut off goes on where it stopped."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from halfseen.errors import StoreError
from halfseen.simulation.cells import Cell, Result


class Store:
    """A folder with one line of JSON per finished cell, from which tables are made.

    Lines are only ever appended, each in one write, so that a process that is killed leaves at
    most one broken line at the end, which is ignored.

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

    def missing(self, cells: Sequence[Cell], *, again: bool = False) -> list[Cell]:
        """Return the cells to run: all of them, or those without a result that worked."""
        if again:
            return list(cells)
        return [cell for cell in cells if (found := self.get(cell)) is None or found.status != "ok"]

    def add(self, cell: Cell, result: Result) -> None:
        """Keep the result of a cell, on disk before this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        line = {**cell.key._asdict(), "fingerprint": cell.fingerprint, "result": result.to_dict()}
        text = json.dumps(line, allow_nan=False) + "\n"
        with self.path.open("ab") as file:
            if file.tell() > 0 and not self._ends_with_a_line():
                text = "\n" + text  # what a killed process left behind
            file.write(text.encode())
        self._results[(*cell.key, cell.fingerprint)] = result

    def _ends_with_a_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _read(self) -> Iterator[tuple[tuple[Any, ...], Result]]:
        if not self.path.exists():
            return
        lines = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            try:
                plain = json.loads(line)
                result = _result_from(plain.pop("result"))
                key = tuple(
                    plain[name]
                    for name in ("study", "setting", "p", "method", "seed", "fingerprint")
                )
            except (ValueError, KeyError, TypeError) as error:
                if number < len(lines) and not line.startswith(b'{"study"'):
                    raise StoreError(
                        f"{self.path}, line {number} is not a finished cell ({error}): remove the "
                        "line or the file"
                    ) from None
                continue  # cut off while it was written
            yield key, result


def _result_from(plain: dict[str, Any]) -> Result:
    for name in ("rounds", "regret", "ranks"):
        plain[name] = tuple(plain[name])
    return Result(**plain)
