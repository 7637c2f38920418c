"""Build the frozen features of MNIST and 20 Newsgroups from raw data, which are downloaded.

`python tools/build_data.py newsgroups` writes the archive that ships with the package, at 1 s per
seed; `mnist` takes about 20 s per seed and needs torch. With `--compare` it only prints how far a
new build is from what ships. scikit-learn looks into `SCIKIT_LEARN_DATA` before it downloads.
"""

import argparse
import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.paper.product_context import KINDS, Frozen, load_frozen, shipped_archive

TRAIN_SHARE = 0.8


class Raw(NamedTuple):
    """Items with their classes, as they came.

    Attributes
    ----------
    items : ndarray of shape (n_items, ...), or sequence of str
    labels : ndarray of int, shape (n_items,)
        Classes counted from 0.
    """

    items: Sequence[str] | NDArray[np.float32]
    labels: NDArray[np.int64]

    def checksum(self) -> str:
        """Return the SHA-256 of items and labels."""
        digest = hashlib.sha256()
        if isinstance(self.items, np.ndarray):
            digest.update(np.ascontiguousarray(self.items).tobytes())
        else:
            for text in self.items:
                data = text.encode()
                digest.update(b"%d:" % len(data) + data)  # with its length: no two lists agree
        digest.update(self.labels.astype(np.int64).tobytes())
        return digest.hexdigest()


def stratified_split(
    labels: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the items to train on and those held out: 80 % and 20 % of every class.

    Draw order of the published instances: classes are shuffled one after another, the first part
    of each is for training; then the training side as a whole is shuffled, then the other.

    >>> train, heldout = stratified_split(np.repeat([0, 1], 5), np.random.default_rng(0))
    >>> len(train), len(heldout)
    (8, 2)
    """
    sides: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
    for label in range(int(labels.max()) + 1):
        of_class = np.flatnonzero(labels == label)
        random.shuffle(of_class)
        n_train = round(TRAIN_SHARE * len(of_class))
        for side, part in zip(sides, (of_class[:n_train], of_class[n_train:]), strict=True):
            side.append(part)
    train, heldout = (np.concatenate(side) for side in sides)
    random.shuffle(train)
    random.shuffle(heldout)
    return train, heldout


MNIST_PACKAGES = ("numpy", "scikit-learn", "torch")
MNIST_RANK = 4
MNIST_DIM = 100  # to which the published instances lift the arms
N_TRAIN = 12_000
N_SAMPLED = 5_000  # held-out images whose features are kept
_EPOCHS = 3
_BATCH = 128
_CHUNK = 2_000


def load_mnist() -> Raw:
    """Return the images, pixels from 0 to 1; scikit-learn downloads what it does not have."""
    import torch  # noqa: F401  (raises before anything is downloaded)
    from sklearn.datasets import fetch_openml

    found = fetch_openml("mnist_784", version=1, as_frame=False)
    pixels = np.asarray(found.data, dtype=np.float32)
    images = (pixels / pixels.max()).reshape(-1, 1, 28, 28)
    return Raw(images, np.asarray(found.target).astype(np.int64))


def represent_mnist(
    raw: Raw,
    seed: int,
    *,
    n_train: int = N_TRAIN,
    n_sampled: int = N_SAMPLED,
    epochs: int = _EPOCHS,
) -> Frozen:
    """Return features of a sample of held-out images and the weights of the network's last layer.

    Accuracies are of all training and of all held-out images. Which images are sampled, in which
    order, and the lift come from the generator that made the split, in the published draw order.
    """
    import torch

    random = np.random.default_rng(seed)
    train, heldout = stratified_split(raw.labels, random)
    train = random.choice(train, min(n_train, len(train)), replace=False)
    sampled = random.choice(heldout, min(n_sampled, len(heldout)), replace=False)
    lift = np.linalg.qr(random.standard_normal((MNIST_DIM, MNIST_RANK)))[0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        body, head = _network(int(raw.labels.max()) + 1)
        _train(body, head, raw, train, seed, epochs)
    weights = head.weight.detach().numpy().astype(np.float64)
    accuracies = [
        float(np.mean(np.argmax(_features(body, raw, items) @ weights.T, axis=1) == truth))
        for items, truth in ((train, raw.labels[train]), (heldout, raw.labels[heldout]))
    ]
    features = _features(body, raw, sampled)
    return Frozen(features, weights, raw.labels[sampled], accuracies[0], accuracies[1], lift)


def _network(n_classes: int) -> tuple[Any, Any]:
    """Return the layers up to the features, without activation, and the classifier's layer."""
    from torch import nn

    body = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 128),
        nn.ReLU(),
        nn.Linear(128, MNIST_RANK),
    )
    return body, nn.Linear(MNIST_RANK, n_classes, bias=False)


def _train(
    body: Any, head: Any, raw: Raw, train: NDArray[np.int64], seed: int, epochs: int
) -> None:
    import torch

    images, labels = np.asarray(raw.items)[train], raw.labels[train]
    pairs = torch.utils.data.TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    batches = torch.utils.data.DataLoader(
        pairs, _BATCH, shuffle=True, generator=torch.Generator().manual_seed(seed)
    )
    model = torch.nn.Sequential(body, head)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    model.train()
    for _ in range(epochs):
        for some, truth in batches:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(some), truth).backward()
            optimizer.step()
    model.eval()


def _features(body: Any, raw: Raw, items: NDArray[np.int64]) -> NDArray[np.float64]:
    import torch

    images = np.asarray(raw.items)
    with torch.no_grad():
        chunks = [
            body(torch.from_numpy(images[items[start : start + _CHUNK]])).numpy()
            for start in range(0, len(items), _CHUNK)
        ]
    return np.concatenate(chunks).astype(np.float64)


NEWSGROUPS_PACKAGES = ("numpy", "scipy", "scikit-learn")
NEWSGROUPS_RANK = 20
_GROUPS = ("rec.autos", "rec.sport.baseball", "sci.space", "talk.politics.misc")
_MAX_WORDS = 20_000


def load_newsgroups() -> Raw:
    """Return the documents of both published halves, without headers, footers and quotes.

    Empty documents stay. scikit-learn downloads what its data home does not have.
    """
    from sklearn.datasets import fetch_20newsgroups

    found = fetch_20newsgroups(
        subset="all", categories=list(_GROUPS), remove=("headers", "footers", "quotes")
    )
    return Raw(found.data, np.asarray(found.target, dtype=np.int64))


def represent_newsgroups(raw: Raw, seed: int, *, rank: int = NEWSGROUPS_RANK) -> Frozen:
    """Return features of all held-out documents and the classifier's weights.

    Words are counted sublinearly and weighted by rarity, both fitted on the training side; a
    truncated singular value decomposition takes them to `rank` dimensions, which are standardized;
    each document is scaled to norm 1. The classifier, fitted on the training side, has no
    intercept: its scores are w_k'h.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    train, heldout = stratified_split(raw.labels, np.random.default_rng(seed))
    pipeline = make_pipeline(
        TfidfVectorizer(
            max_features=_MAX_WORDS, min_df=2, stop_words="english", sublinear_tf=True, norm="l2"
        ),
        TruncatedSVD(rank, random_state=seed),
        StandardScaler(),
        Normalizer(),
    )
    seen = pipeline.fit_transform([raw.items[index] for index in train])
    features = pipeline.transform([raw.items[index] for index in heldout])
    classifier = LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000)
    classifier.fit(seen, raw.labels[train])
    labels = raw.labels[heldout]
    return Frozen(
        features,
        classifier.coef_,
        labels,
        float(classifier.score(seen, raw.labels[train])),
        float(classifier.score(features, labels)),
    )


SEEDS = (*range(10), 10_000, 10_001, 10_002)
"""The seeds that ship: ten to report on (the paper has the first five), three for validation."""


class Recipe(NamedTuple):
    """How a source becomes frozen features."""

    load: Callable[[], Raw]
    represent: Callable[[Raw, int], Frozen]
    packages: tuple[str, ...]


RECIPES: Mapping[str, Recipe] = {
    "mnist": Recipe(load_mnist, represent_mnist, MNIST_PACKAGES),
    "newsgroups": Recipe(load_newsgroups, represent_newsgroups, NEWSGROUPS_PACKAGES),
}


def build(source: str, raw: Raw, seeds: Iterable[int], archive: Path) -> None:
    """Compute the representations of some seeds and write an archive of them with its manifest."""
    found = {}
    for seed in seeds:
        found[seed] = RECIPES[source].represent(raw, seed)
        print(f"{source}, seed {seed}: held-out accuracy {found[seed].heldout_accuracy:.3f}")
    write_archive(archive, found)
    write_manifest(archive, source, raw, found)
    print(f"{archive}, {archive.stat().st_size / 1e6:.2f} MB")


def compare(source: str, raw: Raw, seeds: Iterable[int]) -> None:
    """Compute representations and print how far they are from those that ship."""
    for seed in seeds:
        old, new = load_frozen(source, seed), RECIPES[source].represent(raw, seed)
        gain = new.heldout_accuracy - old.heldout_accuracy
        print(
            f"{source}, seed {seed}: largest difference of a feature "
            f"{largest_difference(old.features, new.features):.1e}, of a weight "
            f"{largest_difference(old.weights, new.weights):.1e}; held-out accuracy "
            f"{new.heldout_accuracy:.3f} ({gain:+.4f})"
        )


def largest_difference(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    """Return the largest absolute difference of an entry, infinite if the shapes differ."""
    return float(np.abs(old - new).max()) if old.shape == new.shape else np.inf


def write_archive(path: Path, representations: Mapping[int, Frozen]) -> None:
    """Write representations, all of one shape; features and weights in single precision.

    Equal representations give equal bytes.
    """
    seeds = sorted(representations)
    arrays: dict[str, Any] = {
        name: np.stack([np.asarray(getattr(representations[seed], name), kind) for seed in seeds])
        for name, kind in KINDS.items()
    }
    if representations[seeds[0]].lift is not None:
        arrays["lift"] = np.stack([representations[seed].lift for seed in seeds])
    np.savez_compressed(path, seeds=np.array(seeds, dtype=np.int64), **arrays)


def write_manifest(archive: Path, source: str, raw: Raw, found: Mapping[int, Frozen]) -> None:
    """Write from which raw data and with which versions an archive was made, and how accurate."""
    accuracies = [frozen.heldout_accuracy for frozen in found.values()]
    versions = {name: version(name) for name in RECIPES[source].packages}
    manifest = {
        "source": source,
        "raw": {"n_items": len(raw.labels), "sha256": raw.checksum()},
        "versions": {"python": platform.python_version(), **versions},
        "archive_sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "mean_heldout_accuracy": round(float(np.mean(accuracies)), 6),
        "seeds": {
            str(seed): {
                "train_accuracy": round(frozen.train_accuracy, 6),
                "heldout_accuracy": round(frozen.heldout_accuracy, 6),
                "wrong": f"{int(frozen.wrong().sum())} of {len(frozen.labels)}",
            }
            for seed, frozen in sorted(found.items())
        },
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    archive.with_suffix(".json").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", choices=RECIPES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--out", type=Path, help="the archive to write; by default what ships")
    parser.add_argument("--compare", action="store_true", help="write nothing, only compare")
    options = parser.parse_args()
    raw = RECIPES[options.source].load()
    if options.compare:
        compare(options.source, raw, options.seeds)
    else:
        archive = options.out or shipped_archive(options.source)
        build(options.source, raw, options.seeds, archive)


if __name__ == "__main__":
    main()
