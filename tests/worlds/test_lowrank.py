"""The low-rank world: the published instances, the same for everybody, with honest constants."""

import math

import numpy as np
import pytest

from halfseen import InvalidSettingError, LowRankWorld

SMALL = {"dim": 7, "rank": 2, "n_arms": 4, "horizon": 12}


def walked(world, seed=0):
    return list(world.realize(seed).rounds())


def test_arms_means_and_noise_are_the_same_for_every_observation_probability():
    one, other = (walked(LowRankWorld(**SMALL, observe_prob=p)) for p in (0.9, 0.2))
    for first, second in zip(one, other, strict=True):
        assert np.array_equal(first.means, second.means)
        assert first.noise == second.noise
        assert not (second.slate.mask & ~first.slate.mask).any()


@pytest.mark.parametrize("seed", [0, 7])
def test_random_numbers_are_drawn_in_the_published_order(seed):
    """Protocols, section 2, written down independently."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((30, 3)))
    loadings = rng.uniform(0.75, 1.25, 3)
    direction = rng.standard_normal(3)
    theta = basis @ (direction / np.sqrt(direction @ direction))
    realization = LowRankWorld(observe_prob=0.3).realize(seed)
    assert np.array_equal(realization.basis, basis)
    assert np.array_equal(realization.loadings, loadings)
    assert realization.theta == pytest.approx(theta, rel=1e-14)
    for slate, means, noise, _ in list(realization.rounds())[:50]:
        latent = rng.standard_normal((8, 3))
        rng.standard_normal((8, 30))
        mask = rng.random((8, 30)) < 0.3
        arms = np.array([basis @ np.diag(loadings) @ z for z in latent])
        assert np.array_equal(slate.mask, mask)
        assert slate.values == pytest.approx(np.where(mask, arms, 0.0), rel=1e-12, abs=1e-15)
        assert means == pytest.approx(arms @ theta, rel=1e-12, abs=1e-14)
        assert noise == 0.05 * rng.standard_normal()


# Past the published studies


EXTRAS = [
    {"latent": "student"},
    {"perturbation": 0.3},
    {"change_round": 7},
    {"masks": "per-feature"},
    {"masks": "per-arm"},
    {"masks": "blocks"},
    {"masks": "value-dependent"},
]


@pytest.mark.parametrize("extra", EXTRAS, ids=str)
def test_an_extra_setting_leaves_the_published_random_numbers_in_step(extra):
    """Subspace, loadings, noise of the reward, and where they are Bernoulli the masks."""
    plain, other = LowRankWorld(**SMALL), LowRankWorld(**SMALL, **extra)
    assert np.array_equal(plain.realize(4).basis, other.realize(4).basis)
    assert np.array_equal(plain.realize(4).loadings, other.realize(4).loadings)
    for first, second in zip(walked(plain, 4), walked(other, 4), strict=True):
        assert first.noise == second.noise
        if "masks" in extra:
            assert np.array_equal(first.arms, second.arms)
        else:
            assert np.array_equal(first.slate.mask, second.slate.mask)


def test_a_spectrum_decays_as_set_along_the_columns_of_the_basis():
    plain, decaying = LowRankWorld(**SMALL), LowRankWorld(**SMALL, decay=2.0)
    expected = plain.realize(3).facts.latent_variances * [1.0, 2.0**-2]
    facts = decaying.realize(3).facts
    assert facts.latent_variances == pytest.approx(expected, rel=1e-14)
    for flat, round in zip(walked(plain, 3), walked(decaying, 3), strict=True):
        inside = flat.arms @ facts.basis
        assert round.arms @ facts.basis == pytest.approx(inside * [1.0, 0.5], abs=1e-13)
        assert np.array_equal(flat.slate.mask, round.slate.mask)
        assert flat.noise == round.noise


@pytest.mark.parametrize(("rank", "n_tail"), [(1, 1), (2, 1), (5, 3), (6, 3)])
def test_a_parameter_in_the_tail_has_nothing_in_the_leading_columns(rank, n_tail):
    world = LowRankWorld(dim=12, rank=rank, horizon=2, theta="tail", change_round=2)
    realization = world.realize(1)
    for basis in (realization.basis, realization.later_basis):
        inside = basis.T @ realization.theta
        assert np.linalg.norm(inside) == pytest.approx(1.0, rel=1e-14)
        assert inside[: rank - n_tail] == pytest.approx(np.zeros(rank - n_tail), abs=1e-14)
        assert (np.abs(inside[rank - n_tail :]) > 1e-6).all()


@pytest.mark.parametrize("scale", [100.0, 0.01])
def test_the_scale_of_features_changes_no_reward(scale):
    more = {"perturbation": 0.1, "change_round": 6, "decay": 1.0, "masks": "value-dependent"}
    plain, scaled = (LowRankWorld(**SMALL, **more, feature_scale=s) for s in (1.0, scale))
    one, other = plain.realize(2), scaled.realize(2)
    assert np.array_equal(one.basis, other.basis)
    assert other.facts.latent_variances == pytest.approx(
        scale**2 * one.facts.latent_variances, rel=1e-14
    )
    for first, second in zip(one.rounds(), other.rounds(), strict=True):
        assert second.arms == pytest.approx(scale * first.arms, rel=1e-12)
        assert second.means == pytest.approx(first.means, rel=1e-12, abs=1e-13)
        assert np.array_equal(first.slate.mask, second.slate.mask)
        assert first.noise == second.noise


def test_displayed_arms_are_of_the_same_law_and_leave_the_rounds_as_they_are():
    more = {"perturbation": 0.1, "change_round": 6}
    plain, shop = (LowRankWorld(**SMALL, **more, n_displayed=n).realize(2) for n in (0, 300))
    assert list(plain.displayed()) == [None] * plain.world.horizon
    rounds = zip(plain.rounds(), shop.rounds(), shop.displayed(), strict=True)
    for number, (one, other, display) in enumerate(rounds, start=1):
        assert np.array_equal(one.slate.table, other.slate.table, equal_nan=True)
        assert np.array_equal(one.means, other.means)
        assert one.noise == other.noise
        basis = plain.basis if number < 6 else plain.later_basis
        off = display.arms - display.arms @ basis @ basis.T
        assert display.slate.n_arms == 300
        assert np.sqrt((off**2).mean()) == pytest.approx(0.1, rel=0.3)
        assert display.slate.mask.mean() == pytest.approx(plain.world.observe_prob, abs=0.1)
    arms = LowRankWorld(**SMALL, n_displayed=5)
    assert arms.realize(0).problem().n_arms == arms.n_shown == arms.n_arms + 5
    assert arms.realize(0).facts.n_arms == arms.n_arms


def test_the_constants_of_a_problem_know_decay_and_scale():
    plain = LowRankWorld(**SMALL).realize(0)
    problem = LowRankWorld(**SMALL, decay=1.0, feature_scale=10.0).realize(0).problem()
    sizes = 10 * plain.loadings / np.sqrt([1.0, 2.0])
    assert problem.top_eigenvalue == pytest.approx(max(sizes) ** 2, rel=1e-14)
    assert problem.last_eigenvalue == pytest.approx(min(sizes) ** 2, rel=1e-14)
    assert problem.theta_bound == pytest.approx(0.1)


def latents_of(latent, n_arms=200_000):
    world = LowRankWorld(dim=4, rank=2, n_arms=n_arms, horizon=1, latent=latent)
    realization = world.realize(1)
    (arms,) = (round.arms for round in realization.rounds())
    return arms @ realization.basis / realization.loadings


def test_student_latents_are_scaled_to_variance_one_and_have_the_tails_of_their_law():
    """By quantiles and tails, as the fourth moment is infinite; 4e5 independent entries.

    √3 times the latent has Student's law with 3 degrees of freedom: P(|t| < 0.76489) = 1/2 and
    P(|t| > 5.84091) = .01. Beyond 5 standard errors with probability 6e-7 each.
    """
    sizes = np.abs(math.sqrt(3) * latents_of("student").ravel())
    n = len(sizes)
    assert abs((sizes < 0.76489).mean() - 0.5) < 5 * math.sqrt(0.25 / n)
    assert abs((sizes > 5.84091).mean() - 0.01) < 5 * math.sqrt(0.01 * 0.99 / n)


@pytest.mark.parametrize(("latent", "fourth"), [("gaussian", 3.0), ("uniform", 9 / 5)])
def test_latents_have_variance_one(latent, fourth):
    """A square has variance E[z⁴] − 1; 4e5 entries, rejected at 5 standard errors (6e-7)."""
    entries = latents_of(latent).ravel()
    assert abs((entries**2).mean() - 1) < 5 * math.sqrt((fourth - 1) / len(entries))


def test_a_perturbation_is_the_published_draw_and_belongs_to_the_arm():
    world = LowRankWorld(**SMALL, observe_prob=0.5, perturbation=0.3)
    rng = np.random.default_rng(2)
    rng.standard_normal((7, 2)), rng.uniform(size=2), rng.standard_normal(2)
    realization, plain = world.realize(2), walked(LowRankWorld(**SMALL, observe_prob=0.5), 2)
    for round, unmoved in zip(realization.rounds(), plain, strict=True):
        rng.standard_normal((4, 2))
        shift = 0.3 * rng.standard_normal((4, 7))
        rng.random((4, 7)), rng.standard_normal()
        assert round.arms == pytest.approx(unmoved.arms + shift, rel=1e-14, abs=1e-14)
        assert np.array_equal(round.means, round.arms @ realization.theta)


def test_after_a_change_arms_lie_in_another_orthogonal_subspace():
    world = LowRankWorld(**SMALL, change_round=7)
    realization = world.realize(0)
    before, first, later = (
        walked(LowRankWorld(**SMALL)),
        realization.basis,
        realization.later_basis,
    )
    assert realization.facts.basis is None
    assert later.T @ later == pytest.approx(np.eye(2), abs=1e-14)
    assert later.T @ first == pytest.approx(np.zeros((2, 2)), abs=1e-14)
    for number, round in enumerate(realization.rounds(), start=1):
        inside, outside = (first, later) if number < 7 else (later, first)
        assert round.arms @ outside == pytest.approx(np.zeros((4, 2)), abs=1e-13)
        assert round.arms @ inside @ inside.T == pytest.approx(round.arms, abs=1e-13)
        if number < 7:
            assert np.array_equal(round.arms, before[number - 1].arms)
            assert round.means == pytest.approx(before[number - 1].means, abs=1e-14)


@pytest.mark.parametrize("extra", EXTRAS[1:], ids=str)
def test_a_world_outside_of_the_theory_has_none_of_its_constants(extra):
    with pytest.raises(InvalidSettingError, match="constants of the theory"):
        LowRankWorld(**SMALL, **extra).realize(0).problem()


# Constants


@pytest.mark.parametrize("seed", range(5))
def test_bounded_arms_respect_the_constants_of_their_problem(seed):
    world = LowRankWorld(
        dim=7, rank=2, n_arms=40_000, horizon=1, observe_prob=1.0, latent="uniform"
    )
    realization = world.realize(seed)
    problem = realization.problem()
    arms = walked(world, seed)[0].slate.values
    norms = np.linalg.norm(arms, axis=1)
    assert norms.max() <= problem.arm_bound
    # The bound is tight up to the loadings: the corner of the cube is nearly reached.
    assert norms.max() > 0.9 * problem.arm_bound * min(realization.loadings) / max(
        realization.loadings
    )
    spectrum = np.linalg.eigvalsh(arms.T @ arms / len(arms))[::-1]
    # A latent square has standard deviation sqrt(9/5 - 1): 5 standard errors.
    tolerance = 5 * math.sqrt(0.8 / len(arms))
    assert spectrum[0] == pytest.approx(problem.top_eigenvalue, rel=2 * tolerance)
    assert spectrum[1] == pytest.approx(problem.last_eigenvalue, rel=2 * tolerance)
    assert np.abs(spectrum[2:]).max() < 1e-12
    assert problem.top_eigenvalue <= problem.arm_bound**2


@pytest.mark.parametrize("latent", ["gaussian", "uniform", "student"])
def test_the_problem_has_the_settings_of_the_world(latent):
    world = LowRankWorld(**SMALL, observe_prob=0.4, noise_scale=0.2, latent=latent)
    realization = world.realize(0)
    problem = realization.problem()
    assert (problem.dim, problem.rank, problem.n_arms, problem.horizon) == (7, 2, 4, 12)
    assert (problem.observe_prob, problem.noise_scale, problem.theta_bound) == (0.4, 0.2, 1.0)
    assert problem.top_eigenvalue == pytest.approx(max(realization.loadings) ** 2, rel=1e-15)
    assert problem.last_eigenvalue == pytest.approx(min(realization.loadings) ** 2, rel=1e-15)
    rows = np.sqrt((realization.basis**2).sum(axis=1))
    assert problem.incoherence == pytest.approx(math.sqrt(7 / 2) * rows.max(), rel=1e-14)
    assert (problem.arm_bound == math.inf) == (latent != "uniform")


# Settings


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"rank": 31}, r"rank .*\[1, 30\], got 31"),
        ({"loadings": (0.0, 1.0)}, r"loadings\[0\] .* got 0\.0"),
        ({"loadings": (1.0, 0.5)}, r"loadings\[1\] .* got 0\.5"),
        ({"loadings": (1.0,)}, "loadings .* got"),
        ({"loadings": 1.0}, "loadings .* got"),
        ({"change_round": 5, "rank": 16}, "rank .* half of dim.* got 16"),
    ],
    ids=str,
)
def test_a_bad_setting_is_refused_by_name_and_value(setting, says):
    with pytest.raises(InvalidSettingError, match=says):
        LowRankWorld(**setting)


@pytest.mark.parametrize("coherence", [0.5, 0.9, 0.99])
def test_coherence_is_the_length_of_one_row_and_sweeps_the_incoherence(coherence):
    plain = LowRankWorld(dim=40, rank=3).realize(1)
    basis = LowRankWorld(dim=40, rank=3, coherence=coherence).realize(1).basis
    assert np.allclose(basis.T @ basis, np.eye(3))
    assert np.linalg.norm(basis[0]) == pytest.approx(coherence)
    most = math.sqrt(40 / 3)
    problem = LowRankWorld(dim=40, rank=3, coherence=coherence).realize(1).problem()
    assert problem.incoherence == pytest.approx(max(coherence, row_lengths(basis)[1:].max()) * most)
    if coherence > 0.5:
        assert problem.incoherence > plain.problem().incoherence
    with pytest.raises(InvalidSettingError, match="rank must be below dim for a coherence"):
        LowRankWorld(dim=3, rank=3, coherence=coherence)


def row_lengths(basis):
    return np.linalg.norm(basis, axis=1)
