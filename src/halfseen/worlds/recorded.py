"""Recorded arms as arrays: how they are checked, loaded and saved."""

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InvalidInputError, InvalidSettingError
from halfseen.values import LARGEST, FloatArray

_CHUNK = 1 << 16
_CONTENT = ("arms", "means", "rewards", "rounds", "features")


class Columns(NamedTuple):
    """Names of the columns of a table; `features` None means all others."""

    round: str
    arm: str
    mean: str
    reward: str
    features: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Recorded:
    """All offered arms of all rounds, one row per arm.

    Attributes
    ----------
    values : ndarray, shape (n_rows, dim)
        NaN where nothing was recorded.
    payoffs : ndarray, shape (n_rows,)
        Mean rewards, or single rewards if `noisy`.
    starts : ndarray of int, shape (n_rounds + 1,)
        Round i has rows starts[i] to starts[i + 1].
    names : tuple of str
        Of the features.
    shares, sizes : ndarray, shape (dim,)
        Share of recorded entries of each feature, and their root mean square.
    """

    values: FloatArray
    payoffs: FloatArray
    starts: NDArray[np.int64]
    noisy: bool
    names: tuple[str, ...]
    shares: FloatArray
    sizes: FloatArray

    @property
    def n_rounds(self) -> int:
        """Number of recorded rounds."""
        return len(self.starts) - 1

    @property
    def n_arms(self) -> int | None:
        """Number of arms per round, None where it differs."""
        counts = np.diff(self.starts)
        return int(counts[0]) if counts.min() == counts.max() else None

    def to_dict(self) -> NoReturn:
        """Raise InvalidSettingError: arrays are no plain JSON types."""
        raise InvalidSettingError(
            "a table given as arrays has no JSON form: save it first, "
            'world = world.save("table.npz"), and use the world that this returns'
        )

    def contents(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a file of this table holds."""
        rounds = np.repeat(np.arange(self.n_rounds), np.diff(self.starts))
        return {
            "arms": self.values,
            "rewards" if self.noisy else "means": self.payoffs,
            "rounds": rounds,
            "features": np.array(self.names),
        }


def _profile(
    values: NDArray[Any], names: tuple[str, ...], place: Callable[[int], str]
) -> tuple[FloatArray, FloatArray]:
    """Return the number of recorded entries of each feature, and the sum of their squares."""
    seen, squares = np.zeros(len(names)), np.zeros(len(names))
    for first in range(0, len(values), _CHUNK):
        block = np.asarray(values[first : first + _CHUNK], dtype=np.float64)
        too_large = np.argwhere(np.abs(block) > LARGEST)
        if len(too_large):
            row, feature = too_large[0].tolist()
            raise InvalidInputError(
                f"features must be finite and at most {LARGEST:g} in size, got "
                f"{block[row, feature]} in {place(first + row)}, feature {names[feature]!r}: "
                f"correct it, or leave it empty (NaN) if it is not known"
            )
        seen += (block == block).sum(axis=0)
        squares += np.nansum(block**2, axis=0)
    if not seen.all():
        name = names[int(np.argmin(seen))]
        raise InvalidInputError(f"feature {name!r} was never recorded: leave it out")
    return seen, squares


def record_arrays(
    found: Mapping[str, Any],
    features: tuple[str, ...] | None,
    source: str,
    lines: NDArray[np.int64] | None = None,
) -> Recorded:
    """Check arrays by name, "arms", "means" or "rewards", "rounds", "features"; return the table.

    Arms have shape (rounds, n_arms, dim), or are a list of (n_arms, dim) arrays; or they have
    shape (n_rows, dim), with the round of each row in "rounds". `features` are those to use, by
    default all. Messages name `lines` if there are any, those of a text file.
    """
    given = [name for name in ("means", "rewards") if found.get(name) is not None]
    if found.get("arms") is None or len(given) != 1:
        raise InvalidInputError(
            f"{source} must have arms and either means or rewards, got {sorted(found)}"
        )
    values, starts = _rows("arms", found["arms"], 2, source)
    payoffs, payoff_starts = _rows(given[0], found[given[0]], 1, source)
    order: Any = slice(None)
    if found.get("rounds") is not None:
        order, starts = _grouped(found["rounds"], len(values), source)
        payoff_starts = starts
    if len(payoffs) != len(values) or not np.array_equal(starts, payoff_starts):
        raise InvalidInputError(
            f"{given[0]} of {source} must have one number per arm, {len(values)} in the same "
            f"rounds as the arms, got {len(payoffs)}"
        )
    values, names = _named(values[order], found.get("features"), features, source)
    payoffs = np.asarray(payoffs[order], dtype=np.float64)

    def place(row: int) -> str:
        if lines is not None:
            return f"line {lines[order][row]} of {source}"
        index = int(np.searchsorted(starts, row, side="right")) - 1
        return f"round {index}, arm {row - int(starts[index])} of {source}"

    seen, squares = _profile(values, names, place)
    _check_payoffs(payoffs, given[0], place)
    if np.diff(starts).max() == 1:
        raise InvalidInputError(
            f"{source} has one row per round, so only the reward of the chosen option is known: a "
            "simulation needs every option of a round, each with its mean or reward"
        )
    shares, sizes = seen / len(values), np.sqrt(squares / seen)
    return Recorded(values, payoffs, starts, given == ["rewards"], names, shares, sizes)


def _check_payoffs(payoffs: FloatArray, name: str, place: Callable[[int], str]) -> None:
    bad = np.flatnonzero(~(np.abs(payoffs) <= LARGEST))
    if len(bad):
        raise InvalidInputError(
            f"every arm must have a finite {name[:-1]}, got {payoffs[bad[0]]} in "
            f"{place(int(bad[0]))}: fill it in, or leave out its round"
        )


def _grouped(given: Any, n_rows: int, source: str) -> tuple[Any, NDArray[np.int64]]:
    """Return the index that groups rows by round, and where rounds start."""
    rounds = np.asarray(given)
    if rounds.shape != (n_rows,) or rounds.dtype.kind not in "iu":
        raise InvalidInputError(
            f"rounds of {source} must be {n_rows} whole numbers, got {rounds.dtype} of shape "
            f"{rounds.shape}"
        )
    in_order = (rounds[1:] >= rounds[:-1]).all()
    order = slice(None) if in_order else np.argsort(rounds, kind="stable")  # a slice copies nothing
    rounds = rounds[order]
    first = np.concatenate([[True], rounds[1:] != rounds[:-1], [True]])
    return order, np.flatnonzero(first)


def _named(
    values: NDArray[Any], given: Any, features: tuple[str, ...] | None, source: str
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return the features to use and their names, which by default are their numbers."""
    dim = values.shape[1]
    names = tuple(str(name) for name in (range(dim) if given is None else given))
    if len(names) != dim:
        raise InvalidInputError(f"{source} must name {dim} features, got {len(names)} names")
    if features is None:
        return values, names
    places = [names.index(present(name, names, source)) for name in features]
    return values[:, places], features


def present(name: str, names: tuple[str, ...], source: str) -> str:
    """Return a column's name if it is there."""
    if name not in names:
        raise InvalidSettingError(f"{source} has no column {name!r}, only {list(names)}")
    return name


def _rows(
    name: str, given: Any, n_axes: int, source: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return an array with `n_axes` axes, rounds below each other, and where rounds start."""
    try:
        ragged = isinstance(given, list | tuple) and len({np.shape(item) for item in given}) > 1
        parts = [np.asarray(item) for item in given] if ragged else [np.asarray(given)]
        array = np.concatenate(parts) if ragged else parts[0]
    except ValueError as error:
        raise InvalidInputError(f"{name} of {source} is not a table of numbers: {error}") from None
    counts = [len(part) for part in parts]
    if not ragged and array.ndim == n_axes + 1:
        counts = [array.shape[1]] * len(array)
        array = array.reshape(-1, *array.shape[2:])
    if array.ndim != n_axes or array.dtype.kind not in "fiub" or not array.size or 0 in counts:
        raise InvalidInputError(
            f"{name} of {source} must be a table of numbers with {n_axes} axes, or {n_axes + 1} "
            f"with rounds as the first, not empty, got {array.dtype} of shape {np.shape(array)}"
        )
    return array, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def load(path: str, columns: Columns) -> Recorded:
    """Return the table of a .csv or .npz file, or of a folder of .npy files (memory-mapped).

    A file is read once and cached as long as it does not change.
    """
    place = Path(path)
    if not place.exists():
        raise InvalidSettingError(f"{path!r} does not exist (seen from {Path.cwd()})", name="path")
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    stamp = tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return _load(str(place.resolve()), path, stamp, columns)


@lru_cache(maxsize=4)
def _load(resolved: str, path: str, stamp: tuple[Any, ...], columns: Columns) -> Recorded:
    place = Path(resolved)
    if place.suffix == ".csv":
        from halfseen.worlds.recorded_csv import read_csv

        arrays, lines = read_csv(place, columns, path)
        return record_arrays(arrays, None, path, lines)
    try:
        if place.is_dir():
            files = [(name, place / f"{name}.npy") for name in _CONTENT]
            found = {name: np.load(file, mmap_mode="r") for name, file in files if file.exists()}
        elif place.suffix == ".npz":
            with np.load(place, allow_pickle=False) as archive:
                found = {name: archive[name] for name in _CONTENT if name in archive}
        else:
            raise InvalidSettingError(
                f"must be a .csv, a .npz or a folder, got {path!r}", name="path"
            )
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{path} cannot be read as arrays: {error}") from None
    return record_arrays(found, columns.features, path)


def save(table: Recorded, path: str) -> None:
    """Write a table to a .npz file, or to a folder of .npy files if the path has no suffix."""
    place = Path(path)
    if place.suffix == ".npz":
        arrays: dict[str, Any] = dict(table.contents())
        np.savez(place, **arrays)
    elif place.suffix == "":
        place.mkdir(parents=True, exist_ok=True)
        for name, array in table.contents().items():
            np.save(place / f"{name}.npy", array)
    else:
        raise InvalidSettingError(f"must end in .npz, or have no suffix, got {path!r}", name="path")
