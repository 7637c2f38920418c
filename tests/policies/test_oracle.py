"""The policy that was told the subspace: its figures and its geometry."""

import numpy as np
import pytest

from halfseen import AmbientOful, InvalidSettingError, LowRankWorld, Oracle, play
from policy_runs import few_arms, walk

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
    ("given", "figures"),
    [
        ({"is_told_loadings": True}, {0.8: 5.2, 0.6: 5.2, 0.4: 5.2, 0.3: 5.5, 0.2: 10.1}),
        ({}, {0.8: 5.2, 0.3: 5.4, 0.2: 10.5}),
        ({"view": "full"}, {0.3: 5.2}),
    ],
    ids=["subspace and variances", "subspace alone", "nothing hidden"],
)
def test_regret_of_the_oracle(given, figures):
    """The variances matter only for arms that their seen entries do not determine."""
    assert {p: round(mean_regret(p, **given), 1) for p in figures} == figures


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


# Settings


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"basis": [1.0, 0.0]}, r"basis must be a table .* \(dim, rank\)"),
        ({"basis": "U"}, "basis must be a table .* got 'U'"),
        ({"basis": [[1.0], [1.0]]}, "basis must have orthonormal columns"),
        ({"basis": [[np.nan], [1.0]]}, "basis must have orthonormal columns"),
        ({"latent_variances": [1.0]}, r"latent_variances .* got \[1\.0\]"),
        ({"latent_variances": 0.0}, r"latent_variances .* got 0\.0"),
        ({"entry_noise": 0.0}, r"entry_noise .* got 0\.0"),
    ],
    ids=lambda part: str(part)[:40] if isinstance(part, dict) else "",
)
def test_a_bad_setting_is_refused_by_name_and_value(setting, says):
    with pytest.raises(InvalidSettingError, match=says):
        Oracle(**{"basis": np.eye(4)[:, :2]} | setting)
