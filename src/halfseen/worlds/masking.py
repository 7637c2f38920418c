"""Which entries of the offered arms are seen."""

import numpy as np

from halfseen.values import BoolArray


def bernoulli_mask(
    random: np.random.Generator, shape: tuple[int, ...], observe_prob: float
) -> BoolArray:
    """Return a mask that shows every entry with the same probability, independently.

    Notes
    -----
    Paper: eq:missing_model_bernoulli
    """
    return random.random(shape) < observe_prob
