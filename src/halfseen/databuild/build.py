"""Build archives of frozen representations with a manifest, and compare two builds."""

import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.databuild import mnist, newsgroups
from halfseen.databuild.raw import Raw
from halfseen.errors import InvalidInputError
from halfseen.worlds.product_context import (
    SOURCES,
    Frozen,
    load_frozen,
    read_archive,
    write_archive,
)

SEEDS = (*range(10), 10_000, 10_001, 10_002)
"""The seeds that ship: ten to report on (the paper has the first five), three for validation."""

Done = Callable[[int, Frozen], None]


class Recipe(NamedTuple):
    """How a source becomes frozen features."""

    load: Callable[[], Raw]
    represent: Callable[[Raw, int], Frozen]
    packages: tuple[str, ...]


RECIPES: Mapping[str, Recipe] = {
    "mnist": Recipe(mnist.load, mnist.represent, mnist.PACKAGES),
    "newsgroups": Recipe(newsgroups.load, newsgroups.represent, newsgroups.PACKAGES),
}
assert tuple(RECIPES) == SOURCES


class Difference(NamedTuple):
    """How far one build of a seed's representation is from another.

    Attributes
    ----------
    features, weights : float
        Largest absolute difference of an entry.
    labels : int
        Number of items with another label: 0 unless other items were sampled.
    heldout_accuracy : float
        Accuracy of the second less that of the first.
    """

    features: float
    weights: float
    labels: int
    heldout_accuracy: float


def build(
    source: str,
    raw: Raw,
    seeds: Iterable[int],
    folder: Path,
    *,
    again: bool = False,
    done: Done = lambda seed, frozen: None,
) -> Path:
    """Compute the representations of some seeds and add them to the archive in a folder.

    The archive and its manifest are written after every seed, so that an interruption loses one.

    Parameters
    ----------
    source : "mnist" or "newsgroups"
    raw : Raw
        What `RECIPES[source].load()` returned.
    seeds : iterable of int
    folder : Path
    again : bool
        Start a new archive; by default seeds that it already has are kept.
    done : callable
        Called with each seed and its representation when that is finished.

    Returns
    -------
    Path
        The archive.

    Raises
    ------
    InvalidInputError
        The archive in the folder was made from other raw data or with other versions.
    """
    recipe = RECIPES[checks.one_of("source", source, SOURCES)]
    archive = folder / f"{source}.npz"
    made_with = {
        "source": source,
        "raw": {"n_items": len(raw.labels), "sha256": raw.checksum()},
        "versions": _versions(recipe.packages),
    }
    kept = {} if again else _kept(archive, made_with)
    for seed in seeds:
        if checks.integer("seed", seed, 0) not in kept:
            kept[seed] = recipe.represent(raw, seed)
            write_archive(archive, kept)
            _write_manifest(archive, made_with, kept)
        done(seed, kept[seed])
    return archive


def compare(
    source: str,
    raw: Raw,
    seeds: Sequence[int],
    path: Path | None = None,
    *,
    done: Done = lambda seed, frozen: None,
) -> dict[int, Difference]:
    """Compute representations and return how far they are from those that ship (or at a path)."""
    recipe = RECIPES[checks.one_of("source", source, SOURCES)]
    known = {seed: load_frozen(source, seed, None if path is None else str(path)) for seed in seeds}
    differences = {}
    for seed, old in known.items():
        new = recipe.represent(raw, seed)
        differences[seed] = difference(old, new)
        done(seed, new)
    return differences


def difference(old: Frozen, new: Frozen) -> Difference:
    """Return how far a new representation is from an old one; infinite where shapes differ."""
    return Difference(
        _apart(old.features, new.features),
        _apart(old.weights, new.weights),
        int(np.sum(old.labels != new.labels)) if len(old.labels) == len(new.labels) else -1,
        new.heldout_accuracy - old.heldout_accuracy,
    )


def _apart(old: Any, new: Any) -> float:
    return float(np.abs(old - new).max()) if old.shape == new.shape else np.inf


def _kept(archive: Path, made_with: Mapping[str, Any]) -> dict[int, Frozen]:
    if not archive.exists():
        return {}
    manifest = archive.with_suffix(".json")
    try:
        stored = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{manifest} cannot be read: {error}") from None
    for name, value in made_with.items():
        if stored.get(name) != value:
            raise InvalidInputError(
                f"{archive} was made with other {name} ({stored.get(name)}, now {value}): start "
                f"again with --again, or choose another folder"
            )
    return dict(read_archive(archive))


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {name: version(name) for name in packages}
    return {"python": platform.python_version(), **found}


def _write_manifest(
    archive: Path, made_with: Mapping[str, Any], kept: Mapping[int, Frozen]
) -> None:
    per_seed = {
        str(seed): {
            "train_accuracy": round(frozen.train_accuracy, 6),
            "heldout_accuracy": round(frozen.heldout_accuracy, 6),
            "wrong": f"{int(frozen.wrong().sum())} of {len(frozen.labels)}",
        }
        for seed, frozen in sorted(kept.items())
    }
    manifest = {
        **made_with,
        "archive_sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "mean_heldout_accuracy": round(
            float(np.mean([frozen.heldout_accuracy for frozen in kept.values()])), 6
        ),
        "seeds": per_seed,
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    archive.with_suffix(".json").write_text(text, encoding="utf-8")
