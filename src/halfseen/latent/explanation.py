"""Why arms score as they do, and what seeing more of them would change.

The estimate of an arm is a sum over the entries of its filled row x̂ and of its context, because
every column of φ is linear in the filled row, or a mask:

    b + Σ_j w_j (x̂_j − μ_j) + Σ_j v_j (mask_j − share_j) + the context's part + the item's.

Seeing entries moves x̂ by a normal law that the factor model gives (`moves_by_seeing`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from halfseen.factors.table import moved_by_seeing as entries_moved
from halfseen.factors.table import moves_by_seeing
from halfseen.latent.features import RowFeatures
from halfseen.latent.groups import CROSSED, FILLED, LATENT, MASK
from halfseen.latent.reward_model import RewardModel
from halfseen.values import BoolArray, FloatArray, Slate
from halfseen.values.reasons import Reasons


def reasons(
    model: RewardModel,
    slate: Slate,
    contexts: FloatArray,
    estimates: FloatArray,
    widths: FloatArray,
) -> Reasons:
    """Return the parts of the scores of arms, with their context (1, context_dim)."""
    features, table, theta = model.features, slate.table, _arm_theta(model)
    arm, intercept = features.arm, model.shift + float(model.theta[0])
    by_value = _weights(arm, theta) * _deviations(arm, table)
    by_hole = _by_mask(arm, table, theta)
    context, crossed = _context_reasons(model, slate, contexts)
    rest = estimates - (intercept + by_value.sum(axis=1) + by_hole.sum(axis=1))
    item = rest - context.sum(axis=1) - crossed.sum(axis=1)
    if not features.n_items:
        item = np.zeros(slate.n_arms)
    dim, context_dim = table.shape[1], contexts.shape[1]
    return Reasons(
        intercept,
        _widened(by_value, dim),
        _widened(by_hole, dim),
        item,
        widths,
        _widened(context, context_dim),
        _widened(crossed, context_dim),
        implausible=_implausible(arm, table),
        context_implausible=_implausible(features.context, contexts),
    )


def _widened(values: FloatArray, dim: int) -> Any:
    """Return values (n, known) of each feature, with zeros for features that came later."""
    return np.pad(values, ((0, 0), (0, dim - values.shape[1])))


def _implausible(rows: RowFeatures, table: FloatArray) -> BoolArray:
    """Return which seen values of rows (n, dim) count as hidden."""
    shown = rows.shown(table)
    hidden = _widened(shown != shown, table.shape[1])
    return np.asarray(hidden & (table == table))


def _weights(rows: RowFeatures, theta: FloatArray) -> FloatArray:
    """Return what a deviation of each entry of a filled row adds to θ'φ, shape (dim,).

    The posterior mean of z given what is seen is that given the filled row, as both are linear:
    E[z | seen] = E[E[z | all] | seen]. So θ'φ is linear in the filled row, with weights that do not
    depend on what is seen.
    """
    model, columns = rows.model, rows.columns
    weights = np.zeros(model.dim)
    if FILLED in columns:
        weights += theta[columns[FILLED]] / rows.norms[FILLED]
    if LATENT in columns:
        precise = model.loadings / np.sqrt(model.noise)
        precision = np.eye(model.rank) + precise @ precise.T
        direction = np.linalg.solve(precision, theta[columns[LATENT]])
        weights += (direction @ (model.loadings / model.noise)) / rows.norms[LATENT]
    return weights * (model.scale > 0.0)


def _deviations(rows: RowFeatures, table: FloatArray) -> FloatArray:
    """Return filled rows (n, dim) in deviations from the mean, clipped."""
    model, table = rows.model, rows.shown(table)
    seen = model.residuals(table) * np.sqrt(model.noise)
    return np.where(seen == seen, seen, model.latent(table) @ model.loadings)


def _by_mask(rows: RowFeatures, table: FloatArray, theta: FloatArray) -> FloatArray:
    """Return what the mask of rows (n, dim) adds to θ'φ, shape (n, dim)."""
    table, masked = rows.shown(table), rows.masked
    added = np.zeros(table.shape)
    if MASK in rows.columns:
        seen = ((table == table) - rows.shares) * (rows.shares > 0.0)
        added[:, masked] = seen[:, masked] * theta[rows.columns[MASK]] / rows.norms[MASK]
    return added


def _arm_theta(model: RewardModel) -> FloatArray:
    """Return the coefficients of the arm's columns, without those of products, (n_columns,)."""
    return model.theta[1 : 1 + model.features.arm.n_columns]


def _crossed_theta(model: RewardModel) -> FloatArray:
    """Return the coefficients of products, one row for each column of the arm."""
    features = model.features
    columns = features.columns.get(CROSSED, slice(0, 0))
    weights = model.theta[columns] / features.crossed_norm
    return weights.reshape(len(features.left), len(features.right))


def _context_theta(model: RewardModel, slate: Slate) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of the context's columns: for all arms, and more for each.

    Shapes (n_columns,) and (n_arms, n_columns).
    """
    features, table = model.features, slate.table
    n_columns, first = features.context.n_columns, 1 + features.arm.n_columns
    own = np.zeros((len(table), features.n_item_columns))
    own[:, model.item_columns] = model.item_taus * model.items.coefficients(
        model.keys(table, slate.items), model.ridge.estimate
    )
    each = np.zeros((len(table), n_columns))
    each[:, features.by_item] = own[:, 1:]
    each[:, features.right] += features.arm.design(table)[:, features.left] @ _crossed_theta(model)
    return model.theta[first : first + n_columns], each


def _context_reasons(
    model: RewardModel, slate: Slate, contexts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what each feature of the context adds: to all arms, and more to each of them."""
    context = model.features.context
    shared, each = _context_theta(model, slate)
    deviations = _deviations(context, contexts)[0]

    def added(theta: FloatArray) -> FloatArray:
        by_value: FloatArray = _weights(context, theta) * deviations
        by_hole: FloatArray = _by_mask(context, contexts, theta)[0]
        return by_value + by_hole

    more = np.array([added(own) for own in each])
    return np.broadcast_to(added(shared), more.shape), more


def moved_by_seeing(
    model: RewardModel, slate: Slate, contexts: FloatArray, groups: Sequence[Sequence[int]]
) -> FloatArray:
    """Return by which deviation estimates of arms move if groups of their features are seen.

    Mask features are unchanged: choosing to measure an entry carries no information.
    """
    features, table = model.features, slate.table
    own, arm = _arm_theta(model), features.arm
    context = features.context.design(contexts)[0, features.right]
    own[features.left] += _crossed_theta(model) @ context
    varies = arm.model.scale > 0.0
    known = _known(groups, arm.model.dim)
    loadings, noise, weights = arm.model.loadings * varies, arm.model.noise, _weights(arm, own)
    shown = arm.shown(table)
    hidden = (shown != shown) & varies
    moved = np.array([entries_moved(each, loadings, noise, weights, known) for each in hidden])
    moved *= _unexplained_share(model, slate, contexts)[:, None]
    return moved


def _unexplained_share(model: RewardModel, slate: Slate, contexts: FloatArray) -> FloatArray:
    """Return which share of the effect of an arm's feature is left in φ̃, shape (n_arms,).

    If all rewards of an item had φ_j = x, then B_j = xΣc, and φ̃_j = x(1 − c'A⁻¹Σc). As c₁ is
    constant, Σcc₁ is the first column of A − I, and the share is (A⁻¹c)₁/c₁.
    """
    if not model.features.n_items:
        return np.ones(slate.n_arms)
    _, c = model.design(slate.table, contexts)
    covariances = model.items.of_each(model.keys(slate.table, slate.items)).covariance
    gain = (covariances[:, 0] * c).sum(axis=1)
    return np.asarray(np.clip(gain / c[:, 0], 0.0, 1.0))


def moved_by_context(
    model: RewardModel, slate: Slate, contexts: FloatArray, groups: Sequence[Sequence[int]]
) -> list[FloatArray]:
    """Return how estimates of arms move if groups of the context's features are seen.

    For each group a matrix (n_arms, n): the estimates move by it times n standard normals.
    """
    context = model.features.context
    shared, each = _context_theta(model, slate)
    weights = np.array([_weights(context, shared + own) for own in each])
    varies = context.model.scale > 0.0
    shown = context.shown(contexts)[0]
    hidden = (shown != shown) & varies
    known = _known(groups, context.model.dim)
    loadings, noise = context.model.loadings * varies, context.model.noise
    return moves_by_seeing(hidden, loadings, noise, weights, known)


def _known(groups: Sequence[Sequence[int]], dim: int) -> list[list[int]]:
    """Return groups of features without those that came later, of which nothing is known."""
    return [[feature for feature in group if feature < dim] for group in groups]
