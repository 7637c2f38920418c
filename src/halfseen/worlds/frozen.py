"""Learned representations of real data, frozen per seed, in small archives."""

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

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


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, because arrays have no hash
class Frozen:
    """Held-out items as a classifier that was trained for one seed represents them.

    Attributes
    ----------
    features : ndarray, shape (n_items, rank)
        h(x) of each item.
    weights : ndarray, shape (n_classes, rank)
        w_k: the classifier predicts argmax_k w_k'h(x).
    labels : ndarray of int, shape (n_items,)
        The true class of each item.
    train_accuracy, heldout_accuracy : float
        On all items of each side of the split; `features` may be those of a sample.
    lift : ndarray, shape (dim, rank), optional
        The orthonormal basis that lifts arms in the published instance of this seed. Drawing it
        again needs the raw data, because it comes from the generator that made the split.
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
    """Return the representation of a seed, from the package's archive or from one at a path.

    Raises
    ------
    InvalidSettingError
        The archive does not have this seed.
    InvalidInputError
        The archive cannot be read.

    Examples
    --------
    >>> load_frozen("newsgroups", seed=0).features.shape
    (749, 20)
    """
    representations = read_archive(shipped_archive(source) if path is None else path)
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


def shipped_archive(source: str) -> Path:
    """Return the archive of a source that ships with the package."""
    return Path(str(files("halfseen"))) / "data" / f"{source}.npz"


def read_archive(path: str | os.PathLike[str]) -> Mapping[int, Frozen]:
    """Return all representations of an archive by seed."""
    try:
        return _representations(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read: {error.strerror}: make it with `halfseen build-data`"
        ) from None
    except (KeyError, ValueError, EOFError, BadZipFile) as error:
        raise InvalidInputError(f"{path} is not an archive of frozen features: {error}") from None


@lru_cache(maxsize=4)  # by content; many realizations share one
def _representations(content: bytes) -> Mapping[int, Frozen]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        seeds = archive["seeds"].tolist()
        features, weights, labels, train, heldout = (archive[name] for name in _KINDS)
        lifts = archive["lift"] if "lift" in archive.files else [None] * len(seeds)
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
    """Write representations, all of one shape; features and weights in single precision.

    Equal representations give equal bytes.
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
    draft.replace(place)  # there is never half a file


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
