"""Parts of TOFU that are not from the paper, switched on one at a time."""

import json
from itertools import pairwise

import numpy as np
import pytest
from policy_runs import copy_of, few_arms, looks, offers, walk
from scipy.stats import kstest

from halfseen import (
    HeldOutRank,
    InvalidSettingError,
    LowRankWorld,
    TofuPov,
    load,
)
from halfseen.core.moments import Moments
from halfseen.core.reservoir import Reservoir
from halfseen.core.scales import estimate_scales
from halfseen.core.subspace import distance
from halfseen.values import Slate

BASICS = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": 5, "noise_scale": 0.1}
OPTIONS = {
    "likelihood": {"subspace": "likelihood"},
    "posterior mean": {"features": "posterior-mean"},
    "held-out rank": {"rank": HeldOutRank()},
    "counted": {"observe_prob": "counted"},
    "estimated noise": {"noise_scale": "estimated"},
    "estimated bound": {"theta_bound": "estimated"},
    "estimated ridge": {"ridge": "estimated"},
    "thompson": {"exploration": "thompson"},
    "greedy": {"exploration": "greedy"},
    "fallback": {"fallback": True},
}
over_options = pytest.mark.parametrize("option", OPTIONS.values(), ids=list(OPTIONS))


def tofu(**settings):
    return TofuPov(**(BASICS | settings))


def after(n_rounds, policy, seed=0):
    """Return a policy after so many rounds of few arms."""
    walk(policy, few_arms(n_rounds, seed=seed))
    return policy


def traces(*decisions):
    return [[looks(decision) for decision in each] for each in decisions]


# -- all of them ----------------------------------------------------------------------------------


@over_options
def test_each_option_alone_makes_a_difference(option):
    rounds = few_arms(24)
    plain, other = traces(walk(tofu(), rounds), walk(tofu(**option), rounds))
    assert plain[:5] == other[:5] or "noise_scale" in option or "theta_bound" in option
    if "fallback" not in option and "rank" not in option:  # the held-out rank is the true one, 2
        assert plain != other


@over_options
def test_each_option_alone_is_saved_and_continues(tmp_path, option):
    policy = after(13, tofu(**option))
    waiting = policy.choose(few_arms(1, seed=2)[0].table)
    policy.save(tmp_path / "policy")
    restored = load(tmp_path / "policy")
    for each in (policy, restored):
        each.learn(waiting, 0.3)
    rounds = few_arms(15, seed=1)
    ours, theirs = traces(walk(policy, rounds), walk(restored, rounds))
    assert ours == theirs


@over_options
def test_settings_with_an_option_survive_json(option):
    plain = json.loads(json.dumps(tofu(**option).settings()))
    assert TofuPov(**plain).settings() == plain


def test_without_options_nothing_is_new():
    policy = tofu(
        subspace="covariance", features="least-squares", exploration="ucb", fallback=False
    )
    assert policy.settings() == tofu().settings()
    assert isinstance(policy._offered, Moments)
    ours, theirs = traces(walk(policy, few_arms(24)), walk(tofu(), few_arms(24)))
    assert ours == theirs
    for record in policy.epoch_log:
        assert (record.ridge, record.theta_bound, record.noise_scale) == (1.0, 1.0, 0.1)
        assert not record.fallback


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"subspace": "guess"}, "subspace must be .* got 'guess'"),
        ({"features": None}, "features must be .* got None"),
        ({"exploration": "luck"}, "exploration must be .* got 'luck'"),
        ({"fallback": 1}, "fallback must be True or False, got 1"),
        ({"fallback": True, "replay": "none"}, "needs replay='full'.* got 'none'"),
        ({"ridge": "guessed"}, "ridge .* got 'guessed'"),
        ({"theta_bound": "guessed"}, "theta_bound .* got 'guessed'"),
        ({"noise_scale": "guessed"}, "noise_scale .* got 'guessed'"),
        ({"observe_prob": "guessed"}, "observe_prob .* got 'guessed'"),
        ({"memory_bytes": 0}, "memory_bytes .* got 0"),
        (
            {"theta_bound": "estimated", "bonus_scale": 1.0, "last_eigenvalue": 0.5},
            "bonus_scale > 0 needs a theta_bound, got 'estimated'",
        ),
        (
            {"observe_prob": "counted", "burn_in": "theory", "last_eigenvalue": 0.5, "n_arms": 4},
            "burn_in='theory' needs .* counted",
        ),
    ],
    ids=lambda part: str(part)[:60] if isinstance(part, dict) else "",
)
def test_a_bad_option_is_refused_by_name_and_value(setting, says):
    with pytest.raises(InvalidSettingError, match=says):
        tofu(**setting)


# -- subspace and rank ----------------------------------------------------------------------------


def test_the_most_likely_subspace_is_nearer_to_the_true_one():
    world = LowRankWorld(horizon=62, observe_prob=0.4)
    for seed in range(4):
        errors = {}
        for subspace in ("covariance", "likelihood"):
            policy = TofuPov(dim=30, rank=3, observe_prob=0.4, subspace=subspace)
            realization = world.realize(seed)
            for round in realization.rounds():
                policy.learn(policy.choose(round.slate), 0.0)
            errors[subspace] = distance(policy._epoch.basis, realization.basis)
        assert errors["likelihood"] < 0.01 < errors["covariance"]


@pytest.mark.parametrize(
    "option", [{"subspace": "likelihood"}, {"rank": HeldOutRank()}], ids=["likelihood", "held-out"]
)
def test_arms_are_kept_where_they_are_needed_within_the_memory_given(option):
    policy = tofu(**option, memory_bytes=8 * 6 * 50)
    assert isinstance(policy._offered, Reservoir)
    walk(policy, offers(20))
    assert policy._offered.rows.shape == (50, 6)
    assert tofu(**option)._offered.max_rows == 64_000_000 // 48
    assert 1 <= tofu(**option, memory_bytes=1)._offered.max_rows <= 10


def test_the_held_out_rank_is_used_with_either_subspace():
    for subspace in ("covariance", "likelihood"):
        policy = after(40, tofu(rank=HeldOutRank(), subspace=subspace))
        assert policy.current_rank == 2
        assert policy.epoch_log[-1].rank == 2


def test_a_rank_rule_of_the_paper_goes_with_the_likelihood():
    plain = TofuPov.rank_adaptive_full_history(
        dim=6, observe_prob=0.7, burn_in=5, max_rank=4, subspace="likelihood"
    )
    policy = after(30, plain)
    assert policy.epoch_log[-1].threshold is not None
    assert 1 <= policy.current_rank <= 4


def test_the_held_out_rank_is_decided_again_only_when_arms_have_grown(monkeypatch):
    decided = []

    def counted(self, table, *, n_arms, **others):
        decided.append(n_arms)
        return decide(self, table, n_arms=n_arms, **others)

    decide = HeldOutRank.decide
    monkeypatch.setattr(HeldOutRank, "decide", counted)
    policy = tofu(rank=HeldOutRank(growth=2.0), growth=1.2)
    walk(policy, offers(80, sizes=(50,)))
    n_arms = [record.n_arms for record in policy.epoch_log]
    late = [n for n in decided if n > 1000]
    assert set(decided) < set(n_arms)
    assert len(late) >= 1
    assert all(second >= 2.0 * first for first, second in pairwise(late))


def test_where_no_rank_is_found_the_burn_in_policy_plays():
    policy = tofu(rank=HeldOutRank())
    blind = [(np.where(np.eye(4, 6, dtype=bool), 1.0, np.nan), np.ones(4))] * 12
    decisions = walk(policy, blind)
    assert [record.rank for record in policy.epoch_log] == [0, 0]
    assert policy.current_rank == 6
    assert decisions[-1].epoch == 1


# -- observation probability ----------------------------------------------------------------------


def test_counted_probabilities_are_the_shares_of_arms_that_show_a_feature():
    rounds = few_arms(11)
    seen = ~np.isnan(np.vstack([offer.table for offer in rounds[:5]]))
    ours, theirs = traces(
        walk(tofu(observe_prob="counted"), rounds), walk(tofu(observe_prob=seen.mean(0)), rounds)
    )
    for counted, given in zip(ours, theirs, strict=True):
        assert counted[0] == given[0]
        for part in (-1, -2, -3):
            expected = np.frombuffer(given[part])
            np.testing.assert_allclose(np.frombuffer(counted[part]), expected, rtol=1e-9)


def test_a_feature_that_was_never_seen_may_be_counted():
    policy, rounds = tofu(observe_prob="counted"), few_arms(14)
    for offer in rounds:
        offer.table[:, 3] = np.nan
    for decision in walk(policy, rounds):
        assert np.isfinite(decision.scores).all()
    assert np.abs(policy._epoch.basis[3]).max() < 1e-12


# -- scales ---------------------------------------------------------------------------------------


def test_estimated_scales_are_those_of_the_replayed_rewards():
    policy = tofu(noise_scale="estimated", theta_bound="estimated", ridge="estimated")
    rounds = few_arms(11)
    walk(policy, rounds)
    arms, rewards = policy._played.samples()
    policy.choose(rounds[0].table)  # opens an epoch at round 12
    epoch = policy._epoch
    latent = epoch.lift.coordinates(arms)
    scales, _ = estimate_scales(latent, rewards)
    assert epoch.record.round == 12
    assert epoch.record.ridge == scales.ridge
    assert epoch.record.noise_scale == pytest.approx(scales.noise_scale, rel=1e-9)
    assert epoch.record.theta_bound == pytest.approx(scales.theta_bound, rel=1e-9)


@pytest.mark.parametrize("name", ["noise_scale", "theta_bound", "ridge"])
def test_scales_that_are_given_stay_as_they_are(name):
    estimated = {"noise_scale": "estimated", "theta_bound": "estimated", "ridge": "estimated"}
    policy = after(24, tofu(**estimated | {name: 0.37}))
    for record in policy.epoch_log:
        told = {"noise_scale": record.noise_scale, "theta_bound": record.theta_bound}
        told["ridge"] = record.ridge
        assert told.pop(name) == 0.37
        assert all(value != 0.37 for value in told.values())


def test_the_noise_scale_leaves_out_what_hidden_entries_add():
    """Half of each arm is hidden and perturbed: residuals scatter more than rewards do."""
    world = LowRankWorld(
        dim=8, rank=2, horizon=200, observe_prob=0.3, noise_scale=0.1, perturbation=0.05
    )
    realization = world.realize(0)
    policy = TofuPov(
        dim=8, rank=2, observe_prob=0.3, burn_in=5, noise_scale="estimated",
        subspace="likelihood", features="posterior-mean",
    )  # fmt: skip
    for round in realization.rounds():
        decision = policy.choose(round.slate)
        policy.learn(decision, float(round.means[decision.arm]) + round.noise)
    arms, rewards = policy._played.samples()
    residual = estimate_scales(policy._epoch.lift.coordinates(arms), rewards)[0].residual_scale
    told = policy.epoch_log[-1].noise_scale
    assert told < 0.9 * residual
    assert abs(told - 0.1) < abs(residual - 0.1)


# -- posterior coordinates ------------------------------------------------------------------------


def with_posterior(n_rounds=30):
    """Return a policy with posterior coordinates inside an epoch, of noisy arms of rank 2."""
    rng = np.random.default_rng(5)
    basis, theta = rng.normal(size=(2, 6)), rng.normal(size=6)
    policy = tofu(subspace="likelihood", features="posterior-mean")
    for _ in range(n_rounds):
        arms = rng.normal(size=(4, 2)) @ basis + 0.3 * rng.normal(size=(4, 6))
        decision = policy.choose(np.where(rng.random(arms.shape) < 0.6, arms, np.nan))
        policy.learn(decision, float(arms[decision.arm] @ theta))
    assert policy.epoch_log[-1].rank == 2
    return policy


def test_hidden_deviations_are_how_far_rewards_are_from_their_estimates():
    """Monte Carlo over 40,000 latents and arms of the policy's own model, for each of 4 masks.

    A deviation has standard error 1/√(2·40000) of itself, asserted at 5 sigma: false alarm 2e-6.
    """
    policy, rng, n = with_posterior(), np.random.default_rng(6), 40_000
    subspace, theta = policy._epoch.subspace, policy._epoch.model.estimate
    for n_seen in (0, 1, 3, 6):
        latents = rng.normal(size=(n, 2)) * np.sqrt(subspace.variances)
        arms = latents @ subspace.basis.T + np.sqrt(subspace.noise) * rng.normal(size=(n, 6))
        arms[:, rng.permutation(6)[n_seen:]] = np.nan
        missed = latents @ theta - copy_of(policy).choose(arms).estimates
        told = policy.hidden_deviations(arms[:3])
        assert told == pytest.approx(np.full(3, told[0]))
        assert abs(missed.std() / told[0] - 1.0) < 5 / np.sqrt(2 * n)


def test_scores_depend_on_the_posterior_mean_alone():
    """Two arms with the same mean, of which one shows 2 entries and the other 6."""
    policy, rng = with_posterior(), np.random.default_rng(7)
    subspace, lift = policy._epoch.subspace, policy._epoch.lift
    first, second = np.full(6, np.nan), rng.normal(size=6)
    mean = lift.coordinates(second[None])[0]
    rows = subspace.basis[:2]
    first[:2] = np.linalg.solve(
        rows.T, (rows.T @ rows + subspace.noise * np.diag(1 / subspace.variances)) @ mean
    )
    table = np.vstack([first, second])
    assert lift.coordinates(table)[0] == pytest.approx(mean)
    decision = copy_of(policy).choose(table)
    deviations = policy.hidden_deviations(table)
    assert deviations[0] > 1.5 * deviations[1] > 0.0
    assert decision.estimates[0] == pytest.approx(decision.estimates[1], rel=1e-9)
    assert decision.widths[0] == pytest.approx(decision.widths[1], rel=1e-9)
    radius = policy._epoch.confidence.total(
        policy._epoch.model.log_det, policy._epoch.model.n_samples
    )
    widths = policy._epoch.model.predict(lift.coordinates(table))[1]
    assert decision.widths == pytest.approx(radius * widths, rel=1e-9)


def test_hidden_deviations_change_nothing():
    policy = with_posterior()
    before, table = copy_of(policy), few_arms(1, seed=4)[0].table
    told = policy.hidden_deviations(table)
    assert np.array_equal(policy.hidden_deviations(Slate(table)), told)
    assert looks(policy.choose(table)) == looks(before.choose(table))


def test_hidden_deviations_are_unknown_in_burn_in_and_zero_with_least_squares():
    table = few_arms(1)[0].table
    assert np.isnan(tofu().hidden_deviations(table)).all()
    assert np.isnan(after(3, tofu()).hidden_deviations(table)).all()
    assert not after(8, tofu()).hidden_deviations(table).any()


def test_an_arm_that_shows_more_leaves_less_open():
    policy = with_posterior()
    arm = np.random.default_rng(8).normal(size=6)
    table = np.where(np.tri(7, 6, -1, dtype=bool), arm, np.nan)
    assert (np.diff(policy.hidden_deviations(table)) <= 1e-12).all()


# -- exploration ----------------------------------------------------------------------------------


def test_greedy_scores_are_estimates():
    for decision in walk(tofu(exploration="greedy"), few_arms(20))[5:]:
        assert not decision.widths.any()
        assert np.array_equal(decision.scores, decision.estimates)


@pytest.mark.parametrize("radius_scale", [1.0, 0.5])
def test_thompson_scores_vary_as_the_posterior_does(radius_scale):
    """(score − estimate) / (scale·R·‖z‖) is standard normal, over 400 seeds.

    Every slate has one arm until the last, so that all seeds have learned the same. By
    Kolmogorov–Smirnov for each of 4 arms at 1e-6: false alarm rate 4e-6.
    """
    rounds, table = offers(9, sizes=(1,)), few_arms(1, seed=9)[0].table
    drawn = []
    for seed in range(400):
        policy = tofu(exploration="thompson", seed=seed, radius_scale=radius_scale)
        walk(policy, rounds)
        decision = policy.choose(table)
        drawn.append(decision.scores - decision.estimates)
    epoch = policy._epoch
    estimates, widths = epoch.model.predict(epoch.lift.coordinates(table))
    assert decision.estimates == pytest.approx(estimates, rel=1e-9)
    standard = np.array(drawn) / (radius_scale * 0.1 * widths)
    for arm in range(4):
        assert kstest(standard[:, arm], "norm").pvalue > 1e-6


def test_thompson_draws_depend_on_the_round_and_not_on_how_it_came():
    policy = after(12, tofu(exploration="thompson"))
    table = few_arms(1, seed=9)[0].table
    first = copy_of(policy).choose(table)
    again = copy_of(policy)
    assert looks(again.choose(Slate(table))) == looks(first)
    assert not np.array_equal(again.choose(table).scores, first.scores)
