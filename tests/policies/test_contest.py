"""Low rank against zero-filling: who predicts rewards better plays, and it costs little."""

import numpy as np
import pytest
from policy_runs import copy_of, few_arms, regret_in, state_bytes, walk

from halfseen import AmbientOful, LatentUcb, LowRankWorld, TofuPov
from halfseen.core.scales import Evidence
from halfseen.errors import HalfseenError
from halfseen.policies.contest import Contest

SEEDS = range(2000, 2006)


def samples(seed, n=24):
    """Return rewards that two coordinates explain nearly, and nine others not at all."""
    rng = np.random.default_rng(seed)
    good, bad = rng.normal(size=(n, 2)), rng.normal(size=(n, 9))
    return good, bad, good @ [1.0, -2.0] + 0.1 * rng.normal(size=n)


# -- the contest ----------------------------------------------------------------------------------


def test_before_any_reward_low_rank_plays():
    assert not Contest().zero_filled_wins


@pytest.mark.parametrize("seed", range(10))
def test_the_better_prediction_of_new_rewards_wins(seed):
    good, bad, rewards = samples(seed)
    assert not Contest().after(good, bad, rewards).zero_filled_wins
    assert Contest().after(bad, good, rewards).zero_filled_wins


def test_the_excess_is_the_difference_of_squared_prediction_errors():
    """The second half is predicted from the first, both regressions with their best penalty."""
    good, bad, rewards = samples(0, n=20)

    def missed(points):
        early, late = points[:10], points[10:]
        ridge = Evidence(early, rewards[:10]).best_ridge()[0]
        gram = early.T @ early + ridge * np.eye(points.shape[1])
        return ((rewards[10:] - late @ np.linalg.solve(gram, early.T @ rewards[:10])) ** 2).sum()

    expected = (missed(good) - missed(bad)) / (rewards**2).mean()
    contest = Contest().after(good, bad, rewards)
    assert contest.excess == pytest.approx(expected, rel=1e-9)
    assert contest.n_judged == 20


def test_only_rewards_that_are_new_are_judged_the_next_time():
    """The old ones, of which zero-filling predicts the later half well, no longer decide."""
    good, bad, rewards = samples(1, n=40)
    before = Contest().after(bad[:16], good[:16], rewards[:16])
    after = before.after(good, bad, rewards)
    fresh = Contest(0.0, 16).after(good, bad, rewards)
    assert before.excess > 0.0
    assert fresh.excess < 0.0
    assert fresh.excess < after.excess < fresh.excess + before.excess


@pytest.mark.parametrize("factor", [100.0, 1e-90, 1e90])
def test_the_unit_of_the_rewards_does_not_matter(factor):
    good, bad, rewards = samples(2)
    plain, scaled = (Contest().after(good, bad, unit * rewards) for unit in (1.0, factor))
    assert scaled.excess == pytest.approx(plain.excess, rel=1e-9)


def test_rewards_of_zero_decide_nothing():
    good, bad, rewards = samples(3)
    contest = Contest().after(good, bad, 0.0 * rewards)
    assert contest.excess == 0.0
    assert not contest.zero_filled_wins


def test_equal_coordinates_decide_nothing():
    good, _, rewards = samples(4)
    assert Contest().after(good, good, rewards).excess == 0.0


def test_it_is_held_again_when_rewards_have_grown():
    contest = Contest()
    held = []
    for n_rewards in range(1, 200):
        if contest.is_due(n_rewards):
            held.append(n_rewards)
            contest = Contest(0.0, n_rewards)
    assert held[0] >= 2
    growth = np.divide(held[1:], held[:-1])
    assert (growth > 1.2).all()
    assert (growth < 2.5).all()


def test_a_contest_survives_its_plain_form():
    good, bad, rewards = samples(5)
    contest = Contest().after(good, bad, rewards)
    assert Contest.restored(list(contest)) == contest


@pytest.mark.parametrize("state", [[np.nan, 3], [0.1, -1], ["x", 3]], ids=str)
def test_a_state_that_does_not_fit_is_refused(state):
    with pytest.raises(HalfseenError):
        Contest.restored(state)


# -- who plays ------------------------------------------------------------------------------------


FULL_RANK = {
    "flat spectrum": LowRankWorld(
        dim=8, rank=8, horizon=300, observe_prob=0.5, noise_scale=0.1, loadings=(1.0, 1.0)
    ),
    "spectrum 1/j, θ in the tail": LowRankWorld(
        dim=8, rank=8, horizon=300, observe_prob=0.5, noise_scale=0.1, decay=1.0, theta="tail"
    ),
}


@pytest.mark.parametrize("world", FULL_RANK.values(), ids=list(FULL_RANK))
def test_where_low_rank_does_not_help_zero_filling_plays_and_costs_at_most_a_tenth(world):
    """Paired with AmbientOful told the noise, over 6 seeds.

    Over seeds 3000 to 3029 the ratio of mean regrets was .98 in either world, with a standard
    error of .03 and .04 for six seeds: 1.10 is three of them away, a false alarm has rate .002. The
    fallback played 99 % and 92 % of the rounds.
    """
    ours, theirs, shares = [], [], []
    for seed in SEEDS:
        policy = LatentUcb()
        ours.append(regret_in(policy, world, seed)[0])
        shares.append(policy.fallback_rounds / world.horizon)
        told = AmbientOful(dim=8, noise_scale=0.1)
        theirs.append(regret_in(told, world, seed)[0])
    assert np.mean(shares) > 0.6
    assert np.mean(ours) <= 1.10 * np.mean(theirs)


def test_where_low_rank_helps_zero_filling_plays_rarely():
    world = LowRankWorld(dim=20, rank=2, horizon=150, observe_prob=0.5, noise_scale=0.1)
    for seed in SEEDS:
        policy = LatentUcb()
        regret, _ = regret_in(policy, world, seed)
        assert policy.fallback_rounds < 0.2 * world.horizon
        assert regret < 0.5 * regret_in(AmbientOful(dim=20, noise_scale=0.1), world, seed)[0]


def test_without_permission_zero_filling_never_plays_an_epoch_that_has_a_rank():
    world = FULL_RANK["spectrum 1/j, θ in the tail"]
    policy = LatentUcb(fallback=False, rank=2)
    regret_in(policy, world, 2000)
    assert policy.fallback_rounds == 0
    assert not any(record.fallback for record in policy.epoch_log)


def in_fallback(**settings):
    """Return a policy inside an epoch in which zero-filling plays: its arms have no rank."""
    policy = LatentUcb(dim=6, **settings)
    rng = np.random.default_rng(0)
    for _ in range(40):
        arms = rng.normal(size=(4, 6))
        decision = policy.choose(np.where(rng.random((4, 6)) < 0.6, arms, np.nan))
        policy.learn(decision, float(arms[decision.arm] @ np.arange(6.0)))
    assert policy.epoch_log[-1].fallback
    return policy


def test_in_the_fallback_scores_are_those_of_a_ridge_regression_on_zero_filled_arms():
    policy = in_fallback()
    record, played = policy.epoch_log[-1], policy._played
    arms, rewards = played.samples()
    points, table = np.nan_to_num(arms), few_arms(1, seed=3)[0].table
    unit = policy._epoch.unit
    gram = points.T @ points / unit**2 + record.ridge * np.eye(6)
    theta = np.linalg.solve(gram, points.T @ rewards / unit)
    filled = np.nan_to_num(table) / unit
    widths = np.sqrt(np.einsum("ij,ij->i", filled, np.linalg.solve(gram, filled.T).T))
    decision = copy_of(policy).choose(table)
    assert decision.estimates == pytest.approx(filled @ theta, rel=1e-8)
    ratio = decision.widths / widths
    assert ratio == pytest.approx(np.full(4, ratio[0]), rel=1e-8)
    assert policy.current_rank == 6
    assert np.isnan(policy.hidden_deviations(table)).all()


def test_fallback_rounds_count_the_rounds_of_fallback_epochs():
    policy = in_fallback()
    starts = [record.round for record in policy.epoch_log] + [policy.round + 1]
    lengths = np.diff(starts)
    expected = sum(
        int(n) for n, record in zip(lengths, policy.epoch_log, strict=True) if record.fallback
    )
    assert policy.fallback_rounds == expected > 0
    assert policy.diagnostics()["fallback_rounds"] == expected


@pytest.mark.parametrize("exploration", ["ucb", "thompson", "greedy"])
def test_late_rewards_enter_the_fallback_and_it_is_saved(exploration):
    policy = in_fallback(exploration=exploration)
    table = few_arms(1, seed=3)[0].table
    waiting = [policy.choose(table) for _ in range(3)]
    twin = copy_of(policy)
    before = policy.choose(table).estimates
    twin.choose(table)
    for decision in reversed(waiting):
        policy.learn(decision, 7.0)
        twin.learn(decision, 7.0)
    assert not np.array_equal(policy.choose(table).estimates, before)
    twin.choose(table)
    assert state_bytes(twin) == state_bytes(policy)


@pytest.mark.parametrize("impute_ridge", [0.0, 1e-5])
def test_arms_that_are_not_identified_do_not_spoil_the_contest(impute_ridge):
    """In burn-in every second arm shows a single entry, too few for rank 2."""
    policy = TofuPov(
        dim=6, rank=2, observe_prob=0.7, burn_in=20, impute_ridge=impute_ridge, fallback=True
    )
    rounds = few_arms(40)
    for offer in rounds[:20:2]:
        offer.table[:, 1:] = np.nan
        offer.table[:, 0] = 1.0
    walk(policy, rounds)
    assert np.isfinite(policy._epoch.contest.excess)
    assert state_bytes(copy_of(policy)) == state_bytes(policy)
