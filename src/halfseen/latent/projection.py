"""Sums of rewards in the features of a new epoch.

Features of a half-seen arm under two factor models are not linear in each other, because each mask
has its own map. If the models are similar, a linear map φ* ≈ φT is a good approximation. T is the
one that minimises ‖ΦT − Φ*‖ over some arms; in directions that these do not show, it takes each
feature for the one of the same name.
"""

from collections.abc import Mapping

import numpy as np

from halfseen.latent.features import Features, size
from halfseen.latent.groups import BY_ITEM, CONTEXT_GROUPS, CROSSED, LATENT
from halfseen.latent.statistics import Statistics
from halfseen.values import FloatArray

# Groups whose columns have no names, so that those of two models cannot be matched.
_UNNAMED = (LATENT, CONTEXT_GROUPS[LATENT], BY_ITEM[LATENT], CROSSED)
# Sums are given up if the mean square of their features exceeds that of the arms so many times.
_LARGEST_PROJECTED = 100.0
# Directions in which features vary by less than this share of the most are rounding.
_ROUNDING = 1e-10


def projected(
    sums: Statistics, old: Features, new: Features, arms: FloatArray, contexts: FloatArray
) -> Statistics | None:
    """Return sums in new features, given some arms with their contexts.

    None if the map, which these arms may show badly, blows up features.
    """
    phi, c = old.design(arms, contexts)
    new_phi, new_c = new.design(arms, contexts)
    matrix = fitted_map(phi, new_phi, _matching_features(old, new))
    shape = old.n_item_columns, new.n_item_columns
    by_name = _matching(old.item_columns, new.item_columns, shape)
    found = sums.mapped(matrix, fitted_map(c, new_c, by_name))
    # Rounding may leave diagonal entries below 0, which a large map makes very negative.
    mean_square = float(np.abs(found.products.diagonal()[:-1]).sum()) / found.n_rewards
    usual = float((new_phi * new_phi).sum()) / len(new_phi)
    return found if mean_square <= _LARGEST_PROJECTED * usual else None


def fitted_map(old: FloatArray, new: FloatArray, guess: FloatArray) -> FloatArray:
    """Return the matrix (n_old, n_new) that minimises ‖old · matrix − new‖.

    Parameters
    ----------
    old, new : ndarray, shapes (n, n_old) and (n, n_new)
        Features of the same arms.
    guess : ndarray, shape (n_old, n_new)
        The map in directions that these arms do not show.
    """
    rest = new - old @ guess
    sizes = np.linalg.norm(old, axis=0)
    unit = np.where(sizes > 0.0, sizes, 1.0)
    scaled = old / unit
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    real = values > _ROUNDING * values.max(initial=1.0)
    vectors = vectors[:, real]
    solution = vectors @ ((vectors.T @ (scaled.T @ rest)) / values[real][:, None])
    return np.asarray(guess + solution / unit[:, None])


def _matching_features(old: Features, new: Features) -> FloatArray:
    """Return the matrix (old.n_features, new.n_features) that takes each feature by its name."""
    matrix = _matching(old.columns, new.columns, (old.n_features, new.n_features))
    matrix[0, 0] = 1.0
    if CROSSED in old.columns and CROSSED in new.columns:
        sides = (
            (old.arm, new.arm, old.left, new.left),
            (old.context, new.context, old.right, new.right),
        )
        left, right = (
            _matching(theirs.columns, ours.columns, (theirs.n_columns, ours.n_columns))[
                np.ix_(before, after)
            ]
            for theirs, ours, before, after in sides
        )
        matrix[old.columns[CROSSED], new.columns[CROSSED]] = np.kron(left, right)
    return matrix


def _matching(
    old: Mapping[str, slice], new: Mapping[str, slice], shape: tuple[int, int]
) -> FloatArray:
    """Return the 0/1 matrix that takes each column to the one of the same name, group by group.

    Features that came later are the last of their group. Latent coordinates of another number have
    no names.
    """
    matrix = np.zeros(shape)
    for group, columns in new.items():
        known = old.get(group, slice(0, 0))
        if size(columns) == size(known) or group not in _UNNAMED:
            matrix[known, columns] = np.eye(size(known), size(columns))
    return matrix
