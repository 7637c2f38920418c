"""LatentUcb needs to be told nothing: any dimension, any slates, any units, from the first call."""

import json

import numpy as np
import pytest
from policy_runs import copy_of, few_arms, looks, offers, regret_in, state_bytes, walk

from halfseen import (
    AmbientOful,
    FixedRank,
    HeldOutRank,
    InvalidSettingError,
    InvalidSlateError,
    LatentUcb,
    LowRankWorld,
    Slate,
    load,
)

EXPLORATIONS = pytest.mark.parametrize("exploration", ["ucb", "thompson", "greedy"])


def rounds_of(dim, *, sizes=(4,), n_rounds=30, seed=0, show=0.6):
    """Return rounds of arms of rank at most 2, of which some may show nothing."""
    rng = np.random.default_rng(seed)
    basis, theta = rng.normal(size=(min(2, dim), dim)), rng.normal(size=dim)
    rounds = []
    for index in range(n_rounds):
        arms = rng.normal(size=(sizes[index % len(sizes)], len(basis))) @ basis
        table = np.where(rng.random(arms.shape) < show, arms, np.nan)
        rounds.append((table, arms @ theta + 0.1 * rng.normal()))
    return rounds


def played(policy, rounds):
    """Play all rounds, check that scores are numbers, and return the choices."""
    decisions = walk(policy, rounds)
    for (table, _), decision in zip(rounds, decisions, strict=True):
        assert decision.scores.shape == (len(table),)
        assert np.isfinite([decision.scores, decision.estimates, decision.widths]).all()
    assert state_bytes(copy_of(policy)) == state_bytes(policy)
    return [decision.arm for decision in decisions]


# -- anything goes --------------------------------------------------------------------------------


@EXPLORATIONS
@pytest.mark.parametrize("n_arms", [1, 2, 200])
@pytest.mark.parametrize("dim", [1, 2, 50])
def test_any_dimension_and_any_number_of_arms(dim, n_arms, exploration):
    policy = LatentUcb(exploration=exploration)
    played(policy, rounds_of(dim, sizes=(n_arms,), n_rounds=24))
    assert policy.dim == dim


@pytest.mark.parametrize("dim", [1, 2, 9])
def test_slates_may_change_their_size(dim):
    played(LatentUcb(), rounds_of(dim, sizes=(1, 9, 3, 200, 2), n_rounds=40))


@EXPLORATIONS
@pytest.mark.parametrize("dim", [1, 6])
def test_slates_may_show_nothing_at_all(dim, exploration):
    policy = LatentUcb(exploration=exploration)
    blind = [(np.full((3, dim), np.nan), np.ones(3))] * 12
    assert played(policy, blind) == [0] * 12
    played(policy, rounds_of(dim, n_rounds=20))


def test_arms_may_be_zeros():
    played(LatentUcb(), [(np.zeros((3, 5)), np.ones(3))] * 20)


@EXPLORATIONS
@pytest.mark.parametrize("reward", [0.0, 1.0, -3.0, 1e90, -1e90, 1e-90, 1e100])
def test_rewards_may_be_constant(reward, exploration):
    rounds = [(table, np.full(len(table), reward)) for table, _ in rounds_of(6)]
    played(LatentUcb(exploration=exploration), rounds)


@pytest.mark.parametrize("factor", [1e-90, 1e90])
@EXPLORATIONS
def test_rewards_may_be_of_any_size(factor, exploration):
    rounds = [(table, factor * rewards) for table, rewards in rounds_of(6)]
    played(LatentUcb(exploration=exploration), rounds)


@pytest.mark.parametrize("factor", [1e-90, 1e90])
@EXPLORATIONS
def test_features_may_be_of_any_size(factor, exploration):
    rounds = [(factor * table, rewards) for table, rewards in rounds_of(6)]
    played(LatentUcb(exploration=exploration), rounds)


def test_the_same_slate_may_come_again_and_again():
    """A catalogue, fully seen, of more features than rounds."""
    rng = np.random.default_rng(0)
    for dim in (3, 40):
        table, theta = rng.normal(size=(5, dim)), rng.normal(size=dim)
        rounds = [(table, table @ theta + 0.01 * rng.normal()) for _ in range(35)]
        choices = played(LatentUcb(), rounds)
        assert choices[-1] == (table @ theta).argmax()


def test_half_of_the_rewards_may_never_come():
    policy = LatentUcb()
    for index, (table, rewards) in enumerate(rounds_of(6, n_rounds=40)):
        decision = policy.choose(table)
        if index % 2:
            policy.learn(decision, rewards[decision.arm])
    assert policy.n_open == 20


def test_no_reward_may_ever_come():
    policy = LatentUcb()
    for table, _ in rounds_of(6, n_rounds=30):
        assert np.isfinite(policy.choose(table).scores).all()


@EXPLORATIONS
def test_rewards_may_come_late_and_in_any_order(exploration):
    rounds = rounds_of(6, n_rounds=40)
    policy = LatentUcb(exploration=exploration)
    decisions = [policy.choose(table) for table, _ in rounds]
    for index in np.random.default_rng(1).permutation(40):
        policy.learn(decisions[index], rounds[index][1][decisions[index].arm])
    assert policy.n_open == 0
    played(policy, rounds_of(6, seed=0, n_rounds=30))
    assert policy.epoch_log[-1].n_replayed >= 40


# -- units ----------------------------------------------------------------------------------------


WORLD = LowRankWorld(dim=12, rank=2, horizon=60, observe_prob=0.6, noise_scale=0.1)


def in_units(policy, *, feature=1.0, reward=1.0, seed=0):
    """Return the choices of a policy that sees a world in other units."""
    arms = []
    for round in WORLD.realize(seed).rounds():
        table = np.where(round.slate.mask, feature * round.slate.values, np.nan)
        decision = policy.choose(table)
        arms.append(decision.arm)
        policy.learn(decision, reward * (float(round.means[decision.arm]) + round.noise))
    return arms


UNITS = [0.5, 2.0**40, 2.0**-40, 100.0, 0.01, 1e-90, 1e90]


@EXPLORATIONS
@pytest.mark.parametrize("factor", UNITS)
def test_the_unit_of_the_rewards_does_not_matter(factor, exploration):
    plain, other = (
        in_units(LatentUcb(exploration=exploration), reward=each) for each in (1.0, factor)
    )
    assert other == plain


@pytest.mark.parametrize("factor", UNITS)
@pytest.mark.parametrize("seed", range(3))
def test_the_unit_of_the_features_does_not_matter(factor, seed):
    plain, other = (in_units(LatentUcb(), feature=each, seed=seed) for each in (1.0, factor))
    assert other == plain


@EXPLORATIONS
@pytest.mark.parametrize("factor", UNITS)
def test_the_unit_of_the_features_does_not_matter_if_the_rank_is_given(factor, exploration):
    plain, other = (
        in_units(LatentUcb(rank=2, exploration=exploration), feature=each) for each in (1.0, factor)
    )
    assert other == plain


def test_a_power_of_two_leaves_all_scores_as_they_are_bit_by_bit():
    """Of rewards: scores are in their unit. Of features, where the rank is told: not even that."""
    for settings, feature, reward in (({}, 1.0, 8.0), ({"rank": 2}, 0.25, 1.0)):
        plain, other = LatentUcb(**settings), LatentUcb(**settings)
        for table, rewards in rounds_of(8, n_rounds=40):
            expected, decision = plain.choose(table), other.choose(feature * table)
            assert decision.arm == expected.arm
            if plain.round > 1:
                assert np.array_equal(decision.scores, reward * expected.scores)
            plain.learn(expected, rewards[expected.arm])
            other.learn(decision, reward * rewards[decision.arm])


# -- the first call -------------------------------------------------------------------------------


def test_before_the_first_slate_the_dimension_is_open():
    policy = LatentUcb()
    assert not policy.is_begun
    assert (policy.round, policy.n_open, policy.epoch_log) == (0, 0, ())
    policy.choose(np.ones((2, 7)))
    assert policy.is_begun
    assert (policy.dim, policy.round, policy.n_open) == (7, 1, 1)
    with pytest.raises(InvalidSlateError, match="7"):
        policy.choose(np.ones((2, 6)))
    assert LatentUcb(dim=3).is_begun


def test_settings_contain_the_dimension_once_it_is_known():
    policy = LatentUcb(rank=3, growth=1.5)
    before = policy.settings()
    assert before["dim"] is None
    assert json.loads(json.dumps(before)) == before
    assert LatentUcb(**before).settings() == before
    policy.choose(np.ones((2, 7)))
    after = policy.settings()
    assert after == before | {"dim": 7}
    assert LatentUcb(**after).settings() == after


@pytest.mark.parametrize("rank", [3, FixedRank(3), HeldOutRank(max_rank=2)], ids=repr)
def test_a_given_rank_is_saved_before_the_first_slate(tmp_path, rank):
    policy = LatentUcb(rank=rank)
    policy.save(tmp_path / "policy")
    restored = load(tmp_path / "policy")
    assert restored.settings() == policy.settings()
    first, second = (walk(each, rounds_of(9)) for each in (policy, restored))
    assert [looks(decision) for decision in first] == [looks(decision) for decision in second]


def test_defaults_appear_in_the_settings_as_words():
    plain = LatentUcb().settings()
    assert plain["dim"] is None
    assert plain["observe_prob"] == "counted"
    assert {plain[name] for name in ("noise_scale", "theta_bound", "ridge")} == {"estimated"}
    assert LatentUcb(rank=HeldOutRank()).settings() == plain
    assert repr(LatentUcb()) == "LatentUcb()"
    assert repr(LatentUcb(rank=3, seed=1)) == "LatentUcb(rank=FixedRank(rank=3), seed=1)"


def test_saved_before_the_first_slate_it_begins_as_if_nothing_had_happened(tmp_path):
    policy = LatentUcb(seed=3, exploration="thompson")
    policy.save(tmp_path / "policy")
    restored = load(tmp_path / "policy")
    assert not restored.is_begun
    assert state_bytes(restored) == state_bytes(policy)
    for dim in (4, 9):
        ours, theirs = copy_of(policy), copy_of(restored)
        rounds = rounds_of(dim, n_rounds=20)
        first, second = walk(ours, rounds), walk(theirs, rounds)
        assert [looks(decision) for decision in first] == [looks(decision) for decision in second]
        assert not {decision.id for decision in first} & {decision.id for decision in second}


def test_copies_made_before_the_first_slate_stay_the_same_to_the_byte():
    policy = LatentUcb()
    other = copy_of(policy)
    for table, rewards in rounds_of(5, n_rounds=12):
        decision, twin = policy.choose(table), other.choose(table)
        policy.learn(decision, rewards[decision.arm])
        other.learn(twin, rewards[twin.arm])
        assert state_bytes(other) == state_bytes(policy)


BAD = {
    "a word": "slate",
    "no arms": np.empty((0, 4)),
    "no features": np.empty((3, 0)),
    "one arm without its slate": np.ones(4),
    "infinite": np.full((2, 4), np.inf),
    "huge": np.full((2, 4), 1.1e100),
}


@pytest.mark.parametrize("options", BAD.values(), ids=list(BAD))
@pytest.mark.parametrize("call", ["choose", "absorb"])
def test_a_bad_first_slate_changes_nothing(options, call):
    policy = LatentUcb()
    before = state_bytes(policy)
    with pytest.raises(InvalidSlateError):
        getattr(policy, call)(options)
    assert state_bytes(policy) == before
    assert not policy.is_begun
    policy.choose(np.ones((2, 7)))
    assert policy.dim == 7


def test_a_first_slate_that_fails_inside_changes_nothing(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("injected")

    policy = LatentUcb()
    before = state_bytes(policy)
    for call, hook in (("choose", "decide"), ("absorb", "observe")):
        with monkeypatch.context() as patch:
            patch.setattr(AmbientOful, hook, fail)
            with pytest.raises(RuntimeError, match="injected"):
                getattr(policy, call)(np.ones((2, 5)))
        assert state_bytes(policy) == before
    assert policy.choose(np.ones((2, 8))).values.shape == (8,)


@pytest.mark.parametrize("form", [Slate, np.asfortranarray, lambda table: table.tolist()])
def test_the_first_slate_may_come_in_any_form(form):
    table = few_arms(1)[0].table
    expected = LatentUcb().choose(table)
    assert looks(LatentUcb().choose(form(table))) == looks(expected)


def test_the_dimension_may_come_from_absorbed_arms():
    policy, told = LatentUcb(), LatentUcb(dim=6)
    catalogue = offers(1, sizes=(40,), seed=5)[0].table
    for each in (policy, told):
        each.absorb(catalogue)
    assert policy.is_begun
    assert (policy.dim, policy.round, policy.n_open) == (6, 0, 0)
    first, second = (walk(each, few_arms(20)) for each in (policy, told))
    assert [looks(decision) for decision in first] == [looks(decision) for decision in second]
    assert policy.epoch_log[0].n_arms == 40 + 4


def test_a_given_dimension_and_one_from_the_first_slate_give_equal_decisions():
    first, second = (walk(policy, few_arms(30)) for policy in (LatentUcb(), LatentUcb(dim=6)))
    assert [looks(decision) for decision in first] == [looks(decision) for decision in second]


def test_probabilities_per_feature_and_rank_wait_for_their_slate():
    policy = LatentUcb(observe_prob=np.full(6, 0.7), rank=2)
    walk(policy, few_arms(12))
    assert policy.current_rank == 2
    wrong = LatentUcb(observe_prob=np.full(5, 0.7))
    with pytest.raises(InvalidSettingError, match="observe_prob"):
        wrong.choose(few_arms(1)[0].table)
    assert not wrong.is_begun
    with pytest.raises(InvalidSettingError, match="rank"):
        LatentUcb(rank=7).choose(few_arms(1)[0].table)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"exploration": "luck"}, "exploration .* got 'luck'"),
        ({"subspace": "guess"}, "subspace .* got 'guess'"),
        ({"features": "guess"}, "features .* got 'guess'"),
        ({"radius_scale": -1.0}, r"radius_scale .* got -1\.0"),
        ({"noise_scale": -1.0}, r"noise_scale .* got -1\.0"),
        ({"ridge": 0.0}, r"ridge .* got 0\.0"),
        ({"growth": 1.0}, r"growth .* got 1\.0"),
        ({"burn_in": 0}, "burn_in .* got 0"),
        ({"fallback": "yes"}, "fallback must be True or False, got 'yes'"),
        ({"replay": "none"}, "fallback=True needs replay='full'"),
        ({"memory_bytes": 0}, "memory_bytes .* got 0"),
        ({"rank": 0}, "rank .* got 0"),
        ({"observe_prob": 1.4}, r"observe_prob .* got 1\.4"),
        ({"dim": 0}, "dim .* got 0"),
        ({"seed": -1}, "seed .* got -1"),
        ({"max_open": 0}, "max_open .* got 0"),
    ],
    ids=lambda part: str(part) if isinstance(part, dict) else "",
)
def test_a_bad_setting_is_refused_at_once_by_name_and_value(setting, says):
    with pytest.raises(InvalidSettingError, match=says):
        LatentUcb(**setting)


# -- what it does ---------------------------------------------------------------------------------


def test_epochs_grow_by_a_quarter_from_the_second_round_on():
    policy = LatentUcb()
    walk(policy, few_arms(40))
    starts = [record.round for record in policy.epoch_log]
    assert starts[0] == 2
    assert starts == policy.schedule.starts(40)
    late = np.array(starts[starts.index(10) :] if 10 in starts else starts[8:])
    assert (np.divide(late[1:], late[:-1]) < 1.5).all()


def test_all_rewards_are_replayed_in_every_epoch():
    policy = LatentUcb(fallback=False, rank=2)
    walk(policy, few_arms(40))
    for record in policy.epoch_log:
        assert record.n_replayed == record.round - 1


def test_the_rank_is_found_and_reported():
    policy = LatentUcb()
    regret_in(policy, WORLD, 0)
    diagnostics = policy.diagnostics()
    assert policy.current_rank == 2
    assert diagnostics["epoch_ranks"][-1] == 2
    assert diagnostics["noise_scale"] == policy.epoch_log[-1].noise_scale
    assert json.loads(json.dumps(diagnostics)) == diagnostics


def test_the_noise_of_rewards_is_found():
    """Within half of .1 after 60 rounds, in each of 5 seeds; it says how far rewards scatter."""
    for seed in range(5):
        policy = LatentUcb()
        regret_in(policy, WORLD, seed)
        assert 0.05 < policy.epoch_log[-1].noise_scale < 0.15


def test_a_subspace_that_grows_at_mid_run_is_followed():
    """Rank 3, and from round 100 on 6: after 250 rounds the rank in use is 6."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        basis, theta = np.linalg.qr(rng.normal(size=(20, 6)))[0], rng.normal(size=20)
        policy, ranks = LatentUcb(), {}
        for round in range(1, 251):
            latents = rng.normal(size=(6, 6))
            if round < 100:
                latents[:, 3:] = 0.0
            arms = latents @ basis.T
            decision = policy.choose(np.where(rng.random(arms.shape) < 0.6, arms, np.nan))
            policy.learn(decision, float(arms[decision.arm] @ theta) + 0.1 * rng.normal())
            ranks[round] = policy.epoch_log[-1].rank if policy.epoch_log else 0
        assert (ranks[99], ranks[250]) == (3, 6)


def test_memory_for_arms_is_what_was_given():
    policy = LatentUcb(memory_bytes=8 * 6 * 50)
    walk(policy, offers(20))
    assert policy.state()["offered"]["rows"].shape == (50, 6)
    generous = LatentUcb(memory_bytes=10**6)
    walk(generous, few_arms(20))
    assert generous.state()["offered"]["rows"].shape == (80, 6)


def test_regret_is_a_fraction_of_zero_filling():
    """At p = .3 in the main study's world, 100 rounds: half at most, in each of 4 seeds."""
    world = LowRankWorld(horizon=100)
    for seed in range(1000, 1004):
        ours = regret_in(LatentUcb(), world, seed)[0]
        assert ours < 0.5 * regret_in(AmbientOful(dim=30, noise_scale=0.05), world, seed)[0]
