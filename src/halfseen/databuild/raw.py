"""What the builders share: raw data with its checksum, and the split into two sides."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InvalidInputError
from halfseen.values import FloatArray

TRAIN_SHARE = 0.8


class Raw(NamedTuple):
    """Items with their classes, as they came.

    Attributes
    ----------
    items : ndarray of shape (n_items, ...), or sequence of str
    labels : ndarray of int, shape (n_items,)
        Classes counted from 0.
    """

    items: Sequence[str] | FloatArray | NDArray[np.float32]
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
    if not len(heldout):
        raise InvalidInputError(f"{len(labels)} items are too few to hold some of them out")
    random.shuffle(train)
    random.shuffle(heldout)
    return train, heldout
