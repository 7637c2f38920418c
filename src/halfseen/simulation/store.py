"""Finished cells on disk: an interrupted run continues where it stopped."""

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from halfseen.errors import StudyError
from halfseen.simulation.cells import Cell, CellKey, Result

try:
    import fcntl
except ImportError:  # Windows: two runs are not kept apart there
    fcntl = None  # type: ignore[assignment]

_FILE = "cells.jsonl"


class Store:
    """A folder with one line of JSON per finished cell, from which tables are made.

    A cell is found by its fingerprint, not by its key: a cell that a study has twice is run once.
    A cell without a fingerprint is not stored.

    Lines are appended, each in one write, so that a killed process leaves at most one broken line.
    A line that is broken, or has another checksum than its result, counts as not there.

    Parameters
    ----------
    folder : path
        Made when the first result arrives.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._read_file()

    def _read_file(self) -> None:
        content = self.path.read_bytes() if self.path.exists() else b"\n"
        found = (_read(line) for line in content.split(b"\n"))
        self._results = dict(each for each in found if each is not None)
        self._is_cut = not content.endswith(b"\n")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes from writing to the folder meanwhile, and read what they wrote.

        Raises
        ------
        StudyError
            Another process is writing.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder):
            self._read_file()
            yield

    @property
    def path(self) -> Path:
        """The file of finished cells."""
        return self.folder / _FILE

    def get(self, cell: Cell) -> Result | None:
        """Return the result of a cell, or None if it has not been run (or has changed)."""
        return None if cell.fingerprint is None else self._results.get(cell.fingerprint)

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells to run, each once: those without a result, and those that failed."""
        missing: dict[str | CellKey, Cell] = {}
        for cell in cells:
            found = self.get(cell)
            if found is None or found.status != "ok":
                missing.setdefault(cell.fingerprint or cell.key, cell)
        return list(missing.values())

    def add(self, cell: Cell, result: Result) -> None:
        """Store the result of a cell; it is in the file when this returns."""
        if cell.fingerprint is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        plain = asdict(result)
        line = {**cell.key._asdict(), "fingerprint": cell.fingerprint, "result": plain}
        self._append(json.dumps({**line, "checksum": _checksum(plain)}, allow_nan=False).encode())
        self._results[cell.fingerprint] = result

    def _append(self, line: bytes) -> None:
        with self.path.open("ab") as file:
            file.write((b"\n" if self._is_cut else b"") + line + b"\n")
        self._is_cut = False

    def merge(self, folders: Iterable[str | os.PathLike[str]]) -> tuple[int, int]:
        """Add the finished cells of other folders, each once.

        Returns
        -------
        tuple of int
            The number of cells that are new, and of damaged lines, which are left out.

        Raises
        ------
        StudyError
            A folder has no finished cells, or two of them have different results of one cell.
        """
        paths = [Path(folder) / _FILE for folder in folders]
        for path in paths:
            if not path.exists():
                raise StudyError(f"{path.parent} has no finished cells: there is no {_FILE}")
        new: dict[str, bytes] = {}
        n_damaged = 0
        with self.writing():
            found = {key: (result, self.folder) for key, result in self._results.items()}
            for path in paths:
                for line in path.read_bytes().split(b"\n"):
                    if (each := _read(line)) is None:
                        n_damaged += bool(line)
                        continue
                    key, result = each
                    if key not in found or _better(result, path.parent, *found[key], line):
                        found[key], new[key] = (result, path.parent), line
            for line in new.values():
                self._append(line)
            self._results = {key: result for key, (result, _) in found.items()}
        return len(new), n_damaged


def missing_shards(
    folders: Iterable[str | os.PathLike[str]],
) -> list[tuple[str, int, list[int]]]:
    """Return which shards no folder has: name of the study, number of shards, missing ones.

    A shard that was stopped has no manifest, and counts as missing.
    """
    there: dict[tuple[str, int], set[int]] = {}
    for folder in folders:
        with suppress(OSError, ValueError, KeyError, TypeError):
            manifest = json.loads((Path(folder) / "manifest.json").read_bytes())
            place, n_shards = manifest["shard"]
            there.setdefault((manifest["study"]["name"], n_shards), set()).add(place)
    return [
        (study, n_shards, missing)
        for (study, n_shards), places in there.items()
        if (missing := [at for at in range(1, n_shards + 1) if at not in places])
    ]


def _better(result: Result, folder: Path, known: Result, other: Path, line: bytes) -> bool:
    """Return whether a result takes the place of one that failed.

    Raises
    ------
    StudyError
        Both are complete and differ in more than their duration.
    """
    if known.status == result.status == "ok" and replace(known, seconds=result.seconds) != result:
        cell = tuple(json.loads(line)[name] for name in CellKey._fields)
        raise StudyError(
            f"{other} and {folder} have different results of {cell}, although code, data and "
            "settings are the same: find out which one is wrong, and leave its folder out"
        )
    return known.status != "ok" and result.status == "ok"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, where the system has one; it ends with the process."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StudyError(
            f"another run is writing to {folder}: wait until it has finished, or choose another "
            "folder"
        ) from None
    finally:
        os.close(descriptor)


def _read(line: bytes) -> tuple[str, Result] | None:
    """Return the fingerprint and the result of a line, or None if it holds none."""
    try:
        plain = json.loads(line)
        fingerprint = plain["fingerprint"]
        if plain["checksum"] != _checksum(plain["result"]) or not isinstance(fingerprint, str):
            return None
        return fingerprint, Result.from_dict(plain["result"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _checksum(result: dict[str, Any]) -> int:
    """Return a number that tells a changed result; JSON keeps every digit."""
    return zlib.crc32(json.dumps(result).encode())
