"""Handwritten digits in 4 dimensions: a small convolutional network, trained for each seed."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.databuild.raw import Raw, stratified_split
from halfseen.lazy import from_extra
from halfseen.worlds.product_context import Frozen

if TYPE_CHECKING:
    import torch

PACKAGES = ("numpy", "scikit-learn", "torch")
RANK = 4
DIM = 100  # to which the published instances lift the arms
N_TRAIN = 12_000
N_SAMPLED = 5_000  # held-out images whose features are kept
_EPOCHS = 3
_BATCH = 128
_CHUNK = 2_000


def load() -> Raw:
    """Return the images, pixels from 0 to 1; scikit-learn downloads what it does not have."""
    with from_extra("images"):  # raises before anything is downloaded
        import torch  # noqa: F401
    from sklearn.datasets import fetch_openml

    found = fetch_openml("mnist_784", version=1, as_frame=False)
    pixels = np.asarray(found.data, dtype=np.float32)
    images = (pixels / pixels.max()).reshape(-1, 1, 28, 28)
    return Raw(images, np.asarray(found.target).astype(np.int64))


def represent(
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

    Raises
    ------
    MissingExtraError
        torch is not installed.
    """
    with from_extra("images"):
        import torch
    random = np.random.default_rng(seed)
    train, heldout = stratified_split(raw.labels, random)
    train = random.choice(train, min(n_train, len(train)), replace=False)
    sampled = random.choice(heldout, min(n_sampled, len(heldout)), replace=False)
    lift = np.linalg.qr(random.standard_normal((DIM, RANK)))[0]
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


def _network(n_classes: int) -> "tuple[torch.nn.Sequential, torch.nn.Linear]":
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
        nn.Linear(128, RANK),
    )
    return body, nn.Linear(RANK, n_classes, bias=False)


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
