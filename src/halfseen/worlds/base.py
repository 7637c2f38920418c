"""What a world is: a distribution, and realizations of it that all policies walk alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from halfseen.values import LARGEST, FloatArray, Slate


class Round(NamedTuple):
    """One round of a realization; all but the slate is for the runner only.

    Attributes
    ----------
    slate : Slate
        What a policy sees.
    means : ndarray, shape (n_arms,)
        Expected reward of each arm.
    noise : float
        Added to the mean of whatever arm is chosen.
    arms : ndarray, shape (n_arms, dim)
        The arms with nothing hidden (NaN where the world itself does not know): what a policy on
        the full view sees.
    """

    slate: Slate
    means: FloatArray
    noise: float
    arms: FloatArray


class Block(NamedTuple):
    """Some rounds that were made together.

    Attributes
    ----------
    tables : ndarray, shape (n_rounds, n_arms, dim)
        The arms, NaN where hidden.
    means : ndarray, shape (n_rounds, n_arms)
    noises : ndarray, shape (n_rounds,)
    arms : ndarray, shape (n_rounds, n_arms, dim)
    """

    tables: FloatArray
    means: FloatArray
    noises: FloatArray
    arms: FloatArray


def rounds_of(block: Block) -> Iterator[Round]:
    """Yield rounds that were made together, each with its part of the arrays, which it takes over.

    Raises
    ------
    InvalidSlateError
        A seen entry is not finite or beyond `LARGEST`.
    """
    wild = (np.abs(block.tables) > LARGEST).any()  # False for NaN
    each = zip(block.tables, block.means, block.noises.tolist(), block.arms, strict=True)
    for table, means_of_round, noise, arms_of_round in each:
        slate = Slate(table) if wild else _taken_over(table)
        yield Round(slate, means_of_round, noise, arms_of_round)


def _taken_over(table: FloatArray) -> Slate:
    """Return a slate of a table that is known to be valid and not shared: no check, no copy."""
    slate = Slate.__new__(Slate)
    slate._table = table
    return slate


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What may be told of a realization to those who ask by name; None where it is not known.

    Attributes
    ----------
    seed : int
    dim, n_arms, horizon : int
        `n_arms` is None where it changes from round to round.
    observe_prob : float, or ndarray of shape (dim,)
        Probability that an entry is seen, one per feature where they differ; where it depends on
        more than the feature, the average.
    noise_scale : float
        Standard deviation of the reward noise.
    rank : int
        Dimension of the subspace in which the arms lie, or nearly lie.
    basis : ndarray, shape (dim, rank)
        That subspace, as orthonormal columns. Only policies that declare it are told.
    latent_variances : ndarray, shape (rank,)
        Variance of the arms along each column of the basis: the subspace's spectrum.
    basis_changes : tuple of (round, ndarray)
        From that round on (counted from 1) the arms lie in another subspace.
    """

    seed: int
    dim: int
    horizon: int
    n_arms: int | None = None
    observe_prob: float | FloatArray | None = None
    noise_scale: float | None = None
    rank: int | None = None
    basis: FloatArray | None = None
    latent_variances: FloatArray | None = None
    basis_changes: tuple[tuple[int, FloatArray], ...] = ()


class Realization(Protocol):
    """One draw from a world: the same rounds every time one walks it."""

    @property
    def facts(self) -> Facts:
        """What may be told about this realization."""

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds in order, in bounded memory."""


@runtime_checkable
class InBlocks(Realization, Protocol):
    """A realization that makes many rounds together."""

    def blocks(self) -> Iterator[Block]:
        """Yield all rounds in order, in bounded memory."""


class World(Protocol):
    """A distribution over realizations: a frozen dataclass whose fields are plain JSON types."""

    def realize(self, seed: int) -> Realization:
        """Return the realization of a seed."""
