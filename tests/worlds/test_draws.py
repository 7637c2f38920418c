"""Random numbers of many rounds at once: numpy's own, to the last bit."""

import numpy as np
import pytest

from halfseen.worlds import draws


def plain_rows(seed, n_rows, n_normals, n_uniforms):
    rng = np.random.default_rng(seed)
    return np.array(
        [
            [*rng.standard_normal(n_normals), *rng.random(n_uniforms), rng.standard_normal()]
            for _ in range(n_rows)
        ]
    )


def filled_rows(seed, n_rows, n_normals, n_uniforms):
    state = np.random.default_rng(seed).bit_generator.state
    rows = np.empty((n_rows, n_normals + n_uniforms + 1))
    draws.row_filler(state, n_normals)(rows)
    return rows


@pytest.fixture
def fresh():
    """Look again whether the compiled loop agrees, now and afterwards."""
    draws._agreeing.cache_clear()
    yield
    draws._agreeing.cache_clear()


def test_here_the_compiled_loop_draws():
    assert draws._agreeing() is not None


@pytest.mark.parametrize("seed", [0, 1, 2**63])
@pytest.mark.parametrize(
    ("n_rows", "n_normals", "n_uniforms"),
    [(1, 0, 0), (50, 0, 0), (3, 0, 7), (3, 7, 0), (1, 1, 1), (33, 264, 240), (7, 1000, 3)],
)
def test_rows_hold_what_plain_calls_give(seed, n_rows, n_normals, n_uniforms):
    shape = (n_rows, n_normals, n_uniforms)
    assert filled_rows(seed, *shape).tobytes() == plain_rows(seed, *shape).tobytes()


def test_numbers_far_in_the_tail_are_the_same_too():
    """Of a million normals, 260 are beyond the lowest layer and 12,000 at the edge of another."""
    rows = filled_rows(4, 1000, 1000, 10)
    assert (np.abs(rows) > 3.6541528853610088).sum() > 200
    assert rows.tobytes() == plain_rows(4, 1000, 1000, 10).tobytes()


def test_rows_filled_in_parts_go_on_where_the_last_ended():
    fill = draws.row_filler(np.random.default_rng(8).bit_generator.state, 5)
    rows = np.empty((10, 9))
    for part in (rows[:1], rows[1:4], rows[4:]):
        fill(part)
    assert rows.tobytes() == plain_rows(8, 10, 5, 3).tobytes()


def test_the_state_that_was_handed_over_is_left_alone():
    random = np.random.default_rng(8)
    state = random.bit_generator.state
    draws.row_filler(state, 5)(np.empty((10, 9)))
    assert state == random.bit_generator.state


class OtherNumbers:
    def fill_rows(self, words, rows, n_normals):
        rows[:] = 0.0


class NoTables:
    @property
    def fill_rows(self):
        raise ImportError


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("compiled", [OtherNumbers(), NoTables()], ids=["other", "none"])
def test_where_compiled_numbers_are_not_numpys_plain_calls_are_made(monkeypatch, compiled):
    monkeypatch.setattr(draws, "_compiled", compiled)
    assert draws._agreeing() is None
    assert filled_rows(6, 4, 5, 3).tobytes() == plain_rows(6, 4, 5, 3).tobytes()
