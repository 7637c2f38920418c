"""Named independent random streams from one integer.

Randomness enters by argument: code asks for a stream by name, and different names give
independent streams for every seed.
"""

import hashlib

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
    # Each name is prefixed by its length, so that different lists of names have different digests.
    text = b"".join(b"%d:%b" % (len(name.encode()), name.encode()) for name in names)
    digest = np.frombuffer(hashlib.sha256(text).digest(), dtype=np.uint32)
    key = tuple(int(word) for word in digest)
    return np.random.default_rng(
        np.random.SeedSequence(checks.integer("seed", seed, 0), spawn_key=key)
    )
