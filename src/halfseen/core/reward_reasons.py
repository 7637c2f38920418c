"""Why arms score as they do under a reward model, and what seeing more of them would change."""

from collections.abc import Sequence

import numpy as np

from halfseen.core.context_features import JointFeatures
from halfseen.core.item_coefficients import ItemCoefficients
from halfseen.core.offers import Offer
from halfseen.core.reasons import Reasons, moves_by_seeing
from halfseen.core.reward_model import RewardModel
from halfseen.values import FloatArray


def reasons(model: RewardModel, offer: Offer, width_scale: float, item_width: float) -> Reasons:
    """Return the parts of the scores of arms."""
    noise, theta = model.scales.noise, model.model.estimate
    (_, estimates, widths), points = model.score(offer, width_scale, item_width)
    option = model.features.option if isinstance(model.features, JointFeatures) else model.features
    own_theta = _option_theta(model, theta)
    intercept = model.shift + noise * float(theta[0] * points[0, 0])
    features = noise * option.weights(own_theta) * option.deviations(offer.table)
    missing = noise * option.missing(offer.table, own_theta)
    context, crossed = _context_reasons(model, offer, theta)
    rest = estimates - (intercept + features.sum(axis=1) + missing.sum(axis=1))
    item = rest - context.sum(axis=1) - crossed.sum(axis=1)
    if model.items is None:
        item = np.zeros(offer.n_arms)
    return Reasons(intercept, features, missing, item, widths, context, crossed)


def _option_theta(model: RewardModel, theta: FloatArray) -> FloatArray:
    """Return the coefficients of the arm's features, without those of the context."""
    features = model.features
    if not isinstance(features, JointFeatures):
        return theta
    own = np.zeros(features.option.n_features)
    for group, columns in features.option.columns.items():
        if group in features.columns:
            own[columns] = features.scales[group] * theta[features.columns[group]]
    return own


def _context_theta(
    model: RewardModel, offer: Offer, theta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of the context's features, for all arms and more for each."""
    assert isinstance(model.features, JointFeatures)
    own = None
    if isinstance(model.items, ItemCoefficients):
        own = model.items.coefficients(offer.keys, theta)
    return model.features.context_theta(offer, theta, own)


def _context_reasons(
    model: RewardModel, offer: Offer, theta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what each feature of the context adds: to all arms, and more to each of them."""
    if not isinstance(model.features, JointFeatures):
        nothing = np.zeros((offer.n_arms, 0))
        return nothing, nothing
    assert offer.contexts is not None
    context, table = model.features.context, offer.contexts
    shared, each = _context_theta(model, offer, theta)
    deviations = context.deviations(table)[0]

    def added(theta: FloatArray) -> FloatArray:
        by_value: FloatArray = context.weights(theta) * deviations
        by_hole: FloatArray = context.missing(table, theta)[0]
        return by_value + by_hole

    more = np.array([added(own) for own in each])
    noise = model.scales.noise
    return noise * np.broadcast_to(added(shared), more.shape), noise * more


def moved_by_seeing(
    model: RewardModel, offer: Offer, groups: Sequence[Sequence[int]]
) -> FloatArray:
    """Return by which deviation estimates of arms move if groups of their features are seen."""
    theta = model.model.estimate
    if isinstance(model.features, JointFeatures):
        option = model.features.option
        theta = _option_theta(model, theta) + model.features.crossed_theta(offer, theta)
    else:
        option = model.features
    moved = option.moved_by_seeing(offer.table, theta, groups)
    if model.items is not None:
        moved *= model.items.left(offer.keys, model.features.parts_of(offer))[:, None]
    moved *= model.scales.noise
    return moved


def moved_by_context(
    model: RewardModel, offer: Offer, groups: Sequence[Sequence[int]]
) -> list[FloatArray]:
    """Return how estimates of arms move if groups of the context's features are seen.

    For each group a matrix (n_arms, n): the estimates move by it times n standard normals.
    """
    if not isinstance(model.features, JointFeatures):
        return [np.zeros((offer.n_arms, 0)) for _ in groups]
    assert offer.contexts is not None
    context = model.features.context
    shared, each = _context_theta(model, offer, model.model.estimate)
    weights = np.array([context.weights(shared + own) for own in each])
    varies = context.model.scale > 0.0
    hidden = (offer.contexts[0] != offer.contexts[0]) & varies
    given = context.model.loadings * varies, context.model.noise, weights, groups
    return [model.scales.noise * move for move in moves_by_seeing(hidden, *given)]
