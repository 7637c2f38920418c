"""What a study needs is built once: a world for all its cells, a policy for each cell."""

from collections import Counter

import pytest

from halfseen import LowRankWorld
from halfseen.policies.uniform import Uniform
from halfseen.simulation.store import Store
from halfseen.studies.reading import study_from
from halfseen.studies.running import run_study

STUDY = {
    "name": "counted",
    "seeds": 3,
    "points": 5,
    "observe_prob": [0.5],
    "methods": ["uniform"],
    "world": {"kind": "low-rank", "dim": 6, "rank": 1, "horizon": 20},
}


@pytest.fixture
def built(monkeypatch):
    """Count how often worlds and policies are built, and worlds realized."""
    counts = Counter()

    def count(owner, name, what):
        original = getattr(owner, name)

        def counting(self, *arguments, **keywords):
            counts[what] += 1
            return original(self, *arguments, **keywords)

        monkeypatch.setattr(owner, name, counting)

    count(LowRankWorld, "validate", "world")
    count(LowRankWorld, "realize", "realization")
    count(Uniform, "setup", "policy")
    return counts


@pytest.mark.parametrize("probs", [[0.5], []], ids=["swept", "the world's own"])
def test_for_one_cell_a_world_and_a_policy_are_built_once(built, tmp_path, probs):
    study = study_from({**STUDY, "observe_prob": probs})
    tables = run_study(study, Store(tmp_path), jobs=1)
    assert tables.failures == []
    assert built == {"world": 1, "realization": 1, "policy": 1}


def test_a_check_before_the_run_builds_no_world_again(built, tmp_path):
    study = study_from(STUDY)
    study.check()
    run_study(study, Store(tmp_path), jobs=1)
    assert built == {"world": 1, "realization": 2, "policy": 2}


def test_many_cells_share_the_worlds_of_their_study(built, tmp_path):
    study = study_from({**STUDY, "seeds": "0:4", "observe_prob": [0.5, 0.2]})
    study.narrowed(methods=["uniform"]).check()
    run_study(study, Store(tmp_path), jobs=1)
    assert built["world"] == 2
    assert built["policy"] == 2 + 8
    run_study(study, Store(tmp_path), jobs=1)  # all is stored
    assert built["world"] == 2
    assert built["policy"] == 2 + 8
