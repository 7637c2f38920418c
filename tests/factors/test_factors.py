"""The latent model: x = μ + Wz + ε with a noise variance per feature, fitted to seen entries."""

import numpy as np
import pytest

from halfseen.factors import model as factors
from halfseen.factors.model import (
    NOISE_FLOOR,
    NOISE_PRIOR,
    HalfSeenRows,
    extended,
    fit_factors,
    reduced,
)
from halfseen.values.rows import row_keys

DIM, RANK = 7, 2


def half_seen(n=60, *, seed=0, share=0.6, noise=0.4):
    random = np.random.default_rng(seed)
    loadings, offsets = random.normal(size=(RANK, DIM)), random.normal(size=DIM)
    table = offsets + random.normal(size=(n, RANK)) @ loadings
    table += noise * random.random(DIM) * random.normal(size=table.shape)
    table[random.random(table.shape) > share] = np.nan
    return table


def start_of(arms, rank=RANK):
    return extended(arms, fit_factors(arms, arms.empty_model()), rank)


def fitted(arms, rank=RANK, **settings):
    return fit_factors(arms, start_of(arms, rank), **settings)


def dense(model):
    """Mean and covariance of whole arms."""
    root = model.scale[:, None] * model.loadings.T
    return model.location, root @ root.T + np.diag(model.scale**2 * model.noise)


def dense_log_likelihood(table, model):
    mean, covariance = dense(model)
    total = 0.0
    for row in table:
        seen = ~np.isnan(row)
        part, rest = covariance[np.ix_(seen, seen)], row[seen] - mean[seen]
        total -= 0.5 * np.linalg.slogdet(2.0 * np.pi * part)[1]
        total -= 0.5 * rest @ np.linalg.solve(part, rest)
    return total


@pytest.mark.parametrize("through_origin", [False, True])
def test_likelihood_is_that_of_the_dense_gaussian(through_origin):
    table = half_seen()
    arms = HalfSeenRows(table, through_origin=through_origin)
    fit = fitted(arms)
    # The likelihood is of standardised entries: each unit divides the density by itself.
    units = float((~np.isnan(table)).sum(axis=0) @ np.log(arms.scale))
    assert fit.log_likelihood - units == pytest.approx(dense_log_likelihood(table, fit.model))


def test_filled_entries_are_the_dense_gaussians_conditional_means():
    table = half_seen()
    table[3] = np.nan  # an arm that shows nothing is filled with the means
    model = fitted(HalfSeenRows(table)).model
    mean, covariance = dense(model)
    expected = table.copy()
    for row in expected:
        seen = ~np.isnan(row)
        gain = covariance[np.ix_(~seen, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
        row[~seen] = mean[~seen] + gain @ (row[seen] - mean[seen])
    np.testing.assert_allclose(model.fill(table), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.fill(table)[3], model.location)


def test_evidence_subtracts_how_much_the_entries_tell_about_the_loadings():
    table = half_seen(n=30)
    arms = HalfSeenRows(table)
    fit = fitted(arms)
    model = fit.model
    mean, covariance = dense(model)
    root = model.loadings.T * model.scale[:, None]
    moments = np.zeros((DIM, RANK, RANK))
    for row in table:
        seen = ~np.isnan(row)
        gain = root[seen].T @ np.linalg.inv(covariance[np.ix_(seen, seen)])
        latent = gain @ (row[seen] - mean[seen])
        second = np.eye(RANK) - gain @ root[seen] + np.outer(latent, latent)
        moments[seen] += second
    precision = np.eye(RANK) + moments / model.noise[:, None, None]
    odds = -0.5 * np.linalg.slogdet(precision)[1].sum() - 0.5 * (model.loadings**2).sum()
    assert fit.evidence == pytest.approx(fit.log_likelihood + odds)


@pytest.mark.parametrize("through_origin", [False, True])
def test_every_step_increases_the_likelihood(through_origin, monkeypatch):
    monkeypatch.setattr(factors, "NOISE_PRIOR", 0.0)  # which pulls away from the likeliest noise
    for seed in range(5):
        arms = HalfSeenRows(half_seen(seed=seed, n=25), through_origin=through_origin)
        start = start_of(arms)
        steps = [fit_factors(arms, start, max_steps=n, tolerance=-1e9) for n in range(25)]
        likelihoods = [step.log_likelihood for step in steps]
        assert [step.n_steps for step in steps] == list(range(25))
        assert (np.diff(likelihoods) >= -1e-9 * np.abs(likelihoods[1:])).all()
        assert likelihoods[-1] > likelihoods[0] + 1.0


def test_a_converged_fit_has_no_better_neighbour():
    table = half_seen(n=40)
    arms = HalfSeenRows(table)
    best = fitted(arms, max_steps=5000, tolerance=-1.0)
    # Then ψ_j = (s_j + 4ψ̄)/(n_j + 4) with ψ̄ = Σs_j/Σn_j, so this is ψ̄.
    counts = arms.weights @ arms.seen + NOISE_PRIOR
    common = float(counts @ best.model.noise) / counts.sum()
    random, rows = np.random.default_rng(3), arms.standardised(best.model)[0]
    for _ in range(20):
        moved = arms.model(
            rows + 1e-3 * random.normal(size=rows.shape),
            best.model.noise * np.exp(1e-3 * random.normal(size=DIM)),
            RANK,
        )
        assert _objective(arms, moved, common) < _objective(arms, best.model, common)


def _objective(arms, model, common):
    likelihood = fit_factors(arms, model, max_steps=0).log_likelihood
    prior = (np.log(model.noise) + common / model.noise).sum()
    return likelihood - 0.5 * NOISE_PRIOR * float(prior)


def test_a_fit_is_extended_and_reduced_by_its_strongest_directions():
    arms = HalfSeenRows(half_seen(n=400, share=0.7))
    exact = {"tolerance": 1e-7, "max_steps": 5000}
    whole = fitted(arms, **exact)
    first = fit_factors(arms, start_of(arms, 1), **exact)
    second = fit_factors(arms, extended(arms, first, 2), **exact)
    assert second.log_likelihood == pytest.approx(whole.log_likelihood, abs=1.0)
    assert second.log_likelihood > first.log_likelihood + 50.0
    assert reduced(second.model, 2) is second.model
    again = fit_factors(arms, reduced(second.model, 1), **exact)
    assert first.log_likelihood - 1.0 < again.log_likelihood < second.log_likelihood - 50.0


def test_units_and_offsets_of_features_do_not_matter():
    table, random = half_seen(), np.random.default_rng(1)
    factors = 10.0 ** random.uniform(-6, 6, DIM) * random.choice([-1.0, 1.0], DIM)
    offsets = factors * np.nanstd(table, axis=0) * random.uniform(-1e3, 1e3, DIM)
    model, other = (
        fitted(HalfSeenRows(table)).model,
        fitted(HalfSeenRows(factors * table + offsets)).model,
    )
    np.testing.assert_allclose(other.noise, model.noise, rtol=1e-6)
    np.testing.assert_allclose(
        (other.fill(factors * table + offsets) - offsets) / factors, model.fill(table), rtol=1e-6
    )


def test_features_that_do_not_vary_or_were_hardly_seen_are_ignored():
    table = np.column_stack([half_seen(), np.full(60, 3.0), np.full((60, 2), np.nan)])
    table[5, DIM + 2] = 4.0
    model = fitted(HalfSeenRows(table)).model
    alone = fitted(HalfSeenRows(table[:, :DIM])).model
    assert (model.scale[DIM:] == 0.0).all()
    assert (model.loadings[:, DIM:] == 0.0).all()
    np.testing.assert_allclose(np.abs(model.loadings[:, :DIM]), np.abs(alone.loadings), rtol=1e-6)
    np.testing.assert_allclose(model.latent(table) ** 2, alone.latent(table[:, :DIM]) ** 2)
    assert model.fill(np.full((1, DIM + 3), np.nan))[0, DIM] == 3.0


def test_columns_of_zeros_and_ones_are_filled_between_them():
    random = np.random.default_rng(2)
    latent = random.normal(size=(400, 1))
    table = np.column_stack([latent + 0.1 * random.normal(size=(400, 3)), latent > 0.0])
    table[random.random(table.shape) < 0.3] = np.nan
    filled = fitted(HalfSeenRows(table), rank=1).model.fill(
        np.array([[2.0] * 3 + [np.nan], [-2.0] * 3 + [np.nan]])
    )
    assert filled[0, 3] > 0.8
    assert filled[1, 3] < 0.2


def test_an_arm_of_weight_two_counts_like_two_arms():
    table = half_seen(n=30)
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    twice, once = HalfSeenRows(np.vstack([table, table[:10]])), HalfSeenRows(table, weights)
    start = start_of(twice)
    expected, fit = (
        fit_factors(arms, start, max_steps=20, tolerance=-1.0) for arms in (twice, once)
    )
    assert fit.log_likelihood == pytest.approx(expected.log_likelihood)
    np.testing.assert_allclose(fit.model.fill(table), expected.model.fill(table))


def test_noise_of_exactly_low_rank_arms_stays_at_the_floor():
    model = fitted(HalfSeenRows(half_seen(noise=0.0, n=100))).model
    assert model.explains_all
    assert (model.noise >= NOISE_FLOOR).all()


def test_no_seen_entry_and_a_single_arm_give_a_model():
    hidden = np.full((3, DIM), np.nan)
    np.testing.assert_array_equal(HalfSeenRows(hidden).empty_model().fill(hidden), 0.0)
    one = half_seen(n=1)
    np.testing.assert_array_equal(HalfSeenRows(one).empty_model().fill(one), np.nan_to_num(one))


def test_rows_are_the_same_if_their_values_and_holes_are():
    rows = np.array(
        [[1.0, np.nan, 0.0], [1.0, -np.nan, -0.0], [np.nan, 1.0, 0.0], [1.0, 1e-100, 0.0]]
    )
    keys = row_keys(rows)
    assert keys[0] == keys[1]
    assert len(set(keys.tolist())) == 3
