"""Probabilistic PCA of half-seen arms: the likelihood is the dense one, and EM climbs it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from halfseen.core.likelihood import (
    NOISE_FLOOR,
    Ppca,
    fit_likelihood,
    log_likelihood,
    spectral_start,
)
from halfseen.core.moments import corrected_covariance
from halfseen.core.subspace import distance, top_eigenpairs
from halfseen.errors import InvalidInputError, InvalidSettingError

NEVER = -math.inf  # a tolerance at which EM takes all its steps


def masked(rng, arms, show=0.6):
    """Return arms with NaN where hidden."""
    return np.where(rng.random(arms.shape) < show, arms, np.nan)


def noisy_arms(rng, n_arms, dim, rank, *, noise=0.3, show=0.6):
    """Return half-seen arms around a random subspace."""
    arms = rng.normal(size=(n_arms, rank)) @ rng.normal(size=(rank, dim))
    return masked(rng, arms + noise * rng.normal(size=arms.shape), show)


def low_rank_arms(rng, n_arms, dim, rank, *, show=0.6):
    """Return the basis of a random subspace and half-seen arms in it, as the main study has."""
    basis = np.linalg.qr(rng.normal(size=(dim, rank)))[0]
    arms = (rng.normal(size=(n_arms, rank)) * rng.uniform(0.75, 1.25, rank)) @ basis.T
    return basis, masked(rng, arms, show)


def random_model(rng, dim, rank):
    return Ppca(rng.normal(size=(dim, rank)), float(rng.uniform(0.05, 2.0)))


def dense_log_likelihood(table, model):
    """Return the sum of normal log-densities of what each arm shows."""
    covariance = model.loadings @ model.loadings.T + model.noise * np.eye(table.shape[1])
    total = 0.0
    for arm in table:
        seen = ~np.isnan(arm)
        if seen.any():
            marginal = multivariate_normal(cov=covariance[np.ix_(seen, seen)])
            total += marginal.logpdf(arm[seen])
    return total


def mean_square(table):
    return float(np.nanmean(table**2))


def climbed(table, start, n_steps):
    """Return the log-likelihoods of a start and after each of so many steps."""
    likelihoods, model = [log_likelihood(table, start)], start
    for _ in range(n_steps):
        fit = fit_likelihood(table, [model], max_steps=1, tolerance=NEVER)
        likelihoods.append(fit.log_likelihood)
        model = fit.model
    return np.array(likelihoods), model


# -- the likelihood -------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", range(1, 7))
def test_the_likelihood_is_that_of_a_dense_gaussian(rank):
    rng = np.random.default_rng(rank)
    for show in (0.2, 0.6, 1.0):
        table, model = masked(rng, rng.normal(size=(25, 7)), show), random_model(rng, 7, rank)
        expected = dense_log_likelihood(table, model)
        assert log_likelihood(table, model) == pytest.approx(expected, rel=1e-11)


def test_the_likelihood_is_dense_across_blocks_of_arms_and_for_many_ranks():
    """Arms are taken 256 at a time; pivots are multiplied up before their logarithm is taken."""
    rng = np.random.default_rng(0)
    table, model = masked(rng, rng.normal(size=(600, 24)), 0.8), random_model(rng, 24, 20)
    large = model._replace(loadings=1e3 * model.loadings)
    for each in (model, large):
        expected = dense_log_likelihood(table, each)
        assert log_likelihood(table, each) == pytest.approx(expected, rel=1e-8)


def test_one_entry_by_hand():
    """One seen entry 2 with variance 1·1 + 3 = 4: −½(log 8π + 1)."""
    expected = -0.5 * (math.log(8.0 * math.pi) + 1.0)
    table = np.array([[2.0, math.nan]])
    assert log_likelihood(table, Ppca(np.array([[1.0], [5.0]]), 3.0)) == pytest.approx(expected)


def test_the_likelihood_of_a_fit_is_that_of_its_model():
    rng = np.random.default_rng(1)
    table = noisy_arms(rng, 80, 8, 2)
    fit = fit_likelihood(table, [spectral_start(table, 2)])
    assert fit.log_likelihood == pytest.approx(dense_log_likelihood(table, fit.model), rel=1e-10)
    assert fit.log_likelihood == pytest.approx(log_likelihood(table, fit.model), rel=1e-12)


def test_noise_below_the_floor_counts_as_the_floor():
    rng = np.random.default_rng(2)
    table, model = masked(rng, rng.normal(size=(20, 5))), random_model(rng, 5, 2)
    floor = NOISE_FLOOR * mean_square(table)
    at_floor = log_likelihood(table, model._replace(noise=floor))
    assert log_likelihood(table, model._replace(noise=0.0)) == pytest.approx(at_floor, rel=1e-9)


def test_a_rotation_of_the_loadings_changes_nothing():
    rng = np.random.default_rng(3)
    table, model = masked(rng, rng.normal(size=(30, 6))), random_model(rng, 6, 3)
    turned = model._replace(loadings=model.loadings @ np.linalg.qr(rng.normal(size=(3, 3)))[0])
    assert log_likelihood(table, turned) == pytest.approx(log_likelihood(table, model), rel=1e-12)


# -- models ---------------------------------------------------------------------------------------


def test_a_subspace_with_its_variances_is_the_whole_model():
    model = random_model(np.random.default_rng(4), 7, 3)
    basis, variances = model.subspace()
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    np.testing.assert_allclose((basis * variances) @ basis.T, model.loadings @ model.loadings.T)
    assert (np.diff(variances) <= 0.0).all()
    assert (basis[np.abs(basis).argmax(axis=0), range(3)] > 0.0).all()


def test_a_truncated_model_keeps_the_strongest_directions_and_the_total_variance():
    model = random_model(np.random.default_rng(5), 7, 4)
    basis, variances = model.subspace()
    shorter = model.truncated(2)
    assert distance(shorter.subspace()[0], basis[:, :2]) < 1e-7
    assert shorter.subspace()[1] == pytest.approx(variances[:2])
    before, after = ((each.loadings**2).sum() + 7 * each.noise for each in (model, shorter))
    assert after == pytest.approx(before)


# -- EM -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 4, 7])
def test_no_step_lowers_the_likelihood(rank):
    rng = np.random.default_rng(rank)
    for show in (0.3, 0.7, 1.0):
        table = noisy_arms(rng, 60, 8, 3, show=show)
        for start in (spectral_start(table, rank), random_model(rng, 8, rank)):
            likelihoods, _ = climbed(table, start, 40)
            assert np.diff(likelihoods).min() >= -1e-11 * np.abs(likelihoods).max()
            assert likelihoods[1] > likelihoods[0]


@given(
    seed=st.integers(0, 2**32 - 1),
    n_arms=st.integers(1, 30),
    dim=st.integers(2, 7),
    show=st.floats(0.15, 1.0),
    data=st.data(),
)
def test_no_step_lowers_the_likelihood_whatever_the_shapes(seed, n_arms, dim, show, data):
    rng = np.random.default_rng(seed)
    table = masked(rng, rng.normal(size=(n_arms, dim)), show)
    table[0, 0] = 1.0
    start = random_model(rng, dim, data.draw(st.integers(1, dim - 1)))
    likelihoods, model = climbed(table, start, 12)
    # At the floor, squares less what is explained are rounded to 1e-16 of a millionfold.
    assert np.diff(likelihoods).min() >= -1e-8 * (1.0 + np.abs(likelihoods).max())
    assert model.noise >= NOISE_FLOOR * mean_square(table) * (1.0 - 1e-12)


@pytest.mark.parametrize("rank", [3, 5], ids=["true rank", "too large a rank"])
def test_no_step_lowers_the_likelihood_of_exactly_low_rank_arms(rank):
    """The noise runs to its floor, where rounding is a million times larger than usual."""
    rng = np.random.default_rng(6)
    _, table = low_rank_arms(rng, 150, 12, 3)
    likelihoods, model = climbed(table, spectral_start(table, rank), 120)
    assert model.noise == pytest.approx(NOISE_FLOOR * mean_square(table), rel=1e-9)
    assert np.diff(likelihoods).min() >= -1e-8 * np.abs(likelihoods).max()


def test_many_steps_at_once_are_single_steps_one_after_the_other():
    rng = np.random.default_rng(7)
    table = noisy_arms(rng, 50, 7, 2)
    start = spectral_start(table, 2)
    likelihoods, _ = climbed(table, start, 9)
    for n_steps in (1, 2, 5, 9):
        fit = fit_likelihood(table, [start], max_steps=n_steps, tolerance=NEVER)
        assert fit.n_steps == n_steps
        assert fit.log_likelihood == pytest.approx(likelihoods[n_steps], rel=1e-9)


def test_em_stops_when_a_step_gains_less_than_the_tolerance():
    rng = np.random.default_rng(8)
    table = noisy_arms(rng, 60, 8, 2)
    start, least = spectral_start(table, 2), 1e-3 * np.count_nonzero(~np.isnan(table))
    gains = np.diff(climbed(table, start, 60)[0])
    fit = fit_likelihood(table, [start], max_steps=60, tolerance=1e-3)
    assert fit.n_steps == int((gains < least).argmax()) + 1 < 60


@pytest.mark.parametrize("rank", [1, 3])
def test_the_gradient_vanishes_at_the_result_of_em(rank):
    """Central differences over loadings and log noise, per seen entry; at the start it is large."""
    rng = np.random.default_rng(9)
    table = noisy_arms(rng, 120, 6, 2, noise=0.5)
    start = spectral_start(table, rank)
    end = fit_likelihood(table, [start], max_steps=4000, tolerance=NEVER).model
    assert end.noise > 100 * NOISE_FLOOR * mean_square(table)

    def gradient(model):
        flat = np.append(model.loadings, math.log(model.noise))

        def at(point):
            return log_likelihood(table, Ppca(point[:-1].reshape(6, rank), math.exp(point[-1])))

        steps = 1e-5 * np.eye(len(flat))
        slopes = [(at(flat + step) - at(flat - step)) / 2e-5 for step in steps]
        return np.abs(slopes).max() / np.count_nonzero(~np.isnan(table))

    assert gradient(start) > 1e-2
    assert gradient(end) < 1e-6


def test_fully_seen_arms_give_the_closed_form_of_principal_components():
    """Top eigenvectors of the mean of xx'; noise is the mean of the other eigenvalues."""
    rng = np.random.default_rng(10)
    table = noisy_arms(rng, 300, 6, 2, noise=0.4, show=1.0)
    values, vectors = np.linalg.eigh(table.T @ table / len(table))
    start = random_model(rng, 6, 2)
    fit = fit_likelihood(table, [start], max_steps=2000, tolerance=NEVER)
    basis, variances = fit.model.subspace()
    assert distance(basis, vectors[:, -2:]) < 1e-6
    assert fit.model.noise == pytest.approx(values[:-2].mean(), rel=1e-8)
    assert variances + fit.model.noise == pytest.approx(values[:-3:-1], rel=1e-8)


def test_the_noise_never_falls_below_its_floor():
    rng = np.random.default_rng(11)
    for scale in (1.0, 1e-40, 1e40):
        table = scale * low_rank_arms(rng, 100, 10, 2)[1]
        for max_steps in (1, 10, 300):
            fit = fit_likelihood(
                table, [spectral_start(table, 2)], max_steps=max_steps, tolerance=NEVER
            )
            assert fit.model.noise >= NOISE_FLOOR * mean_square(table) * (1.0 - 1e-12)
        assert fit.model.noise == pytest.approx(NOISE_FLOOR * mean_square(table))


# -- unusual tables -------------------------------------------------------------------------------


def test_a_feature_that_was_never_seen_gets_no_loadings_and_changes_no_others():
    rng = np.random.default_rng(12)
    table = noisy_arms(rng, 80, 7, 2)
    wider = np.insert(table, 3, np.nan, axis=1)
    start, without = random_model(rng, 8, 2), [0, 1, 2, 4, 5, 6, 7]
    fit = fit_likelihood(wider, [start], max_steps=20, tolerance=NEVER)
    narrow = start._replace(loadings=start.loadings[without])
    expected = fit_likelihood(table, [narrow], max_steps=20, tolerance=NEVER)
    assert not fit.model.loadings[3].any()
    np.testing.assert_allclose(fit.model.loadings[without], expected.model.loadings, rtol=1e-9)
    assert fit.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-11)
    assert not spectral_start(wider, 2).loadings[3].any()


def test_arms_that_show_nothing_change_nothing():
    rng = np.random.default_rng(13)
    table = noisy_arms(rng, 40, 6, 2)
    blind = np.insert(table, [0, 7, 40], np.nan, axis=0)
    fit, expected = (fit_likelihood(each, [spectral_start(each, 2)]) for each in (blind, table))
    assert np.array_equal(fit.model.loadings, expected.model.loadings)
    assert fit[1:] == expected[1:]
    assert log_likelihood(np.full((3, 6), np.nan), random_model(rng, 6, 2)) == 0.0


@pytest.mark.parametrize("show", [0.5, 1.0])
def test_one_arm_is_enough(show):
    rng = np.random.default_rng(14)
    table = masked(rng, rng.normal(size=(1, 6)), show)
    for rank in range(1, 6):
        fit = fit_likelihood(table, [spectral_start(table, rank)], max_steps=200)
        assert np.isfinite(fit.model.loadings).all()
        assert fit.log_likelihood == pytest.approx(dense_log_likelihood(table, fit.model), rel=1e-6)


def test_a_single_feature_is_legal():
    table = np.array([[1.0], [math.nan], [-2.0]])
    fit = fit_likelihood(table, [spectral_start(table, 1)], max_steps=500, tolerance=0.0)
    variance = float(fit.model.loadings[0, 0] ** 2) + fit.model.noise
    assert variance == pytest.approx(2.5, rel=1e-3)


def test_the_rank_may_be_one_less_than_the_dimension():
    rng = np.random.default_rng(15)
    table = noisy_arms(rng, 100, 6, 5, noise=0.1, show=0.8)
    start = spectral_start(table, 5)
    likelihoods, model = climbed(table, start, 60)
    assert np.diff(likelihoods).min() >= -1e-10 * np.abs(likelihoods).max()
    assert likelihoods[-1] == pytest.approx(dense_log_likelihood(table, model), rel=1e-10)


def test_arms_of_zeros_give_a_finite_model_without_loadings():
    table = masked(np.random.default_rng(16), np.zeros((20, 5)))
    fit = fit_likelihood(table, [spectral_start(table, 2)])
    assert not fit.model.loadings.any()
    assert 0.0 < fit.model.noise < 1e-3
    assert math.isfinite(fit.log_likelihood)


def test_nothing_seen_at_all_is_refused():
    start = random_model(np.random.default_rng(17), 4, 1)
    with pytest.raises(InvalidInputError, match="at least one seen entry"):
        fit_likelihood(np.full((3, 4), np.nan), [start])


def test_no_steps_at_all_are_refused():
    with pytest.raises(InvalidSettingError, match=r"max_steps .* got 0"):
        fit_likelihood(np.ones((3, 4)), [Ppca(np.ones((4, 1)), 1.0)], max_steps=0)


@pytest.mark.parametrize("scale", [100.0, 0.01, 1e-90, 1e90])
def test_a_multiple_of_the_arms_has_that_multiple_of_the_model(scale):
    rng = np.random.default_rng(18)
    table = noisy_arms(rng, 60, 7, 2)
    fit = fit_likelihood(table, [spectral_start(table, 2)])
    scaled = fit_likelihood(scale * table, [spectral_start(scale * table, 2)])
    n_entries = np.count_nonzero(~np.isnan(table))
    np.testing.assert_allclose(scaled.model.loadings, scale * fit.model.loadings, rtol=1e-9)
    assert scaled.model.noise == pytest.approx(scale**2 * fit.model.noise, rel=1e-9)
    expected = fit.log_likelihood - n_entries * math.log(scale)
    assert scaled.log_likelihood == pytest.approx(expected, rel=1e-10)
    assert scaled.n_steps == fit.n_steps


def test_a_power_of_two_changes_no_bit_but_the_exponents():
    rng = np.random.default_rng(19)
    table = noisy_arms(rng, 60, 7, 2)
    fit, scaled = (
        fit_likelihood(each, [spectral_start(each, 2)]) for each in (table, 2.0**40 * table)
    )
    assert np.array_equal(scaled.model.loadings, 2.0**40 * fit.model.loadings)
    assert scaled.model.noise == 2.0**80 * fit.model.noise


def test_the_order_of_the_arms_does_not_matter():
    rng = np.random.default_rng(20)
    table = noisy_arms(rng, 300, 8, 3)
    turned = table[rng.permutation(300)]
    fit, other = (fit_likelihood(each, [spectral_start(each, 3)]) for each in (table, turned))
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-11)
    products = [each.model.loadings @ each.model.loadings.T for each in (fit, other)]
    np.testing.assert_allclose(products[1], products[0], atol=1e-8)


# -- starts ---------------------------------------------------------------------------------------


def test_the_most_likely_of_several_starts_is_kept():
    rng = np.random.default_rng(21)
    table = noisy_arms(rng, 60, 8, 2)
    starts = [random_model(rng, 8, 2) for _ in range(4)]
    alone = [fit_likelihood(table, [start], max_steps=3) for start in starts]
    best = int(np.argmax([fit.log_likelihood for fit in alone]))
    together = fit_likelihood(table, starts, max_steps=3)
    assert together.log_likelihood == alone[best].log_likelihood
    assert np.array_equal(together.model.loadings, alone[best].model.loadings)
    assert together.n_steps == sum(fit.n_steps for fit in alone)


def test_starts_are_left_as_they_were():
    rng = np.random.default_rng(22)
    table, start = noisy_arms(rng, 30, 6, 2), random_model(rng, 6, 2)
    before, content = start.loadings.copy(), table.copy()
    fit_likelihood(table, [start])
    assert np.array_equal(start.loadings, before)
    assert np.array_equal(table, content, equal_nan=True)


@pytest.mark.parametrize("order", [0, 1], ids=["first", "second"])
def test_a_bad_last_subspace_does_not_win_over_a_good_fresh_start(order):
    rng = np.random.default_rng(23)
    for _ in range(5):
        basis, table = low_rank_arms(rng, 200, 20, 3, show=0.4)
        rest = np.linalg.svd(basis)[0][:, 3:6]  # orthogonal to all arms
        bad, fresh = Ppca(rest, 1e-6), spectral_start(table, 3)
        starts = [bad, fresh] if order == 0 else [fresh, bad]
        fit = fit_likelihood(table, starts)
        assert distance(fit.model.subspace()[0], basis) < 0.01
        assert fit.log_likelihood >= fit_likelihood(table, [fresh]).log_likelihood


def test_a_start_uses_the_given_probability():
    rng = np.random.default_rng(24)
    table = low_rank_arms(rng, 500, 10, 2, show=0.5)[1]
    told, counted = spectral_start(table, 2, 0.5), spectral_start(table, 2)
    each = spectral_start(table, 2, np.full(10, 0.5))
    assert distance(told.subspace()[0], counted.subspace()[0]) < 0.1
    np.testing.assert_allclose(each.loadings, told.loadings, rtol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_low_rank_arms_give_their_subspace_where_the_covariance_does_not(seed):
    """Rank 3 in 30 dimensions, 320 arms at p = .3, the main study after 40 rounds."""
    basis, table = low_rank_arms(np.random.default_rng(seed), 320, 30, 3, show=0.3)
    filled = np.nan_to_num(table)
    covariance = corrected_covariance(filled.T @ filled, len(filled), 0.3)
    likely = fit_likelihood(table, [spectral_start(table, 3, 0.3)]).model.subspace()[0]
    assert distance(likely, basis) < 0.01
    assert distance(top_eigenpairs(covariance, 3)[1], basis) > 0.1
