"""Compiled copies of tables with NaN where hidden, and the identity of their rows."""

from numba.types import Array, boolean, float64, uint64, void

from halfseen.kernels.compiling import compiled, in_2, out_2

_bits_2 = Array(uint64, 2, "C", readonly=True)


@compiled(boolean(in_2, out_2, float64, float64))
def copy_checked(table, copy, smallest, largest):
    """Copy a table, with 0 for entries below `smallest`; return whether none is above `largest`."""
    source, target = table.reshape(-1), copy.reshape(-1)
    n_too_large = 0
    for i in range(source.shape[0]):
        size = abs(source[i])
        target[i] = 0.0 if 0.0 < size < smallest else source[i]
        n_too_large += size > largest  # False for NaN, as above
    return n_too_large == 0


@compiled(uint64(uint64))
def _mixed(word):
    """Return a pseudo-random number that depends on the word alone (SplitMix64)."""
    word = (word ^ (word >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    return word ^ (word >> uint64(31))


@compiled(void(in_2, _bits_2, uint64[::1]))
def row_keys(table, bits, keys):
    """Write a number for each row that is the same for rows with equal values and equal masks.

    Further columns that are hidden do not change it. `bits` are the entries of the table as
    unsigned integers. Two different rows get the same number with a probability of 2⁻⁶⁴.
    """
    step = uint64(0x9E3779B97F4A7C15)
    for i in range(table.shape[0]):
        key = step
        for j in range(table.shape[1]):
            x = table[i, j]
            if x == x:
                word = bits[i, j] if x != 0.0 else uint64(0)  # also for −0
                key = _mixed(key * uint64(0xD1342543DE82EF95) + word + step * uint64(j + 1))
        keys[i] = key
