"""Compiled rounds of a simulation, where every reward is known beforehand: one call for many."""

import numpy as np
from numba import njit
from numba.types import Array, float64, int64

from halfseen._kernels import _in_1, _in_2, _out_1, _out_2, learn_point, play_table

_in_3 = Array(float64, 3, "C", readonly=True)


@njit(
    int64(
        _in_3, _in_2, float64, _in_2, _out_1, _in_1, _out_1, _out_1,
        _out_2, int64, float64, _out_2, int64, _out_1, int64[::1],
    ),
    cache=True,
)  # fmt: skip
def play_rounds(
    tables, rewards, largest, plan, root, radius, knowledge, point,
    block, start, hidden, kept, place, earned, chosen,
):  # fmt: skip
    """Choose and learn in one round after another; return how many, fewer if one is not quick.

    `radius` holds the parts of β as `Confidence` knows them, `knowledge` log det V and the number
    of samples. Arms that were played go to `kept` from row `place` on, unless that is negative.
    """
    n_rounds, n_arms, dim = tables.shape
    regularization, noise, bias, log_failure = radius[0], radius[1], radius[2], radius[3]
    parts, arm = np.empty((3, n_arms)), np.empty(dim)
    for n in range(n_rounds):
        log_ratio = 0.5 * knowledge[0] - log_failure
        size = regularization + (noise * np.sqrt(2.0 * log_ratio) if log_ratio > 0.0 else 0.0)
        if bias != 0.0:
            size += bias * np.sqrt(knowledge[1])
        best = play_table(
            tables[n], largest, plan, root, size, parts, arm, point,
            block, start + n * n_arms, hidden,
        )  # fmt: skip
        if best < 0:
            return n
        chosen[n], earned[n] = best, rewards[n, best]
        row = place + n if place >= 0 else place
        knowledge[0] += learn_point(root, point, earned[n], arm, kept, row)
        knowledge[1] += 1.0
    return n_rounds
