"""An imputer in front of a policy: what it may look at, what it keeps, and how it is saved."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.impute import KNNImputer, SimpleImputer

from halfseen import AmbientOful, Imputed, load
from halfseen.policies import imputed
from policy_runs import copy_of, few_arms, looks, offers, state_bytes, walk

NAMES = ["mean", "knn", "iterative"]
over_imputers = pytest.mark.parametrize("imputer", NAMES)


def small(**settings):
    """Return a policy that fits before rounds 5, 8, 12, 18, 27, …."""
    return Imputed(**{"dim": 6, "first_fit": 4, "noise_scale": 0.1} | settings)


def shown(policy, decision):
    """Return what the inner policy was shown of the chosen arm."""
    return decision._note.inner.arm


# What it looks at


@over_imputers
def test_later_slates_do_not_change_earlier_decisions(imputer):
    rounds = few_arms(20)
    expected = [looks(decision) for decision in walk(small(imputer=imputer), rounds)]
    for first in (4, 5, 8, 12):
        poisoned = [(1e6 * offer.table, offer.rewards) for offer in rounds[first:]]
        decisions = walk(small(imputer=imputer), [*rounds[:first], *poisoned])
        assert [looks(decision) for decision in decisions[:first]] == expected[:first]
        assert looks(decisions[-1]) != expected[-1]


@over_imputers
@pytest.mark.parametrize("n_rounds", [4, 5, 7], ids=["first fit", "between fits", "second fit"])
def test_an_arm_is_filled_in_without_a_look_at_the_others_of_its_slate(imputer, n_rounds):
    policy = small(imputer=imputer)
    rounds = few_arms(n_rounds + 1)
    walk(policy, rounds[:-1])
    table = rounds[-1].table
    poisoned = np.vstack([table[:1], 1e6 * table[1:]])
    plain, other = (copy_of(policy).choose(options) for options in (table, poisoned))
    assert other.estimates[0] == pytest.approx(plain.estimates[0], rel=1e-9)
    assert other.widths[0] == pytest.approx(plain.widths[0], rel=1e-9)


def test_before_the_first_fit_hidden_entries_count_as_zero():
    rounds = few_arms(4)
    ours = walk(small(), rounds)
    theirs = walk(AmbientOful(dim=6, noise_scale=0.1), rounds)
    assert [looks(decision) for decision in ours] == [looks(decision) for decision in theirs]


def test_fits_come_when_the_rounds_have_grown_by_the_factor(monkeypatch):
    fitted = []

    class Counting(imputed.Filler):
        def __init__(self, imputer, rows):
            fitted.append(len(rows))
            super().__init__(imputer, rows)

    monkeypatch.setattr(imputed, "Filler", Counting)
    walk(small(max_rows=1000), few_arms(30))
    assert fitted == [0, 16, 28, 44, 68, 104]  # 4 arms per round, before rounds 5, 8, 12, 18, 27


def test_the_mean_is_that_of_all_arms_offered_before():
    policy = small(imputer="mean")
    rounds = few_arms(5)
    extra = few_arms(1, seed=7)[0].table
    policy.absorb(extra)
    walk(policy, rounds[:4])
    decision = policy.choose(rounds[4].table)
    means = np.nanmean(np.vstack([extra, *(offer.table for offer in rounds[:4])]), axis=0)
    arm = rounds[4].table[decision.arm]
    assert shown(policy, decision) == pytest.approx(np.where(np.isnan(arm), means, arm))
    assert np.array_equal(decision.values, np.nan_to_num(arm))


@over_imputers
def test_seen_entries_stay_and_a_feature_never_seen_is_zero(imputer):
    policy = small(imputer=imputer)
    rounds = few_arms(8)
    for offer in rounds:
        offer.table[:, 2] = np.nan
    walk(policy, rounds)
    table = few_arms(1, seed=3)[0].table
    table[0] = np.nan
    filled = policy.fill(table)
    seen = ~np.isnan(table)
    assert np.array_equal(filled[seen], table[seen])
    assert np.isfinite(filled).all()
    assert not filled[~seen[:, 2], 2].any()
    assert filled[0, [0, 1, 3, 4, 5]].all()


@over_imputers
def test_slates_in_which_nothing_is_seen_are_legal(imputer):
    policy = small(imputer=imputer)
    for _ in range(7):
        policy.learn(policy.choose(np.full((3, 6), np.nan)), 0.5)
    assert not policy.fill(np.full((3, 6), np.nan)).any()


@over_imputers
def test_equal_arms_are_filled_in_alike(imputer):
    policy = small(imputer=imputer)
    walk(policy, few_arms(8))
    table = few_arms(1, seed=1)[0].table
    filled = policy.fill(np.vstack([table[[0, 1, 0]], np.tile(table[0], (30, 1))]))
    assert len({row.tobytes() for row in filled[[0, *range(2, 33)]]}) == 1


@over_imputers
def test_entries_at_the_limits_of_what_is_allowed_are_filled_in_with_finite_numbers(imputer):
    policy = small(imputer=imputer)
    for table, rewards in few_arms(14):
        factor = 1e99 if policy.round % 3 == 1 else 1.0
        decision = policy.choose(np.clip(factor * table, -1e100, 1e100))
        assert np.isfinite(decision.scores).all()
        policy.learn(decision, rewards[decision.arm])


# Rewards


@over_imputers
def test_a_late_reward_meets_the_features_of_its_choice(imputer):
    """All rewards come after two fits; a plain policy gets the same on what was shown then."""
    policy, plain = small(imputer=imputer), AmbientOful(dim=6, noise_scale=0.1)
    rounds = few_arms(10)
    decisions = [policy.choose(table) for table, _ in rounds]
    features = [shown(policy, decision) for decision in decisions]
    for decision, offer, arm in zip(decisions, rounds, features, strict=True):
        policy.learn(decision, offer.rewards[decision.arm])
        plain.learn(plain.choose([arm]), offer.rewards[decision.arm])
    full = np.random.default_rng(0).standard_normal((5, 6))
    assert np.array_equal(policy.choose(full).scores, plain.choose(full).scores)


# The sample


def test_no_more_rows_are_kept_than_allowed():
    policy = small(max_rows=50)
    walk(policy, offers(20))
    assert policy._reservoir.rows.shape == policy._filler.rows.shape == (50, 6)


# Saving and failing


@pytest.mark.parametrize("exploration", ["ucb", "thompson", "greedy"])
@over_imputers
def test_it_continues_from_its_file_bit_by_bit(tmp_path, imputer, exploration):
    rounds = few_arms(24)
    policy = small(imputer=imputer, exploration=exploration, max_rows=30, seed=2)
    waiting = policy.choose(rounds[0].table)
    walk(policy, rounds[1:10])
    policy.save(tmp_path / "policy")
    restored = load(tmp_path / "policy")
    assert state_bytes(restored) == state_bytes(policy)
    for one in (policy, restored):
        one.learn(waiting, 0.2)
    ours, theirs = walk(policy, rounds[10:]), walk(restored, rounds[10:])
    assert [looks(decision) for decision in ours] == [looks(decision) for decision in theirs]
    assert state_bytes(restored) == state_bytes(policy)


@pytest.mark.parametrize(
    ("imputer", "owner", "name"),
    [
        ("mean", SimpleImputer, "fit"),
        ("knn", KNNImputer, "transform"),
        ("mean", AmbientOful, "decide"),
    ],
)
def test_a_failure_in_the_round_of_a_fit_changes_nothing(monkeypatch, imputer, owner, name):
    def fail(*args, **kwargs):
        raise RuntimeError("injected")

    policy = small(imputer=imputer, max_rows=10)
    rounds = few_arms(8)
    walk(policy, rounds[:7])
    before, untouched = state_bytes(policy), copy_of(policy)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(RuntimeError, match="injected"):
            policy.choose(rounds[7].table)
    assert state_bytes(policy) == before
    assert looks(policy.choose(rounds[7].table)) == looks(untouched.choose(rounds[7].table))
    assert state_bytes(policy) == state_bytes(untouched)


# Which imputer


def test_scikit_learn_is_loaded_by_the_first_policy_that_needs_it():
    program = (
        "import sys; sys.modules['sklearn'] = None  # every import of it fails\n"
        "from halfseen import Imputed, MissingExtraError, Oracle\n"
        "Oracle(basis=[[1.0]])\n"
        "try: Imputed(dim=2)\n"
        "except MissingExtraError: print('tried')"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "tried\n"


@pytest.mark.parametrize(("name", "strategy"), [("mean", "mean"), ("zero", "constant")])
def test_one_guess_per_feature_is_what_scikit_learn_would_fill_in(name, strategy):
    rows = np.concatenate([offer.table for offer in offers(6)])
    table = offers(9)[-1].table
    expected = SimpleImputer(strategy=strategy, fill_value=0.0).fit(rows).transform(table)
    assert np.array_equal(imputed.Filler(imputed.fresh_imputer(name), rows).fill(table), expected)
