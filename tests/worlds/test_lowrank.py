"""The low-rank world: the published instances, the same for everybody, with honest constants."""

import math

import numpy as np
import pytest

from halfseen import InvalidSettingError, LowRankWorld

SMALL = {"dim": 7, "rank": 2, "n_arms": 4, "horizon": 12}


def walked(world, seed=0):
    return list(world.realize(seed).rounds())


def full_arms(world, seed=0):
    """Return all arms with nothing hidden, which p = 1 shows of the same realization."""
    shown = {name: getattr(world, name) for name in ("dim", "rank", "n_arms", "horizon")}
    open_world = LowRankWorld(**shown, observe_prob=1.0, latent=world.latent)
    return np.array([slate.values for slate, *_ in walked(open_world, seed)])


@pytest.mark.parametrize("latent", ["gaussian", "uniform"])
def test_same_seed_same_rounds(latent):
    world = LowRankWorld(**SMALL, latent=latent)
    for first, second in zip(walked(world, 3), walked(world, 3), strict=True):
        assert first.slate == second.slate
        assert np.array_equal(first.means, second.means)
        assert first.noise == second.noise


def test_another_seed_is_another_realization():
    world = LowRankWorld(**SMALL)
    assert not np.array_equal(walked(world, 0)[0].means, walked(world, 1)[0].means)


def test_walking_twice_and_interleaved_gives_the_same_rounds():
    realization = LowRankWorld(**SMALL).realize(0)
    ahead, behind = realization.rounds(), realization.rounds()
    next(ahead)
    for _ in range(SMALL["horizon"] - 1):
        assert next(ahead).noise != next(behind).noise
    again = list(realization.rounds())
    expected = walked(LowRankWorld(**SMALL))
    assert [round.noise for round in again] == [round.noise for round in expected]
    assert [round.slate for round in again] == [round.slate for round in expected]


def test_there_are_as_many_rounds_and_arms_as_promised():
    world = LowRankWorld(**SMALL)
    rounds = walked(world)
    assert len(rounds) == world.realize(0).facts.horizon == 12
    assert {(slate.n_arms, slate.dim, len(means)) for slate, means, _, _ in rounds} == {(4, 7, 4)}


@pytest.mark.parametrize("observe_prob", [0.8, 0.4, 0.2])
def test_slates_show_the_truth_where_something_is_seen(observe_prob):
    world = LowRankWorld(**SMALL, observe_prob=observe_prob)
    for (slate, *_), arms in zip(walked(world), full_arms(world), strict=True):
        assert np.array_equal(slate.values, np.where(slate.mask, arms, 0.0))


@pytest.mark.parametrize("observe_prob", [0.8, 0.4, 0.2])
def test_the_means_are_those_of_the_full_arms_whatever_is_hidden(observe_prob):
    world = LowRankWorld(**SMALL, observe_prob=observe_prob)
    theta = world.realize(0).theta
    for (_, means, _), arms in zip(walked(world), full_arms(world), strict=True):
        assert np.array_equal(means, arms @ theta)


def test_arms_means_and_noise_are_the_same_for_every_observation_probability():
    one, other = (walked(LowRankWorld(**SMALL, observe_prob=p)) for p in (0.9, 0.2))
    for first, second in zip(one, other, strict=True):
        assert np.array_equal(first.means, second.means)
        assert first.noise == second.noise
        assert not (second.slate.mask & ~first.slate.mask).any()


def test_noise_does_not_move_arms():
    quiet, loud = (walked(LowRankWorld(**SMALL, noise_scale=scale)) for scale in (0.0, 2.0))
    for first, second in zip(quiet, loud, strict=True):
        assert first.slate == second.slate
        assert np.array_equal(first.means, second.means)
        assert first.noise == 0.0
        assert second.noise != 0.0


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


def test_the_parameter_has_norm_one_and_lies_in_the_subspace():
    realization = LowRankWorld(**SMALL).realize(5)
    basis, theta = realization.basis, realization.theta
    assert basis.T @ basis == pytest.approx(np.eye(2), abs=1e-14)
    assert np.linalg.norm(theta) == pytest.approx(1.0, rel=1e-14)
    assert basis @ (basis.T @ theta) == pytest.approx(theta, abs=1e-14)


def test_entries_are_seen_with_the_given_probability():
    """8000 · 7 independent entries: a share beyond 5 standard errors has probability 6e-7."""
    world = LowRankWorld(dim=7, rank=2, n_arms=8000, horizon=1, observe_prob=0.3)
    share = walked(world)[0].slate.mask.mean()
    assert abs(share - 0.3) < 5 * math.sqrt(0.3 * 0.7 / 56000)


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


@pytest.mark.parametrize("latent", ["gaussian", "uniform"])
def test_the_problem_repeats_what_the_world_was_told(latent):
    world = LowRankWorld(**SMALL, observe_prob=0.4, noise_scale=0.2, latent=latent)
    realization = world.realize(0)
    problem = realization.problem()
    assert (problem.dim, problem.rank, problem.n_arms, problem.horizon) == (7, 2, 4, 12)
    assert (problem.observe_prob, problem.noise_scale, problem.theta_bound) == (0.4, 0.2, 1.0)
    assert problem.top_eigenvalue == pytest.approx(max(realization.loadings) ** 2, rel=1e-15)
    assert problem.last_eigenvalue == pytest.approx(min(realization.loadings) ** 2, rel=1e-15)
    rows = np.sqrt((realization.basis**2).sum(axis=1))
    assert problem.incoherence == pytest.approx(math.sqrt(7 / 2) * rows.max(), rel=1e-14)


def test_gaussian_arms_have_no_bound_and_say_so():
    assert LowRankWorld(**SMALL).realize(0).problem().arm_bound == math.inf


def test_uniform_latents_have_the_bound_of_the_loading_model():
    realization = LowRankWorld(**SMALL, latent="uniform").realize(0)
    expected = max(realization.loadings) * math.sqrt(2) * math.sqrt(3)
    assert realization.problem().arm_bound == pytest.approx(expected, rel=1e-14)


# Settings


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"dim": 0}, "dim .* got 0"),
        ({"rank": 0}, "rank .* got 0"),
        ({"rank": 31}, r"rank .*\[1, 30\], got 31"),
        ({"n_arms": 0}, "n_arms .* got 0"),
        ({"n_arms": 2.0}, r"n_arms .* got 2\.0"),
        ({"horizon": 0}, "horizon .* got 0"),
        ({"observe_prob": 0.0}, r"observe_prob .* got 0\.0"),
        ({"observe_prob": 1.1}, r"observe_prob .* got 1\.1"),
        ({"noise_scale": -0.1}, r"noise_scale .* got -0\.1"),
        ({"noise_scale": math.nan}, "noise_scale .* got nan"),
        ({"loadings": (0.0, 1.0)}, r"loadings\[0\] .* got 0\.0"),
        ({"loadings": (1.0, 0.5)}, r"loadings\[1\] .* got 0\.5"),
        ({"loadings": (1.0,)}, "loadings .* got"),
        ({"loadings": 1.0}, "loadings .* got"),
        ({"latent": "cauchy"}, "latent .*'gaussian', 'uniform', got 'cauchy'"),
    ],
    ids=str,
)
def test_a_bad_setting_is_refused_by_name_and_value(setting, says):
    with pytest.raises(InvalidSettingError, match=says):
        LowRankWorld(**setting)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(InvalidSettingError, match="seed"):
        LowRankWorld(**SMALL).realize(seed)


def test_a_world_cannot_be_changed():
    with pytest.raises(AttributeError):
        LowRankWorld(**SMALL).dim = 3
