"""Named independent random streams from one integer.

Randomness enters by argument: whoever needs some asks for a stream by name, and two names never
share bits, whatever the seed.
"""

import zlib

import numpy as np

from halfseen import checks


def stream(seed: int, *names: str) -> np.random.Generator:
    """Return the generator called `names` of `seed`.

    >>> stream(7, "policy").integers(100) == stream(7, "policy").integers(100)
    np.True_
    >>> a, b = stream(7, "policy").random(4), stream(7, "world").random(4)
    >>> bool((a == b).any())
    False
    """
    entropy = [checks.integer("seed", seed, 0), *(zlib.crc32(name.encode()) for name in names)]
    return np.random.default_rng(np.random.SeedSequence(entropy))
