"""Policies saved by earlier versions load, and play on as they did."""

import json
from pathlib import Path

import numpy as np
import pytest

from golden.make_golden import FACTORIES, play_on
from halfseen import Decision, UnknownDecisionError, archive, load

FOLDERS = sorted((Path(__file__).parents[1] / "golden").glob("format-*"))


def golden(folder, name):
    facts = json.loads((folder / f"{name}.json").read_text())
    decisions = [(Decision.from_dict(plain), reward) for plain, reward in facts["open"]]
    return load(folder / f"{name}.halfseen"), decisions, facts["played"]


def test_every_format_since_2_has_a_folder():
    assert [folder.name for folder in FOLDERS] == [
        f"format-{version}" for version in range(2, archive.FORMAT + 1)
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("name", FACTORIES)
def test_a_golden_file_loads_and_plays_on_as_the_policy_that_was_saved(folder, name):
    """Scores to rounding: the last bits depend on the processor."""
    policy, decisions, expected = golden(folder, name)
    assert policy.n_open == len(decisions) == 3
    played = play_on(policy, decisions)
    assert [each["arm"] for each in played] == [each["arm"] for each in expected]
    for ours, theirs in zip(played, expected, strict=True):
        np.testing.assert_allclose(ours["scores"], theirs["scores"], rtol=1e-8, atol=1e-10)


def test_a_decision_that_was_open_in_format_2_cannot_be_learned_by_its_id_alone():
    policy, decisions, _ = golden(FOLDERS[0], "tofu")
    with pytest.raises(UnknownDecisionError, match="pass the Decision instead of its id"):
        policy.learn(decisions[-1][0].id, 1.0)
    policy.learn(*decisions[-1])
