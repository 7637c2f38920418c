"""Files that are damaged or forged at random."""

import os

import pytest

from robustness import files

MANY = 20 if os.environ.get("HALFSEEN_SOAK") else 1


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_archive_is_refused_or_plays_finite_scores(seed):
    tried, failures = files.run(250 * MANY, seed)
    assert tried == 250 * MANY
    assert failures == []


def test_what_is_not_changed_is_not_refused():
    """The control: what is refused above is refused because of its change."""
    for content in files.saved().values():
        again = files.zipped(files.entries_of(content))
        assert files.plays(files.loaded(again))
