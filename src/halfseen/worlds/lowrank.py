"""Arms in a random low-dimensional subspace: the world of the paper's synthetic studies."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from halfseen import checks
from halfseen.core.subspace import incoherence
from halfseen.core.theory import Problem
from halfseen.errors import InvalidSettingError
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Facts, Round
from halfseen.worlds.masking import bernoulli_mask
from halfseen.worlds.registry import register_world

LATENT_LAWS = ("gaussian", "uniform")
_UNIFORM_BOUND = math.sqrt(3.0)  # a uniform law on ±√3 has variance 1


@register_world("low-rank")
@dataclass(frozen=True, slots=True, kw_only=True)
class LowRankWorld:
    """X = UΛZ with random U and loadings Λ, masked entry by entry; defaults are the main study's.

    Random numbers are drawn in the published order, so that the realization of a seed is the very
    instance that the published figures come from.

    Parameters
    ----------
    dim, rank, n_arms, horizon : int
    observe_prob : float
        Probability that an entry is seen.
    noise_scale : float
        Standard deviation of the Gaussian reward noise.
    loadings : (float, float)
        Λ's diagonal is uniform between these.
    latent : "gaussian" or "uniform"
        Law of Z's entries, of variance 1. The published studies have "gaussian", under which arms
        are unbounded; "uniform" (on ±√3) is bounded, as the theory assumes.

    Examples
    --------
    >>> realization = LowRankWorld(horizon=2).realize(seed=0)
    >>> [(round.slate.n_arms, round.slate.dim) for round in realization.rounds()]
    [(8, 30), (8, 30)]

    Notes
    -----
    Paper: eq:generative_model
    """

    dim: int = 30
    rank: int = 3
    n_arms: int = 8
    horizon: int = 400
    observe_prob: float = 0.3
    noise_scale: float = 0.05
    loadings: tuple[float, float] = (0.75, 1.25)
    latent: str = "gaussian"

    def __post_init__(self) -> None:
        checks.integer("dim", self.dim, 1)
        checks.integer("rank", self.rank, 1, self.dim)
        checks.integer("n_arms", self.n_arms, 1)
        checks.integer("horizon", self.horizon, 1)
        checks.probability("observe_prob", self.observe_prob)
        checks.real("noise_scale", self.noise_scale, 0.0)
        if not isinstance(self.loadings, tuple | list) or len(self.loadings) != 2:
            raise InvalidSettingError(f"loadings must be two numbers, got {self.loadings!r}")
        low, high = self.loadings
        checks.real("loadings[0]", low, 0.0, low_open=True)
        checks.real("loadings[1]", high, low)
        checks.one_of("latent", self.latent, LATENT_LAWS)

    def realize(self, seed: int) -> "LowRankRealization":
        """Return the realization of a seed."""
        return LowRankRealization(self, checks.integer("seed", seed, 0))


class LowRankRealization:
    """One subspace, one parameter and all rounds of a `LowRankWorld`.

    Attributes
    ----------
    basis : ndarray, shape (dim, rank)
        U, which no policy sees.
    loadings : ndarray, shape (rank,)
    theta : ndarray, shape (dim,)
        The parameter, of norm 1 and in the span of U.
    """

    def __init__(self, world: LowRankWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        random = np.random.default_rng(seed)
        # Draw order of the published instances: basis, loadings, parameter.
        self.basis: FloatArray = np.linalg.qr(random.standard_normal((world.dim, world.rank)))[0]
        self.loadings = random.uniform(*world.loadings, world.rank)
        direction = random.standard_normal(world.rank)
        self.theta: FloatArray = self.basis @ (direction / np.linalg.norm(direction))
        self._after_setup = random.bit_generator.state

    @property
    def facts(self) -> Facts:
        """What may be told about this realization."""
        world = self.world
        return Facts(
            seed=self.seed,
            dim=world.dim,
            n_arms=world.n_arms,
            horizon=world.horizon,
            observe_prob=world.observe_prob,
            noise_scale=world.noise_scale,
            rank=world.rank,
            basis=self.basis,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; per round latents, feature perturbation, masks, noise are drawn."""
        world, random = self.world, np.random.default_rng()
        random.bit_generator.state = self._after_setup
        shape = (world.n_arms, world.dim)
        lift = self.loadings[:, None] * self.basis.T
        for _ in range(world.horizon):
            latent = self._latents(random, (world.n_arms, world.rank))
            arms = latent @ lift
            random.standard_normal(shape)  # published instances draw a perturbation of size 0
            mask = bernoulli_mask(random, shape, world.observe_prob)
            noise = world.noise_scale * random.standard_normal()
            yield Round(Slate(arms, mask), arms @ self.theta, float(noise), arms)

    def problem(self) -> Problem:
        """Return B_X, λ̄, λ_m, μ, S, R of this realization; B_X is infinite for Gaussian latents."""
        world = self.world
        return Problem.from_loadings(
            dim=world.dim,
            loadings=self.loadings.tolist(),
            latent_bound=math.inf if world.latent == "gaussian" else _UNIFORM_BOUND,
            latent_variance=1.0,
            n_arms=world.n_arms,
            horizon=world.horizon,
            observe_prob=world.observe_prob,
            incoherence=incoherence(self.basis),
            theta_bound=1.0,
            noise_scale=world.noise_scale,
        )

    def _latents(self, random: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        if self.world.latent == "gaussian":
            return random.standard_normal(shape)
        return random.uniform(-_UNIFORM_BOUND, _UNIFORM_BOUND, shape)
