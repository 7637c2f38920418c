"""Types of the arguments of compiled functions."""

from numba.types import Array, boolean, float64

in_1 = Array(float64, 1, "C", readonly=True)
in_2 = Array(float64, 2, "C", readonly=True)
any_1 = Array(float64, 1, "A", readonly=True)
any_2 = Array(float64, 2, "A", readonly=True)
out_1 = float64[::1]
out_2 = float64[:, ::1]
flags_1 = boolean[::1]
