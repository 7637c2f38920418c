"""The random numbers of many rounds at once: the very ones that numpy gives call by call."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.lazy import LazyModule
from halfseen.values import FloatArray

PcgState = Mapping[str, Any]

_compiled = LazyModule("halfseen._world_kernels")


def row_filler(state: PcgState, n_normals: int) -> Callable[[FloatArray], None]:
    """Return what fills rows, one after another, with normals, uniforms, and a normal last.

    Parameters
    ----------
    state : mapping
        Where a generator on `PCG64` stands, as its `bit_generator.state` tells.
    n_normals : int

    Returns
    -------
    fill : callable
        Takes an array of shape (n_rows, n_normals + n_uniforms + 1) in C order.

    Examples
    --------
    >>> random, rows = np.random.default_rng(5), np.empty((1, 3))
    >>> row_filler(random.bit_generator.state, n_normals=1)(rows)
    >>> rows[0].tolist() == [random.standard_normal(), random.random(), random.standard_normal()]
    True
    """
    quick = _agreeing()
    if quick is None:
        random = generator_at(state)
        return lambda rows: fill_rows(random, rows, n_normals)
    words = _words(state)
    return lambda rows: quick(words, rows, n_normals)


def fill_rows(random: np.random.Generator, rows: FloatArray, n_normals: int) -> None:
    """Do the same by plain calls."""
    for row in rows:
        random.standard_normal(out=row[:n_normals])
        random.random(out=row[n_normals:-1])
        row[-1] = random.standard_normal()


def generator_at(state: PcgState) -> np.random.Generator:
    """Return a new generator that goes on from a state."""
    random = np.random.Generator(np.random.PCG64(0))
    random.bit_generator.state = state
    return random


def _words(state: PcgState) -> NDArray[np.uint64]:
    """Return PCG64's state and increment, low word first, shape (4,)."""
    pairs = (divmod(state["state"][name], 2**64)[::-1] for name in ("state", "inc"))
    return np.array([word for pair in pairs for word in pair], dtype=np.uint64)


@cache
def _agreeing() -> Callable[[NDArray[np.uint64], FloatArray, int], None] | None:
    """Return the compiled loop if it draws what numpy draws here, else None.

    numpy does not promise that its streams stay as they are in all versions.
    """
    try:
        quick = _compiled.fill_rows
    except ImportError:  # numba has moved its tables
        return None
    random = np.random.Generator(np.random.PCG64(0))
    expected, found = np.empty((64, 512)), np.empty((64, 512))
    quick(_words(random.bit_generator.state), found, 500)
    fill_rows(random, expected, 500)
    return quick if expected.tobytes() == found.tobytes() else None
