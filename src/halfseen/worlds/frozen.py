"""Learned representations of real data, frozen per seed: small archives that ship."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InvalidInputError, InvalidSettingError
from halfseen.values import FloatArray

SOURCES = ("mnist", "newsgroups")
_KINDS = {
    "features": np.float32,
    "weights": np.float32,
    "labels": np.uint8,
    "train_accuracy": np.float64,
    "heldout_accuracy": np.float64,
}


@dataclass(frozen=True, slots=True, eq=False)  # two are equal if they are one: arrays cannot hash
class Frozen:
    """What a classifier that was trained for one seed makes of items it was not trained on.

    Attributes
    ----------
    features : ndarray, shape (n_items, rank)
        h(x) of each item.
    weights : ndarray, shape (n_classes, rank)
        w_k: the classifier says argmax_k w_k'h(x).
    labels : ndarray of int, shape (n_items,)
        The true class of each item.
    train_accuracy, heldout_accuracy : float
        On all items of either side of the split, of which those here may be a sample.
    lift : ndarray, shape (dim, rank), optional
        The orthonormal basis that lifts arms in the published instance of this seed. It was drawn
        with the generator that made the split, so only who has the raw data can draw it again.
    """

    features: FloatArray
    weights: FloatArray
    labels: NDArray[np.int64]
    train_accuracy: float
    heldout_accuracy: float
    lift: FloatArray | None = None

    def wrong(self) -> NDArray[np.bool_]:
        """Return for each item whether the classifier errs on it, shape (n_items,)."""
        guesses = np.argmax(self.features @ self.weights.T, axis=1)
        return np.asarray(guesses != self.labels)


def load_frozen(source: str, seed: int, path: str | None = None) -> Frozen:
    """Return the representation of a seed: that of the package, or one in an archive at a path.

    Raises
    ------
    InvalidSettingError
        Nobody has trained a classifier for this seed yet.
    InvalidInputError
        The archive cannot be read.

    Examples
    --------
    >>> load_frozen("newsgroups", seed=0).features.shape
    (749, 20)
    """
    representations = read_archive(path) if path is not None else _shipped(source)
    if seed not in representations:
        remedy = "take one of these"
        if path is None:
            remedy += (
                f", or make more with `halfseen build-data {source} --seeds {seed}` and give the "
                f"archive's path"
            )
        raise InvalidSettingError(
            f"must be one with frozen features of {source} (there are "
            f"{_listed(representations)}), got {seed}: {remedy}",
            name="seed",
        )
    return representations[seed]


@lru_cache(maxsize=len(SOURCES))
def _shipped(source: str) -> Mapping[int, Frozen]:
    return _read(shipped_archive(source))


def shipped_archive(source: str) -> Path:
    """Return the archive of a source that ships with the package."""
    return Path(str(files("halfseen"))) / "data" / f"{source}.npz"


def read_archive(path: str | os.PathLike[str]) -> Mapping[int, Frozen]:
    """Return all representations of an archive by seed."""
    place = Path(path)
    try:
        status = place.stat()
    except OSError as error:
        raise InvalidInputError(
            f"{place} cannot be read: {error.strerror}: make it with `halfseen build-data`"
        ) from None
    return _read_version(place, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read_version(path: Path, changed: int, size: int) -> Mapping[int, Frozen]:
    return _read(path)


def _read(path: Path) -> Mapping[int, Frozen]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            seeds = archive["seeds"].tolist()
            features, weights, labels, train, heldout = (archive[name] for name in _KINDS)
            lifts = archive["lift"] if "lift" in archive.files else [None] * len(seeds)
    except (OSError, KeyError, ValueError, EOFError) as error:
        raise InvalidInputError(f"{path} is not an archive of frozen features: {error}") from None
    return {
        seed: Frozen(
            features[index].astype(np.float64),
            weights[index].astype(np.float64),
            labels[index].astype(np.int64),
            float(train[index]),
            float(heldout[index]),
            lifts[index],
        )
        for index, seed in enumerate(seeds)
    }


def write_archive(path: str | os.PathLike[str], representations: Mapping[int, Frozen]) -> None:
    """Write representations, all of one shape: equal ones to equal bytes.

    Features and weights are kept in single precision.
    """
    seeds = sorted(representations)
    arrays: dict[str, Any] = {
        name: np.stack([np.asarray(getattr(representations[seed], name), kind) for seed in seeds])
        for name, kind in _KINDS.items()
    }
    lifts = [lift for seed in seeds if (lift := representations[seed].lift) is not None]
    if len(lifts) == len(seeds):
        arrays["lift"] = np.stack(lifts)
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(place.name + ".part")
    with draft.open("wb") as file:
        np.savez_compressed(file, seeds=np.array(seeds, dtype=np.int64), **arrays)
    draft.replace(place)  # at no moment is there half a file


def _listed(seeds: Mapping[int, Frozen]) -> str:
    """Return seeds as a text, runs of them shortened.

    >>> _listed(dict.fromkeys([0, 1, 2, 7]))
    '0–2, 7'
    """
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
