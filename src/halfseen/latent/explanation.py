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
    sigma, theta, features = model.scales.noise_scale, model.ridge.estimate, model.features
    arm, table, own = features.arm, slate._table, features.arm_theta(theta)
    intercept = model.shift + sigma * float(theta[0] * features.taus[0])
    by_value = sigma * arm.weights(own) * arm.deviations(table)
    by_hole = sigma * arm.missing(table, own)
    context, crossed = _context_reasons(model, slate, contexts)
    rest = estimates - (intercept + by_value.sum(axis=1) + by_hole.sum(axis=1))
    item = rest - context.sum(axis=1) - crossed.sum(axis=1)
    if not features.n_item_columns:
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


def _context_theta(model: RewardModel, slate: Slate) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of the context's columns, for all arms and more for each."""
    theta, table = model.ridge.estimate, slate._table
    own = model.items.coefficients(model.keys(table, slate._items), theta)
    return model.features.context_theta(table, theta, own)


def _context_reasons(
    model: RewardModel, slate: Slate, contexts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what each feature of the context adds: to all arms, and more to each of them."""
    context = model.features.context
    shared, each = _context_theta(model, slate)
    deviations = context.deviations(contexts)[0]

    def added(theta: FloatArray) -> FloatArray:
        by_value: FloatArray = context.weights(theta) * deviations
        by_hole: FloatArray = context.missing(contexts, theta)[0]
        return by_value + by_hole

    more, sigma = np.array([added(own) for own in each]), model.scales.noise_scale
    return sigma * np.broadcast_to(added(shared), more.shape), sigma * more


def moved_by_seeing(
    model: RewardModel, slate: Slate, contexts: FloatArray, groups: Sequence[Sequence[int]]
) -> FloatArray:
    """Return by which deviation estimates of arms move if groups of their features are seen.

    Mask features are unchanged: choosing to measure an entry carries no information.
    """
    features, theta, table = model.features, model.ridge.estimate, slate._table
    own = features.arm_theta(theta) + features.crossed_theta(contexts, theta)
    arm = features.arm
    varies = arm.model.scale > 0.0
    known = _known(groups, arm.model.dim)
    loadings, noise, weights = arm.model.loadings * varies, arm.model.noise, arm.weights(own)
    shown = arm.shown(table)
    hidden = (shown != shown) & varies
    moved = np.array([entries_moved(each, loadings, noise, weights, known) for each in hidden])
    keys, (_, c) = model.keys(table, slate._items), features.design(table, contexts)
    moved *= model.items.unexplained_share(keys, c)[:, None]
    moved *= model.scales.noise_scale
    return moved


def moved_by_context(
    model: RewardModel, slate: Slate, contexts: FloatArray, groups: Sequence[Sequence[int]]
) -> list[FloatArray]:
    """Return how estimates of arms move if groups of the context's features are seen.

    For each group a matrix (n_arms, n): the estimates move by it times n standard normals.
    """
    context = model.features.context
    shared, each = _context_theta(model, slate)
    weights = np.array([context.weights(shared + own) for own in each])
    varies = context.model.scale > 0.0
    shown = context.shown(contexts)[0]
    hidden = (shown != shown) & varies
    known = _known(groups, context.model.dim)
    loadings, noise = context.model.loadings * varies, context.model.noise
    moves = moves_by_seeing(hidden, loadings, noise, weights, known)
    return [model.scales.noise_scale * move for move in moves]


def _known(groups: Sequence[Sequence[int]], dim: int) -> list[list[int]]:
    """Return groups of features without those that came later, of which nothing is known."""
    return [[feature for feature in group if feature < dim] for group in groups]
