"""Policies saved by earlier versions load, and play on as they did."""

import json
from pathlib import Path

import numpy as np
import pytest

from golden.make_golden import DIM, FACTORIES, N_AFTER, N_BEFORE, play_on, rounds
from halfseen import (
    ArchiveError,
    Decision,
    LatentUcb,
    TofuPov,
    UnknownDecisionError,
    archive,
    load,
)
from halfseen.policies.registry import policy_from_tree
from halfseen.policies.upgrades import upgraded

FOLDERS = sorted((Path(__file__).parents[1] / "golden").glob("format-*"))
LATENT = [name for name in FACTORIES if name.startswith("latent-ucb")]
REFITTED = [(folder, name) for folder in FOLDERS if folder.name < "format-6" for name in LATENT]
KEPT = [
    (folder, name) for folder in FOLDERS for name in FACTORIES if (folder, name) not in REFITTED
]


def over(pairs):
    names = [f"{name}-{folder.name}" for folder, name in pairs]
    return pytest.mark.parametrize(("folder", "name"), pairs, ids=names)


def golden(folder, name):
    facts = json.loads((folder / f"{name}.json").read_text())
    decisions = [(Decision.from_dict(plain), reward) for plain, reward in facts["open"]]
    return load(folder / f"{name}.halfseen"), decisions, facts["played"]


def test_every_earlier_format_since_2_has_a_folder():
    assert [folder.name for folder in FOLDERS] == [
        f"format-{version}" for version in range(2, archive.FORMAT)
    ]


@over(KEPT)
def test_a_golden_file_loads_and_plays_on_as_the_policy_that_was_saved(folder, name):
    """Scores to rounding: the last bits depend on the processor."""
    policy, decisions, expected = golden(folder, name)
    assert policy.n_open == len(decisions) == 3
    played = play_on(policy, decisions)
    assert [each["arm"] for each in played] == [each["arm"] for each in expected]
    for ours, theirs in zip(played, expected, strict=True):
        np.testing.assert_allclose(ours["scores"], theirs["scores"], rtol=1e-8, atol=1e-10)


@over(REFITTED)
def test_a_latent_ucb_of_an_earlier_format_is_fitted_anew_with_a_warning(folder, name, caplog):
    policy, decisions, expected = golden(folder, name)
    (warning,) = caplog.records
    assert (warning.name, warning.levelname) == ("halfseen", "WARNING")
    assert "its decisions may differ" in warning.message
    assert (policy.round, policy.n_open, policy.dim) == (N_BEFORE, 3, DIM)
    assert policy._plays.n_rows == N_BEFORE - 3
    played = play_on(policy, decisions)
    assert (policy.n_open, policy._plays.n_rows) == (0, N_BEFORE + N_AFTER)
    assert policy.epoch_log[0].round == N_BEFORE + 1
    assert len(played) == len(expected)
    assert all(np.isfinite(each["scores"]).all() for each in played)


def from_format_4(policy, **settings):
    """Return a policy as if format 4 had saved it with other settings."""
    tree = policy.to_tree()
    return policy_from_tree(upgraded(tree | {"settings": tree["settings"] | settings}, 4, "it"))


OLD = {
    "subspace": "covariance",
    "features": "least-squares",
    "exploration": "ucb",
    "fallback": False,
}


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"subspace": "likelihood"}, "subspace='likelihood'"),
        ({"features": "posterior-mean"}, "features='posterior-mean'"),
        ({"exploration": "thompson"}, "exploration='thompson'"),
        ({"fallback": True}, "fallback=True"),
        ({"ridge": "estimated"}, "ridge='estimated'"),
        ({"theta_bound": "estimated"}, "theta_bound='estimated'"),
        ({"noise_scale": "estimated"}, "noise_scale='estimated'"),
        ({"rank": {"rule": "HeldOutRank", "share": 0.2}}, "rank=.*HeldOutRank"),
    ],
    ids=str,
)
def test_a_saved_tofu_with_an_option_that_is_gone_is_refused_by_its_name(option, says):
    policy = TofuPov(dim=6, rank=2, observe_prob=0.7)
    with pytest.raises(ArchiveError, match=f"{says}.* read it with the version .* that wrote it"):
        from_format_4(policy, **OLD | option)
    outer = TofuPov(dim=6, rank=2, observe_prob=0.7, burn_in_policy=policy)
    inner = {"policy": "TofuPov", "settings": policy.settings() | option}
    with pytest.raises(ArchiveError, match=says):
        from_format_4(outer, **OLD, burn_in_policy=inner)


def test_a_saved_tofu_without_such_options_loads_with_its_inner_policy():
    inner = TofuPov(dim=6, rank=1, observe_prob=0.7)
    policy = TofuPov(dim=6, rank=2, observe_prob=0.7, burn_in_policy=inner)
    tree = policy.to_tree()
    for each in (tree["settings"], tree["settings"]["burn_in_policy"]["settings"]):
        each.update(OLD)
    tree["state"]["burn_in_policy"]["settings"].update(OLD)
    assert policy_from_tree(upgraded(tree, 4, "it")).settings() == policy.settings()


def test_a_saved_latent_ucb_keeps_what_it_still_has_of_its_settings(caplog):
    settings = {"rank": {"rule": "FixedRank", "rank": 2}, "growth": 1.5, "fallback": True}
    settings |= {"seed": 4, "dim": None}
    tree = LatentUcb(seed=4).to_tree() | {"settings": settings, "state": {}}
    kept = policy_from_tree(upgraded(tree, 4, "it"))
    assert kept.settings() == LatentUcb(rank=2, growth=1.5, seed=4).settings()
    tree["settings"] |= {"subspace": "covariance"}
    with pytest.raises(ArchiveError, match="subspace='covariance'"):
        upgraded(tree, 4, "it")


def test_a_saved_tofu_whose_burn_in_was_a_latent_ucb_learns_its_open_decisions(caplog):
    inner = LatentUcb(dim=DIM)
    policy = TofuPov(dim=DIM, rank=2, observe_prob=0.7, burn_in_policy=inner)
    (table, rewards), *_ = rounds(1, seed=0)
    decision = policy.choose(table)
    tree = policy.to_tree()
    burner = tree["state"]["burn_in_policy"]["state"]
    burner["played"] = burner["plays"]["played"]
    (_, note), *_ = tree["open"]
    note["inner"] |= {"epoch": 3, "point": np.ones(2), "inner": note["inner"]}
    loaded = policy_from_tree(upgraded(tree, 4, "it"))
    loaded.learn(decision, float(rewards[decision.arm]))
    assert loaded._burner._plays.n_rows == 1


def test_a_decision_that_was_open_in_format_2_cannot_be_learned_by_its_id_alone():
    policy, decisions, _ = golden(FOLDERS[0], "tofu")
    with pytest.raises(UnknownDecisionError, match="pass the Decision instead of its id"):
        policy.learn(decisions[-1][0].id, 1.0)
    policy.learn(*decisions[-1])
