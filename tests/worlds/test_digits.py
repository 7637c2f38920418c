"""The world of digits: the published instances, the same for everybody."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from halfseen.paper import DigitsWorld
from halfseen.paper.digits import MAX_RANK, latent_pool


@pytest.mark.parametrize(
    ("seed", "settings"),
    [(0, {}), (10_001, {"observe_prob": 0.8}), (3, {"dim": 160, "rank": 5, "horizon": 700})],
    ids=str,
)
def test_random_numbers_are_drawn_in_the_published_order(seed, settings):
    """Protocols, section 4, written down independently, all rounds at once."""
    world = DigitsWorld(**settings)
    rounds, arms, dim, rank = world.horizon, world.n_arms, world.dim, world.rank
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 1797, size=rounds * arms)
    latents = latent_pool(rank)[drawn] * np.linspace(1.25, 0.75, rank)
    basis, _ = np.linalg.qr(rng.standard_normal((dim, rank)))
    table = latents @ basis.T
    table /= np.linalg.norm(table, axis=1).max()
    direction = rng.standard_normal(rank)
    theta = basis @ (direction / np.linalg.norm(direction))
    table = table.reshape(rounds, arms, dim)
    masks = rng.random(table.shape) < world.observe_prob
    noise = 0.05 * np.random.default_rng(seed).standard_normal(rounds)
    realization = world.realize(seed)
    assert np.array_equal(realization.basis, basis)
    found = list(realization.rounds())
    assert np.array_equal([round.slate.mask for round in found], masks)
    assert np.array_equal([round.noise for round in found], noise)
    assert np.abs([round.arms for round in found] - table).max() < 1e-14
    assert np.abs([round.means for round in found] - table @ theta).max() < 1e-14


def test_the_pool_is_that_of_a_singular_value_decomposition():
    """Signs are fixed: those of LAPACK, which made the published instances, may change."""
    images = load_digits().data - load_digits().data.mean(axis=0)
    deviations = images.std(axis=0)
    images /= np.where(deviations < 1e-12, 1.0, deviations)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    _, _, directions = np.linalg.svd(images, full_matrices=False)
    signs = np.sign(directions[np.arange(5), np.abs(directions[:5]).argmax(axis=1)])
    projected = images @ (directions[:5] * signs[:, None]).T
    projected = (projected - projected.mean(axis=0)) / projected.std(axis=0)
    projected /= np.linalg.norm(projected, axis=1, keepdims=True) * np.sqrt(5)
    assert np.abs(latent_pool(5) - projected).max() < 1e-10


def test_the_variances_in_the_facts_are_those_of_the_offered_arms():
    realization = DigitsWorld(horizon=50).realize(4)
    arms = np.concatenate([arms for *_, arms in realization.rounds()])
    squares = ((arms @ realization.basis) ** 2).mean(axis=0)
    assert realization.facts.latent_variances == pytest.approx(squares, rel=1e-12)


def test_as_many_directions_as_there_are_pixels_that_change_can_be_used():
    pool = latent_pool(MAX_RANK)
    assert np.isfinite(pool).all()
    assert np.linalg.matrix_rank(pool) == MAX_RANK
