"""An imputer in front of a policy: what it may look at, what it keeps, and how it is saved."""

import numpy as np
import pytest

from halfseen import AmbientOful, Imputed
from halfseen.baselines import imputed
from policy_runs import copy_of, few_arms, looks, walk

over_imputers = pytest.mark.parametrize("imputer", ["mean", "gaussian", "iterative"])


def small(**settings):
    """Return a policy that fits before rounds 5, 8, 12, 18, 27, …."""
    return Imputed(**{"dim": 6, "first_fit": 4, "noise_scale": 0.1} | settings)


def shown(decision):
    """Return what the inner policy was shown of the chosen arm."""
    return decision._note.inner.arm


# What it looks at


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
        def __init__(self, imputer, rows, seed):
            fitted.append(len(rows))
            super().__init__(imputer, rows, seed)

    monkeypatch.setattr(imputed, "Filler", Counting)
    walk(small(max_rows=1000), few_arms(30))
    assert fitted == [0, 16, 28, 44, 68, 104]  # 4 arms per round, before rounds 5, 8, 12, 18, 27


@pytest.mark.parametrize("imputer", ["mean", "zero"])
def test_the_mean_is_that_of_all_arms_offered_before(imputer):
    policy = small(imputer=imputer)
    rounds = few_arms(5)
    extra = few_arms(1, seed=7)[0].table
    policy.absorb(extra)
    walk(policy, rounds[:4])
    decision = policy.choose(rounds[4].table)
    means = np.nanmean(np.vstack([extra, *(offer.table for offer in rounds[:4])]), axis=0)
    arm, guesses = rounds[4].table[decision.arm], means * (imputer == "mean")
    assert shown(decision) == pytest.approx(np.where(np.isnan(arm), guesses, arm))
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
    filled = policy.shown(table)
    seen = ~np.isnan(table)
    assert np.array_equal(filled[seen], table[seen])
    assert np.isfinite(filled).all()
    assert not filled[~seen[:, 2], 2].any()
    assert filled[0, [0, 1, 3, 4, 5]].all()


def test_a_gaussian_fills_in_the_regression_of_hidden_entries_on_seen_ones():
    """With nothing hidden in the sample it is that of least squares, in any units."""
    rows = np.random.default_rng(0).standard_normal((50, 4)) @ np.diag([1e6, 1.0, 1e-6, 1.0])
    rows[:, 3] += 1e-6 * rows[:, 0] + 1e6 * rows[:, 2] + 5.0
    inputs = np.column_stack([rows[:, :3], np.ones(50)])
    weights = np.linalg.lstsq(inputs, rows[:, 3], rcond=None)[0]
    table = np.array([[2e6, 0.5, 1e-6, np.nan], [np.nan] * 4])
    filled = imputed.Filler("gaussian", rows, 0).fill(table)
    assert filled[0, 3] == pytest.approx([2e6, 0.5, 1e-6, 1.0] @ weights, rel=1e-6)
    assert filled[1] == pytest.approx(rows.mean(axis=0))


def test_a_gaussian_copes_with_very_large_numbers(caplog):
    rows, table = few_arms(9)[0].table, few_arms(1, seed=3)[0].table
    plain = imputed.Filler("gaussian", rows, 0).fill(table)
    large = imputed.Filler("gaussian", 1e95 * rows, 0).fill(1e95 * table)
    assert large == pytest.approx(1e95 * plain, rel=1e-9)
    assert not caplog.text


def test_a_failure_of_the_imputer_is_logged(caplog):
    filler = imputed.Filler("iterative", 1e300 * few_arms(9)[0].table, 0)
    assert (filler.fill(np.full((1, 6), np.nan)) == 0.0).all()
    assert "the imputer failed, hidden entries become 0: " in caplog.text


# Rewards


@over_imputers
def test_a_late_reward_meets_the_features_of_its_choice(imputer):
    """All rewards come after two fits; a plain policy gets the same on what was shown then."""
    policy, plain = small(imputer=imputer), AmbientOful(dim=6, noise_scale=0.1)
    rounds = few_arms(10)
    decisions = [policy.choose(table) for table, _ in rounds]
    features = [shown(decision) for decision in decisions]
    for decision, offer, arm in zip(decisions, rounds, features, strict=True):
        policy.learn(decision, offer.rewards[decision.arm])
        plain.learn(plain.choose([arm]), offer.rewards[decision.arm])
    full = np.random.default_rng(0).standard_normal((5, 6))
    assert np.array_equal(policy.choose(full).scores, plain.choose(full).scores)
