"""The policy that was told the subspace: its figures, its geometry, and what it does at changes."""

import numpy as np
import pytest

from halfseen import AmbientOful, InvalidSettingError, LowRankWorld, Oracle, play
from halfseen.policies.registry import policy_from_dict, policy_to_dict
from policy_runs import few_arms, looks, walk

SEEDS = range(20)


def random_basis(dim, rank, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, rank)))[0]


def mean_regret(observe_prob, *, is_told_loadings=False, view="masked", **settings):
    """Return the mean final regret on the instances of the main study."""
    finals = []
    for seed in SEEDS:
        realization = LowRankWorld(observe_prob=observe_prob).realize(seed)
        if is_told_loadings:
            settings["latent_variances"] = realization.loadings**2
        policy = Oracle(basis=realization.basis, noise_scale=0.05, **settings)
        finals.append(play(policy, realization, view).final_regret)
    return float(np.mean(finals))


# Figures


@pytest.mark.parametrize(
    ("observe_prob", "regret"), [(0.8, 5.2), (0.6, 5.2), (0.4, 5.2), (0.3, 5.5), (0.2, 10.1)]
)
def test_regret_given_subspace_and_variances(observe_prob, regret):
    assert round(mean_regret(observe_prob, is_told_loadings=True), 1) == regret


@pytest.mark.parametrize(("observe_prob", "regret"), [(0.8, 5.2), (0.3, 5.4), (0.2, 10.5)])
def test_regret_given_the_subspace_alone(observe_prob, regret):
    """The variances matter only for arms that their seen entries do not determine."""
    assert round(mean_regret(observe_prob), 1) == regret


def test_regret_with_nothing_hidden():
    assert round(mean_regret(0.3, view="full"), 1) == 5.2


# Coordinates


def test_with_nothing_hidden_the_oracle_is_oful_on_projected_arms():
    basis = random_basis(7, 3)
    oracle, plain = Oracle(basis=basis), AmbientOful(dim=3)
    random = np.random.default_rng(1)
    for _ in range(30):
        arms = random.standard_normal((5, 7))
        decision, expected = oracle.choose(arms), plain.choose(arms @ basis)
        assert decision.arm == expected.arm
        # The posterior mean is shorter by the noise, 1e-8 of the prior.
        assert decision.scores == pytest.approx(expected.scores, rel=2e-8, abs=1e-9)
        oracle.learn(decision, arms[decision.arm, 0])
        plain.learn(expected, arms[decision.arm, 0])


def test_the_coordinates_of_an_arm_that_is_not_determined_are_the_posterior_mean_by_hand():
    """One entry x = a₁/√2 + a₂/√2 seen; prior variances 4 and 1: a = √2·x·(4, 1)/5."""
    basis = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    slate = [[1.0, np.nan]]
    uneven = Oracle(basis=basis, latent_variances=[4.0, 1.0])
    even = Oracle(basis=basis)
    for policy, latent in ((uneven, [0.8, 0.2]), (even, [0.5, 0.5])):
        note = policy.choose(slate)._note
        assert note.inner.arm == pytest.approx(np.sqrt(2) * np.array(latent), rel=1e-7)


def test_only_the_ratio_of_noise_to_variances_matters():
    rounds, basis = few_arms(20), random_basis(6, 2)
    ours = walk(Oracle(basis=basis, latent_variances=4e6, entry_noise=4e-2), rounds)
    theirs = walk(Oracle(basis=basis), rounds)
    for one, other in zip(ours, theirs, strict=True):
        assert one.scores == pytest.approx(other.scores, rel=1e-12)


@pytest.mark.parametrize("exploration", ["ucb", "greedy"])
def test_turning_the_basis_changes_no_decision(exploration):
    basis, turn = random_basis(6, 2), random_basis(2, 2, seed=9)
    settings = {"exploration": exploration, "noise_scale": 0.1}
    rounds = few_arms(60)
    ours = walk(Oracle(basis=basis, **settings), rounds)
    theirs = walk(Oracle(basis=basis @ turn, **settings), rounds)
    assert [decision.arm for decision in ours] == [decision.arm for decision in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.scores == pytest.approx(other.scores, rel=1e-6, abs=1e-9)


# Changes of the subspace


def test_from_its_round_on_a_change_is_a_fresh_policy_in_the_new_basis():
    old, new = random_basis(6, 2), random_basis(6, 3, seed=1)
    rounds = few_arms(40)
    policy = Oracle(basis=old, basis_changes=[(16, new)])
    before = walk(policy, rounds[:15])
    assert policy.current_rank == 2
    after = walk(policy, rounds[15:])
    assert policy.current_rank == 3
    first, second = Oracle(basis=old), Oracle(basis=new)
    for ours, theirs in ((before, walk(first, rounds[:15])), (after, walk(second, rounds[15:]))):
        assert [d.arm for d in ours] == [d.arm for d in theirs]
        assert all(np.array_equal(a.scores, b.scores) for a, b in zip(ours, theirs, strict=True))
    assert [d.round for d in after] == list(range(16, 41))


def test_a_late_reward_goes_to_the_regression_in_whose_basis_it_was_earned():
    rounds = few_arms(12)
    policy = Oracle(basis=random_basis(6, 2), basis_changes=[(6, random_basis(6, 2, seed=1))])
    early = [policy.choose(table) for table, _ in rounds[:5]]
    walk(policy, rounds[5:11])
    expected = load_copy(policy).choose(rounds[11].table)
    for decision in early:
        policy.learn(decision, 100.0)
    assert looks(policy.choose(rounds[11].table)) == looks(expected)
    assert policy._inners[0]._model.n_samples == 5


def load_copy(policy):
    return policy_from_dict(policy_to_dict(policy))


# Settings


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"basis": [1.0, 0.0]}, r"basis must be a table .* \(dim, rank\)"),
        ({"basis": "U"}, "basis must be a table .* got 'U'"),
        ({"basis": [[1.0], [1.0]]}, "basis must have orthonormal columns"),
        ({"basis": [[np.nan], [1.0]]}, "basis must have orthonormal columns"),
        ({"basis_changes": [(1, np.eye(4))]}, r"basis_changes\[0\]\[0\] .* got 1"),
        ({"basis_changes": [(5, np.eye(4)), (5, np.eye(4))]}, r"basis_changes\[1\]\[0\] .* got 5"),
        ({"basis_changes": [(5, np.eye(3))]}, r"basis_changes\[0\]\[1\] must have 4 rows, got 3"),
        ({"basis_changes": 5}, "basis_changes must be pairs .* got 5"),
        ({"latent_variances": [1.0]}, r"latent_variances .* got \[1\.0\]"),
        ({"latent_variances": 0.0}, r"latent_variances .* got 0\.0"),
        ({"entry_noise": 0.0}, r"entry_noise .* got 0\.0"),
        ({"entry_noise": 1e-12}, "entry_noise must be at least 1e-10 of .* got 1e-12"),
    ],
    ids=lambda part: str(part)[:40] if isinstance(part, dict) else "",
)
def test_a_bad_setting_is_refused_by_name_and_value(setting, says):
    with pytest.raises(InvalidSettingError, match=says):
        Oracle(**{"basis": np.eye(4)[:, :2]} | setting)
