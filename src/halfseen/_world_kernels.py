"""A compiled loop that draws the random numbers of a numpy `Generator` on PCG64, bit by bit.

In a module of its own, loaded at first use. Compiled code may also ask numpy's generators for their
numbers, but one by one, at ten times the cost.
"""

import numpy as np
from llvmlite import ir
from numba import njit
from numba.extending import intrinsic, register_jitable
from numba.np.random._constants import (
    fi_double,
    ki_double,
    wi_double,
    ziggurat_nor_inv_r,
    ziggurat_nor_r,
)
from numba.types import Tuple, UniTuple, float64, int64, uint64, void

_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of PCG64
_WORD = ir.IntType(64)
_STATE = ir.IntType(128)
_WIDTHS = np.concatenate(
    [wi_double, -wi_double]
)  # by layer and sign: no branch that is a coin toss


@intrinsic
def _step(typing_context, low, high, add_low, add_high):
    """Return the next state of PCG64, as two words, and the 64 random bits that it gives."""

    def generate(context, builder, signature, arguments):
        def joined(low, high):
            high = builder.shl(builder.zext(high, _STATE), _STATE(64))
            return builder.or_(high, builder.zext(low, _STATE))

        state = builder.mul(joined(*arguments[:2]), _STATE(_MULTIPLIER))
        state = builder.add(state, joined(*arguments[2:]))
        low = builder.trunc(state, _WORD)
        high = builder.trunc(builder.lshr(state, _STATE(64)), _WORD)
        mixed, turn = builder.xor(low, high), builder.lshr(high, _WORD(58))
        rest = builder.and_(builder.sub(_WORD(64), turn), _WORD(63))
        bits = builder.or_(builder.lshr(mixed, turn), builder.shl(mixed, rest))
        return context.make_tuple(builder, signature.return_type, (low, high, bits))

    return UniTuple(uint64, 3)(uint64, uint64, uint64, uint64), generate


# Normal numbers come from numpy's ziggurat: 256 layers, the lowest with the tail.


@register_jitable
def _uniform(bits):
    return float64(int64(bits >> uint64(11))) * 2.0**-53


@register_jitable
def _candidate(bits):
    """Return the normal number that bits stand for, unless it lies beyond its layer's core."""
    return float64(int64(bits >> uint64(9) & uint64(2**52 - 1))) * _WIDTHS[bits & uint64(511)]


@register_jitable
def _is_plain(bits):
    return bits >> uint64(9) & uint64(2**52 - 1) < ki_double[bits & uint64(255)]


@njit(Tuple((uint64, uint64, float64))(uint64, uint64, uint64, uint64, uint64), cache=True)
def _edge_normal(low, high, add_low, add_high, bits):
    """Return the state after a normal number that is not plain, one in a hundred, and the number.

    In the wedge of a layer it may be refused; in the lowest layer it comes from the tail.
    """
    while not _is_plain(bits):
        layer, negative = bits & uint64(255), bits >> uint64(17) & uint64(1)
        x = _candidate(bits)
        low, high, bits = _step(low, high, add_low, add_high)
        if layer > uint64(0):
            above, below = fi_double[layer - uint64(1)], fi_double[layer]
            if (above - below) * _uniform(bits) + below < np.exp(-0.5 * x * x):
                return low, high, x
            low, high, bits = _step(low, high, add_low, add_high)
            continue
        while True:
            beyond = -ziggurat_nor_inv_r * np.log1p(-_uniform(bits))
            low, high, bits = _step(low, high, add_low, add_high)
            height = -np.log1p(-_uniform(bits))
            if height + height > beyond * beyond:
                x = ziggurat_nor_r + beyond
                return low, high, -x if negative else x
            low, high, bits = _step(low, high, add_low, add_high)
    return low, high, _candidate(bits)


@njit(void(uint64[::1], float64[:, ::1], int64), cache=True)
def fill_rows(words, rows, n_normals):
    """Fill rows with normals, then uniforms, and a normal last; `words` (4,) are PCG64's state."""
    low, high, add_low, add_high = words[0], words[1], words[2], words[3]
    last = rows.shape[1] - 1
    for n in range(rows.shape[0]):
        for start, stop in ((0, n_normals), (last, last + 1)):
            for i in range(start, stop):
                low, high, bits = _step(low, high, add_low, add_high)
                x = _candidate(bits)
                if not _is_plain(bits):
                    low, high, x = _edge_normal(low, high, add_low, add_high, bits)
                rows[n, i] = x
            for i in range(stop, last):
                low, high, bits = _step(low, high, add_low, add_high)
                rows[n, i] = _uniform(bits)
    words[0] = low
    words[1] = high
