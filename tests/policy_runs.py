"""Rounds to play, and ways to look at a policy from outside, shared by the tests of policies."""

from copy import deepcopy as twin_of

from halfseen import TofuPov
from halfseen.testing.policies import copy_of, offers_in, state_bytes, walk

__all__ = ["copy_of", "state_bytes", "twin_of", "walk"]  # of what is imported

# Few arms in most rounds; now and then so many that the block in which arms wait for one matrix
# product (1024 of them) fills up or is too small.
SIZES = (4, 1, 7, 3, 5, 2, 300, 6, 4, 1100, 3, 8, 1, 5, 700, 4)


def offers(n_rounds, *, dim=6, sizes=SIZES, seed=0):
    """Return rounds of arms of rank 2, each with at least 3 seen entries."""
    return offers_in(dim, n_rounds, sizes, seed)


def few_arms(n_rounds, **others):
    """Return rounds with 4 arms each."""
    return offers(n_rounds, sizes=(4,), **others)


def looks(decision):
    """Return what a decision shows, whichever policy made it."""
    shown = decision.to_dict()
    return {name: shown[name] for name in shown.keys() - {"policy", "inner"}}


def tofu(**settings):
    """Return a policy whose epochs start at rounds 6, 12, 24, 48, ..."""
    basics = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": 5, "noise_scale": 0.1}
    return TofuPov(**(basics | settings))
