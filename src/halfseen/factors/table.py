"""The factor model of a table with missing values, and what it infers about each row."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from halfseen.factors.model import (
    SEARCH_ROWS,
    Factors,
    HalfSeenRows,
    choose_rank,
    fit_factors,
    fit_rank,
)
from halfseen.values import BoolArray, FloatArray
from halfseen.values.rows import evenly_spaced

LARGEST_SURPRISE = 5.0
"""A seen entry counts as at most this many deviations away from what the other entries of its row
predict. Under the model one entry in two million is farther away. In real tables some are, mostly
in features that are nearly constant, and a single one would spoil the whole row."""

# Rows that are worked on at a time: so few that malloc keeps their memory, also where it is asked
# to give back what is free, as workers of Dask ask it.
_BLOCK = 256
# Share of an entry's variance that the others leave open, at least: below is rounding.
_LEAST_SHARE = 1e-9


def fit_table(
    table: FloatArray, rank: int | None = None, known: Factors | None = None, *, is_due: bool = True
) -> Factors:
    """Return the model of rows (n, dim), NaN where hidden.

    Parameters
    ----------
    table : ndarray
    rank : int, optional
        By default the evidence chooses it. Fewer are used if the rows do not determine as many.
    known : Factors, optional
        The model of earlier rows, to start from.
    is_due : bool
        If not, the known model's rank stays.
    """
    rows = HalfSeenRows(table)
    if rows.n_entries == 0:
        return rows.empty_model()
    if not is_due and known is not None:
        return fit_factors(rows, known).model
    few = search_rows(table)
    fit = choose_rank(few, known) if rank is None else fit_rank(few, rank, known)
    return fit.model if len(table) <= SEARCH_ROWS else fit_factors(rows, fit.model).model


def search_rows(table: FloatArray) -> HalfSeenRows:
    """Return the rows on which a rank is chosen, evenly spaced."""
    return HalfSeenRows(table[evenly_spaced(len(table), SEARCH_ROWS)])


class RowPosterior(NamedTuple):
    """Latents and entries of half-seen rows, given their seen entries.

    Attributes
    ----------
    latent : ndarray, shape (n, rank)
        Posterior means of z.
    covariance : ndarray, shape (n, rank, rank)
        Posterior covariance of z, M⁻¹.
    filled : ndarray, shape (n, dim)
        Expectation of every entry, in the features' own units, whether it is seen or not.
    share : ndarray, shape (n, dim)
        Posterior variance of each entry without its noise, in units of its noise: w_j'M⁻¹w_j/ψ_j.
    log_likelihood : ndarray, shape (n,)
        Of the seen entries of features that vary.
    """

    latent: FloatArray
    covariance: FloatArray
    filled: FloatArray
    share: FloatArray
    log_likelihood: FloatArray


def posterior(model: Factors, table: FloatArray) -> RowPosterior:
    """Return what rows (n, dim), NaN where hidden, say under a model.

    With the basis u_j = w_j/√ψ_j and residuals e in units of √ψ, z has the precision M = I + Σuu'
    and the mean M⁻¹Σue over the seen entries. Leaving entry j out changes its prediction by
    e_j − u_j'z over 1 − u_j'M⁻¹u_j.

    Examples
    --------
    >>> model = Factors(np.zeros(2), np.ones(2), np.array([[3.0, 3.0]]), np.ones(2))
    >>> found = posterior(model, np.array([[10.0, np.nan]]))
    >>> found.filled.round(2).tolist(), found.share.round(2).tolist()
    ([[9.0, 9.0]], [[0.9, 0.9]])
    """
    (n, dim), rank = table.shape, model.rank
    basis = model.loadings / np.sqrt(model.noise)
    squares = (basis[:, None] * basis).reshape(rank * rank, dim)
    rest = model.residuals(table)
    seen = rest == rest
    rest = np.where(seen, rest, 0.0)
    precision = (seen @ squares.T).reshape(n, rank, rank) + np.eye(rank)
    covariance = np.linalg.inv(precision)
    share = covariance.reshape(n, rank * rank) @ squares

    def mean() -> FloatArray:
        return np.asarray(np.einsum("nab,nb->na", covariance, rest @ basis.T))

    latent = mean()
    unit = np.where(model.scale > 0.0, model.scale * np.sqrt(model.noise), 1.0)
    exponent = (rest * rest).sum(axis=1) - ((rest @ basis.T) * latent).sum(axis=1)
    log_likelihood = -0.5 * (
        seen @ np.log(2.0 * np.pi * unit**2) + np.linalg.slogdet(precision)[1] + exponent
    )
    left = np.sqrt(np.maximum(1.0 - share, _LEAST_SHARE))
    surprise = np.where(seen, (rest - latent @ basis) / left, 0.0)
    if np.abs(surprise).max(initial=0.0) > LARGEST_SURPRISE:
        rest -= (surprise - np.clip(surprise, -LARGEST_SURPRISE, LARGEST_SURPRISE)) / left
        latent = mean()
    filled = model.location + model.scale * (latent @ model.loadings)
    return RowPosterior(latent, covariance, filled, share, log_likelihood)


def posteriors(model: Factors, table: FloatArray) -> Iterator[tuple[slice, RowPosterior]]:
    """Yield what blocks of rows say, with their places."""
    for place in blocks(len(table)):
        yield place, posterior(model, table[place])


def blocks(n: int) -> Iterator[slice]:
    """Yield the places of rows that are worked on at a time."""
    return (slice(first, first + _BLOCK) for first in range(0, n, _BLOCK))


def moved_by_seeing(
    hidden: BoolArray,
    loadings: FloatArray,
    noise: FloatArray,
    weights: FloatArray,
    groups: Sequence[Sequence[int]],
) -> FloatArray:
    """Return by which deviation a weighted sum of a row's entries moves if groups are seen.

    Arguments are those of `moves_by_seeing`, with weights of shape (dim,).
    """
    moves = moves_by_seeing(hidden, loadings, noise, weights[None], groups)
    return np.array([np.linalg.norm(move) for move in moves])


def moves_by_seeing(
    hidden: BoolArray,
    loadings: FloatArray,
    noise: FloatArray,
    weights: FloatArray,
    groups: Sequence[Sequence[int]],
) -> list[FloatArray]:
    """Return how weighted sums of a row's entries move if groups of entries are seen.

    Given what is seen, hidden entries x are normal with covariance C = WM⁻¹W' + Ψ. Seeing x_G moves
    the expectations of Vx by C_G·V' times C_GG⁻¹(x_G − E[x_G]): with C_GG = LL', by (L⁻¹C_G·V')'
    times standard normals.

    Parameters
    ----------
    hidden : ndarray of bool, shape (dim,)
        Entries that are not seen and vary.
    loadings : ndarray, shape (rank, dim)
        W', for standardised features.
    noise : ndarray, shape (dim,)
        ψ.
    weights : ndarray, shape (n, dim)
        V.
    groups : sequence of features

    Returns
    -------
    list of ndarray, shape (n, number of hidden entries in the group)
    """
    seen = loadings / np.sqrt(noise) * ~hidden
    precision = np.eye(len(loadings)) + seen @ seen.T
    directions = np.linalg.solve(precision, loadings @ (weights * hidden).T)
    moves: list[FloatArray] = []
    for group in groups:
        some = [feature for feature in group if hidden[feature]]
        part = loadings[:, some]
        covariance = part.T @ np.linalg.solve(precision, part) + np.diag(noise[some])
        c = part.T @ directions + (noise[some] * weights[:, some]).T
        moves.append(np.asarray(np.linalg.solve(np.linalg.cholesky(covariance), c).T))
    return moves
