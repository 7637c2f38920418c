"""Compiled copies of tables with NaN where hidden."""

from numba.types import boolean, float64

from halfseen.kernels.compiling import compiled, in_2, out_2


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
