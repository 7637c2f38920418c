"""Arms, masks and tilted bases for which the paper's bounds are neither trivial nor unreachable."""

import math

import numpy as np
from numpy.linalg import norm

from halfseen.theory import Problem
from halfseen.values import Slate
from halfseen.worlds.base import Facts, Round


def at_most(n_trials, prob):
    """Return np + 5 sqrt(np(1-p)): the count that n trials, failing with p at most, may reach.

    The false-alarm rate is 3e-7 in the normal limit and more for few trials; each test states the
    exact binomial tail beyond this count.
    """
    return n_trials * prob + 5 * math.sqrt(n_trials * prob * (1 - prob))


def spread_basis(dim, rank):
    """Return Hadamard columns, whose rows are all equally long: incoherence 1. dim = 2^k."""
    signs = 1.0 - 2.0 * (np.bitwise_count(np.arange(dim)[:, None] & np.arange(rank)) % 2)
    return signs / math.sqrt(dim)


def round_latents(rng, n_arms, rank):
    """Return latents of length sqrt(rank) and covariance I: with them κ is 1, its least value."""
    points = rng.standard_normal((n_arms, rank))
    return points * (math.sqrt(rank) / norm(points, axis=1, keepdims=True))


def hidden_at_random(rng, arms, observe_prob):
    """Return a slate that shows every entry with probability p."""
    seen = rng.random(arms.shape, dtype=np.float32) < observe_prob
    return Slate(np.where(seen, arms, np.nan))


def tilted(basis, inside, outside, sine):
    """Return the basis with its direction U·inside turned towards `outside`, orthogonal to it.

    Its projector is at distance `sine` from the one of `basis`, exactly.
    """
    cosine = math.sqrt(1 - sine**2)
    turned = (cosine - 1) * basis @ inside + sine * outside
    return basis + np.outer(turned, inside)


def worst_tilt(basis, mask, sine):
    """Return the tilted basis that misleads this mask most, and the direction that it tilts.

    The direction v = Ux that the mask sees worst, v_Ω'v_Ω = g, is turned towards a w that is -v on
    the seen entries and v·g/(1-g) on the hidden ones, which is orthogonal to all of U.
    """
    values, vectors = np.linalg.eigh(basis[mask].T @ basis[mask])
    inside, share = vectors[:, 0], values[0]
    outside = basis @ inside * np.where(mask, -1.0, share / (1 - share))
    return tilted(basis, inside, outside / norm(outside), sine), inside


class RoundWorld:
    """Best-conditioned arms: a spread basis, `round_latents`, Bernoulli masks. A `Realization`."""

    def __init__(self, *, dim, rank, n_arms, horizon, observe_prob, noise_scale, seed):
        self.basis = spread_basis(dim, rank)
        self.n_arms, self.horizon = n_arms, horizon
        self.observe_prob, self.noise_scale = observe_prob, noise_scale
        self.seed = seed
        direction = np.random.default_rng([seed, 0]).standard_normal(rank)
        self.theta = self.basis @ (direction / norm(direction))

    def arms(self, rng, n_arms):
        return round_latents(rng, n_arms, self.basis.shape[1]) @ self.basis.T

    def catalogue(self, n_arms, block=20_000):
        """Yield slates of arms from the same law as the offered ones, `n_arms` in all."""
        rng = np.random.default_rng([self.seed, 1])
        for start in range(0, n_arms, block):
            arms = self.arms(rng, min(block, n_arms - start))
            yield hidden_at_random(rng, arms, self.observe_prob)

    @property
    def facts(self):
        return Facts(seed=self.seed, dim=len(self.basis), horizon=self.horizon)

    def rounds(self):
        rng = np.random.default_rng([self.seed, 2])
        for _ in range(self.horizon):
            arms = self.arms(rng, self.n_arms)
            slate = hidden_at_random(rng, arms, self.observe_prob)
            yield Round(slate, arms @ self.theta, self.noise_scale * rng.standard_normal(), arms)

    def problem(self):
        dim, rank = self.basis.shape
        return Problem(
            dim=dim,
            rank=rank,
            n_arms=self.n_arms,
            horizon=self.horizon,
            observe_prob=self.observe_prob,
            arm_bound=math.sqrt(rank),
            top_eigenvalue=1.0,
            last_eigenvalue=1.0,
            incoherence=1.0,
            theta_bound=1.0,
            noise_scale=self.noise_scale,
        )
