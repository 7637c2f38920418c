"""Policies saved by earlier versions load, and play on as they did."""

import json
from pathlib import Path

import numpy as np
import pytest

from golden.make_golden import FACTORIES, play_on
from halfseen import Decision, archive, load

FOLDER = Path(__file__).parents[1] / "golden" / f"format-{archive.FORMAT}"


@pytest.mark.parametrize("name", FACTORIES)
def test_a_golden_file_loads_and_plays_on_as_the_policy_that_was_saved(name):
    """Scores to rounding: the last bits depend on the processor."""
    facts = json.loads((FOLDER / f"{name}.json").read_text())
    decisions = [(Decision.from_dict(plain), reward) for plain, reward in facts["open"]]
    played, expected = play_on(load(FOLDER / f"{name}.npz"), decisions), facts["played"]
    assert [each["arm"] for each in played] == [each["arm"] for each in expected]
    for ours, theirs in zip(played, expected, strict=True):
        np.testing.assert_allclose(ours["scores"], theirs["scores"], rtol=1e-8, atol=1e-10)
