"""One opening of `LatentUcb` and the choice that follows, checked against docs/latent-ucb.md.

W, ψ, the rank and the scales come from the policy: a further step of EM, another rank or another
scale must gain nothing. All else is recomputed with dense matrices, step by step and with the
symbols of the page. Read this to see what is computed, and `Epoch.open` to see how it is done fast.
Ten items by id are offered in every round, with a context; entries of both are hidden.
"""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from halfseen import LatentUcb
from halfseen.factors.model import HalfSeenRows, fit_rank

CENTRES = {"latent": 0.0, "filled": 0.0, "context-mask": -2.0}  # of log τ; of the others −1
N_ITEMS, DIM, CONTEXT_DIM, N_ROUNDS = 10, 6, 4, 75  # an epoch opens in round 75


def half_seen(random, n, loadings):
    rows = 3.0 + random.normal(size=(n, 2)) @ loadings
    rows += 0.5 * random.normal(size=rows.shape)
    return np.where(random.random(rows.shape) < 0.7, rows, np.nan)


def played():
    """Return a policy, what was offered, contexts, arms that were played, rewards, a decision."""
    random = np.random.default_rng(3)
    loadings, context_loadings = (random.normal(size=(2, dim)) for dim in (DIM, CONTEXT_DIM))
    by_item = random.normal(size=(N_ITEMS, 1 + CONTEXT_DIM))
    policy, slates, contexts, arms, rewards = LatentUcb(), [], [], [], []
    while True:
        slate, context = (
            half_seen(random, N_ITEMS, loadings),
            half_seen(random, 1, context_loadings)[0],
        )
        decision = policy.choose(slate, context=context, items=np.arange(N_ITEMS))
        if len(slates) == N_ROUNDS - 1:
            return policy, slates, contexts, arms, rewards, (slate, context, decision)
        known = np.append(1.0, np.nan_to_num(context) - 3.0)
        means = np.nan_to_num(slate)[:, 0] + by_item @ known
        reward = float(means[decision.arm] + 0.3 * random.normal())
        policy.learn(decision, reward)
        slates, contexts = [*slates, slate], [*contexts, context]
        arms, rewards = [*arms, decision.arm], [*rewards, reward]


# Step 1: the factor model x = μ + Wz + ε of rows, here in standardised units


def latent_posterior(x, loadings, noise):
    """E[z] and Cov[z] of one row: W is loadings', the mean is 0."""
    seen = ~np.isnan(x)
    w = loadings[:, seen].T
    m = np.eye(len(loadings)) + w.T @ (w / noise[seen, None])
    return np.linalg.solve(m, w.T @ (x[seen] / noise[seen])), np.linalg.inv(m)


def log_likelihood(table, mean, loadings, noise):
    """Of the seen entries: normal with covariance WW' + Ψ."""
    total = 0.0
    for x in table:
        seen = ~np.isnan(x)
        if seen.any():
            w = loadings[:, seen].T
            law = multivariate_normal(mean[seen], w @ w.T + np.diag(noise[seen]))
            total += law.logpdf(x[seen])
    return total


def em_step(table, loadings, noise):
    """Return μ, W', ψ and Σ E[zz'] over the rows that show each feature, after a step of EM.

    (w_j, μ_j) = (Σ E[ff'])⁻¹ Σ x_j E[f] with f = (z, 1); q_j is the sum of squared residuals.
    """
    rank, dim = len(loadings), table.shape[1]
    coefficients, moments, q = np.zeros((rank + 1, dim)), np.zeros((dim, rank, rank)), np.zeros(dim)
    posteriors = [latent_posterior(x, loadings, noise) for x in table]
    counts = np.count_nonzero(~np.isnan(table), axis=0)
    for j in range(dim):
        second, cross, square = np.zeros((rank + 1, rank + 1)), np.zeros(rank + 1), 0.0
        for x, (mean, covariance) in zip(table, posteriors, strict=True):
            if not np.isnan(x[j]):
                f = np.append(mean, 1.0)
                second += np.outer(f, f)
                second[:rank, :rank] += covariance
                cross += x[j] * f
                square += x[j] ** 2
        coefficients[:, j] = np.linalg.solve(second, cross)
        moments[j], q[j] = second[:rank, :rank], square - coefficients[:, j] @ cross
    psi = (q + 4.0 * q.sum() / counts.sum()) / (counts + 4.0)
    return coefficients[rank], coefficients[:rank], psi, moments


def rank_evidence(table, loadings, noise):
    """log-likelihood − ½ Σ_j log det(I + Σ E[zz']/ψ_j) − ½ ‖W‖²."""
    rank = len(loadings)
    _, _, _, moments = em_step(table, loadings, noise)
    log_dets = np.linalg.slogdet(np.eye(rank) + moments / noise[:, None, None])[1]
    likelihood = log_likelihood(table, np.zeros(table.shape[1]), loadings, noise)
    return likelihood - 0.5 * log_dets.sum() - 0.5 * np.sum(loadings**2)


# Step 2: groups of columns of norm about 1, for arms and for contexts


def columns_of(table, rows, groups):
    """E[z]/√m, x̂/√d and (mask − share)/√Σ share(1 − share)."""
    model, shares = rows.factors, rows.shares
    x, mask = (table - model.location) / model.scale, ~np.isnan(table)
    z = np.array([latent_posterior(row, model.loadings, model.noise)[0] for row in x])
    every = {
        "latent": z / math.sqrt(model.rank),
        "filled": np.where(mask, x, z @ model.loadings) / math.sqrt(model.dim),
        "mask": (mask - shares) / math.sqrt((shares * (1.0 - shares)).sum()),
    }
    return {group: every[group] for group in groups}


def products_of(arm, context):
    """Products of the columns of both sides without masks, over √(2 groups · 2 groups)."""
    left, right = (
        np.hstack([each[group] for group in ("latent", "filled")]) for each in (arm, context)
    )
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1) / 2.0


# Steps 3 and 4: σ²K is the covariance of rewards with all coefficients integrated out


def log_evidence(design, by_item, same_item, rewards, taus, item_taus):
    """−½((n − 1 + n₀) log σ² + log det K) with σ at its best, and σ²."""
    phi, c = design * taus, by_item * item_taus
    n, r = len(rewards), rewards - rewards.mean()
    k = np.eye(n) + phi @ phi.T + same_item * (c @ c.T)
    n_pseudo = 2.0 + n / 50.0
    square = r @ np.linalg.solve(k, r) + 0.05 * n_pseudo * np.mean(r**2)
    variance = square / (n - 1 + n_pseudo)
    log_det = np.linalg.slogdet(k)[1]
    return -0.5 * ((n - 1 + n_pseudo) * math.log(variance) + log_det), variance


def test_an_opening_and_the_choice_after_it_are_what_the_page_says():
    policy, slates, contexts, played_arms, rewards, (slate, context, decision) = played()
    epoch = policy._epoch
    assert epoch.record.round == N_ROUNDS
    model, features = epoch.reward_model, epoch.features

    # 1. Rows. EM has converged, and a smaller or larger rank has less evidence.
    some = [each for each in contexts if not np.isnan(each).all()]  # else there was no context
    for rows, offered in ((epoch.arms, np.vstack(slates)), (epoch.context, some)):
        table = np.array(list({row.tobytes(): row for row in offered}.values()))  # different rows
        fitted, zero = rows.factors, np.zeros(table.shape[1])
        x = (table - fitted.location) / fitted.scale
        mean, loadings, psi, _ = em_step(x, fitted.loadings, fitted.noise)
        before = log_likelihood(x, zero, fitted.loadings, fitted.noise)
        gain = log_likelihood(x, mean, loadings, psi) - before
        assert abs(gain) < 1e-3 * np.count_nonzero(~np.isnan(x))
        np.testing.assert_allclose(psi, fitted.noise, rtol=0.05)
        best = rank_evidence(x, fitted.loadings, fitted.noise)
        for rank in (fitted.rank - 1, fitted.rank + 1):
            other = fit_rank(HalfSeenRows(table), rank).model
            x = (table - other.location) / other.scale
            assert rank_evidence(x, other.loadings, other.noise) < best
        np.testing.assert_allclose(rows.shares, (~np.isnan(table)).mean(axis=0))

    # 2. Features: φ = (1, arm, context, products) and c = (1, context).
    def phi_and_c(table, contexts):
        arm = columns_of(table, epoch.arms, features.arm.columns)
        shared = columns_of(contexts, epoch.context, features.context.columns)
        ones = np.ones((len(table), 1))
        phi = np.hstack([ones, *arm.values(), *shared.values(), products_of(arm, shared)])
        return phi, np.hstack([ones, *shared.values()])

    items, r = np.array(played_arms), np.array(rewards)
    table = np.array([each[arm] for each, arm in zip(slates, played_arms, strict=True)])
    phi, c = phi_and_c(table, np.array(contexts))
    np.testing.assert_allclose(phi, features.design(table, np.array(contexts))[0], atol=1e-9)

    taus = model.scales.taus(features.blocks, features.n_features)
    item_taus = model.scales.taus(features.item_blocks, features.n_item_columns)

    # 4. Scales: σ is at its best, and no block of φ gains from half or twice its scale.
    same_item = items[:, None] == items

    def density(taus):
        value, _ = log_evidence(phi, c, same_item, r, taus, item_taus)
        offsets = [
            math.log(taus[columns[0]]) - CENTRES.get(block, -1.0)
            for block, columns in features.blocks.items()
        ]
        return value - 0.5 * np.sum(np.square(offsets))

    _, variance = log_evidence(phi, c, same_item, r, taus, item_taus)
    assert math.sqrt(variance) == pytest.approx(model.scales.noise_scale, rel=1e-6)
    for columns in features.blocks.values():
        for factor in (0.5, 2.0):
            other = taus.copy()
            other[columns] *= factor
            assert density(other) < density(taus)

    # 3. Rewards: blocks of one normal equation, with φ and c times τ and rewards centred. Columns
    # with a negligible τ are left out, of which there are none here.
    kept, own_kept = model.columns, model.item_columns

    def scaled(phi, c):
        return (phi * taus)[:, kept], (c * item_taus)[:, own_kept]

    phi, c = scaled(phi, c)
    r = r - model.centre
    v, u = np.eye(len(kept)) + phi.T @ phi, phi.T @ r
    a_inverse, b, s = {}, {}, {}
    for i in range(N_ITEMS):
        of_item = items == i
        a_inverse[i] = np.linalg.inv(np.eye(len(own_kept)) + c[of_item].T @ c[of_item])
        b[i], s[i] = c[of_item].T @ phi[of_item], c[of_item].T @ r[of_item]
        v -= b[i].T @ a_inverse[i] @ b[i]
        u -= b[i].T @ a_inverse[i] @ s[i]

    # 5. Choice.
    sigma, t = math.sqrt(variance), N_ROUNDS
    groups = {group: np.mean(taus[each] ** 2) for group, each in features.columns.items()}
    by_item = {group: np.mean(item_taus[at] ** 2) for group, at in features.item_columns.items()}
    constant = sum(groups[group] for group in features.arm.columns) + by_item.pop("item")
    eta = constant / (constant + groups["crossed"] + sum(by_item.values()))
    rho = 1.0 - N_ITEMS / (N_ITEMS * (N_ROUNDS - 1))  # share of arms that had been offered before
    kappa, nu = (1.0 + rho * eta) / 2.0, 1.0  # every round offers all items
    alpha_item = kappa * nu * 0.75 * math.sqrt(2.0 * math.log(t))
    alpha = max(2.0 * kappa, alpha_item)
    phi, c = scaled(*phi_and_c(slate, np.tile(context, (N_ITEMS, 1))))
    scores = []
    for i in range(N_ITEMS):
        gain = a_inverse[i] @ c[i]
        rest = phi[i] - b[i].T @ gain  # φ̃
        estimate = model.centre + rest @ np.linalg.solve(v, u) + gain @ s[i]
        variances = alpha**2 * rest @ np.linalg.solve(v, rest), alpha_item**2 * c[i] @ gain
        scores.append(estimate + sigma * math.sqrt(sum(variances)))
    np.testing.assert_allclose(decision.scores, scores, rtol=1e-6)
    assert decision.arm == int(np.argmax(scores))
