"""Arms in a random low-dimensional subspace: the world of the paper's synthetic studies."""

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from halfseen import checks, params, seeding
from halfseen.errors import InvalidSettingError
from halfseen.linear.eigen import incoherence
from halfseen.theory import Problem
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.masking import Bernoulli, MaskLaw, mask_law

_UNIFORM_BOUND = math.sqrt(3.0)  # a uniform law on ±√3 has variance 1


def _loadings(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidSettingError(f"must be two numbers, got {value!r}", name=name)
    low = checks.real(f"{name}[0]", value[0], 0.0, low_open=True)
    return low, checks.real(f"{name}[1]", value[1], low)


@register_world("low-rank")
class LowRankWorld(World):
    """X = UΛZ with random U and loadings Λ, masked entry by entry; defaults are the main study's.

    Random numbers are drawn in the published order, so that the realization of a seed is the
    instance of the published figures. Settings that the published studies do not have use streams
    of their own, and leave the other random numbers as they are.

    Parameters
    ----------
    dim, rank, n_arms, horizon : int
    observe_prob : float
        Probability that an entry is seen; where the mask law has several, their average.
    noise_scale : float
        Standard deviation of the Gaussian reward noise.
    loadings : (float, float)
        Λ's diagonal is uniform between these.
    decay : float
        Multiplies the variance along the j-th column of U by j^−decay: at 0 the spectrum is flat
        except for the loadings, at 1 it falls like 1/j. Full-rank arms (`rank = dim`) with a decay
        look low-rank.
    coherence : float
        In [0, 1): length of the first feature's row of U. At 0 it is as drawn. Near 1 one direction
        is almost this feature alone, μ is near sqrt(dim/rank), and an arm that hides the feature
        can hardly be imputed.
    theta : "random" or "tail"
        Where the parameter lies: anywhere in the span of U, or in that of the last half of its
        columns (rounded up), where arms vary least if there is a decay.
    feature_scale : float
        Multiplies all arms and divides the parameter: mean rewards stay the same.
    latent : "gaussian", "uniform" or "student"
        Law of Z's entries, of variance 1. The published studies have "gaussian", under which arms
        are unbounded; "uniform" (on ±√3) is bounded, as the theory assumes; "student" (3 degrees
        of freedom) has heavy tails.
    perturbation : float
        Standard deviation of Gaussian noise on every feature (at `feature_scale` 1), so that arms
        are only nearly low-rank. Seen entries and mean rewards are those of the perturbed arm.
    change_round : int, optional
        From this round on (counted from 1) arms lie in another subspace, orthogonal to the first
        and with the same loadings; needs 2·rank ≤ dim. The parameter has norm 1 in either.
    masks : MaskLaw, str or mapping
        Which entries are seen: a `MaskLaw`, its name, or a mapping with its name as "law" and its
        settings.
    n_displayed : int
        Further arms that each round displays and that cannot be played, as on the page of a
        catalogue: policies absorb them after the round.
    context_dim : int, optional
        Every round also has a context with this many entries, of rank at most 2 and seen with
        `observe_prob`, on which nothing depends.

    Examples
    --------
    >>> realization = LowRankWorld(horizon=2).realize(seed=0)
    >>> [(round.slate.n_arms, round.slate.dim) for round in realization.rounds()]
    [(8, 30), (8, 30)]

    Notes
    -----
    Paper: eq:generative_model
    """

    dim: int = params.size(default=30)
    rank: int = params.integer(default=3, low=1)
    n_arms: int = params.size(default=8)
    horizon: int = params.horizon(default=400)
    observe_prob: float = params.probability(default=0.3)
    noise_scale: float = params.real(default=0.05, low=0.0)
    loadings: tuple[float, float] = params.custom(
        default=(0.75, 1.25), check=_loadings, kind="(float, float)", plain=list
    )
    decay: float = params.real(default=0.0, low=0.0)
    coherence: float = params.real(default=0.0, low=0.0, high=1.0, high_open=True)
    theta: str = params.choice(default="random", words=("random", "tail"))
    feature_scale: float = params.real(default=1.0, low=1e-50, high=1e50)
    latent: str = params.choice(default="gaussian", words=("gaussian", "uniform", "student"))
    perturbation: float = params.real(default=0.0, low=0.0)
    change_round: int | None = params.integer(default=None, low=2)
    masks: MaskLaw = params.custom(
        default=Bernoulli(),
        check=mask_law,
        kind="MaskLaw, str or mapping",
        plain=lambda law: law.to_dict(),
    )
    n_displayed: int = params.integer(default=0, low=0)
    context_dim: int | None = params.size(default=None)

    @property
    def n_shown(self) -> int:
        """Arms per round from which the representation learns: K of the paper's bounds."""
        return self.n_arms + self.n_displayed

    def setup(self) -> None:
        """Raise InvalidSettingError if rank or masks do not fit the dimension."""
        checks.integer("rank", self.rank, 1, self.dim)
        self.masks.stated_prob(self.observe_prob, self.dim)  # raises if they do not fit together
        if self.coherence and self.rank == self.dim:
            raise InvalidSettingError(
                f"must be below dim for a coherence, got {self.rank}", name="rank"
            )
        if self.change_round is not None and 2 * self.rank > self.dim:
            raise InvalidSettingError(
                f"must be in [1, {self.dim // 2}], half of dim, for a change of subspace, "
                f"got {self.rank}: lower it or leave out change_round",
                name="rank",
            )

    def realize(self, seed: int) -> "LowRankRealization":
        """Return the realization of a seed."""
        return LowRankRealization(self, checks.integer("seed", seed, 0))


class LowRankRealization:
    """One subspace, one parameter and all rounds of a `LowRankWorld`.

    Attributes
    ----------
    basis : ndarray, shape (dim, rank)
        U, which no policy sees.
    later_basis : ndarray, shape (dim, rank), or None
        U after the change, orthogonal to `basis`.
    loadings : ndarray, shape (rank,)
        Λ's diagonal, with the decay of the spectrum and the scale of the features in it.
    theta : ndarray, shape (dim,)
        The parameter, of norm 1 (over the scale of the features) and in the span of U; with a
        change, the sum of one such for each subspace.
    """

    def __init__(self, world: LowRankWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        random = np.random.default_rng(seed)
        # Draw order of the published instances: basis, loadings, parameter.
        self.basis: FloatArray = np.linalg.qr(random.standard_normal((world.dim, world.rank)))[0]
        if world.coherence:
            self.basis = _with_first_row(self.basis, world.coherence)
        drawn = random.uniform(*world.loadings, world.rank)
        falling = np.arange(1.0, world.rank + 1.0) ** (-world.decay / 2)
        self.loadings: FloatArray = world.feature_scale * (drawn * falling)
        self.theta: FloatArray = self.basis @ self._direction(random)
        self._after_setup = random.bit_generator.state
        self.later_basis: FloatArray | None = None
        if world.change_round is not None:
            change = seeding.stream(seed, "world", "change")
            both = np.hstack([self.basis, change.standard_normal(self.basis.shape)])
            self.later_basis = np.linalg.qr(both)[0][:, world.rank :]
            self.theta = self.theta + self.later_basis @ self._direction(change)

    def _direction(self, random: np.random.Generator) -> FloatArray:
        """Draw the parameter's coordinates in a basis, shape (rank,)."""
        direction = random.standard_normal(self.world.rank)
        if self.world.theta == "tail":
            direction[: self.world.rank // 2] = 0.0
        length = float(np.linalg.norm(direction)) * self.world.feature_scale
        return direction / length

    @property
    def facts(self) -> Facts:
        """Facts about this realization."""
        world = self.world
        return world.facts(
            self.seed,
            observe_prob=world.masks.stated_prob(world.observe_prob, world.dim),
            basis=self.basis if self.later_basis is None else None,
            latent_variances=self.loadings**2,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; drawn per round, in this order: latents, perturbation, masks, noise."""
        world, random = self.world, np.random.default_rng()
        random.bit_generator.state = self._after_setup
        tails = seeding.stream(self.seed, "world", "tails")
        contexts = self._contexts()
        for number in range(1, world.horizon + 1):
            arms = self._arms(random, tails, world.n_arms, number)
            mask = world.masks.drawn(random.random(arms.shape), arms, world.observe_prob, number)
            noise = world.noise_scale * random.standard_normal()
            slate = Slate(np.where(mask, arms, np.nan), context=next(contexts))
            yield Round(slate, arms @ self.theta, float(noise), arms)

    def displayed(self) -> Iterator[Round | None]:
        """Yield for each round the further arms that it displays, None if it displays none.

        They have random numbers of their own.
        """
        world = self.world
        random, tails = (seeding.stream(self.seed, "world", "displayed", e) for e in ("", "tails"))
        for number in range(1, world.horizon + 1):
            if not world.n_displayed:
                yield None
                continue
            arms = self._arms(random, tails, world.n_displayed, number)
            mask = world.masks.drawn(random.random(arms.shape), arms, world.observe_prob, number)
            yield Round(Slate(np.where(mask, arms, np.nan)), arms @ self.theta, 0.0, arms)

    def _contexts(self) -> Iterator[FloatArray | None]:
        """Yield half-seen contexts of low rank, or None if the world has none."""
        dim = self.world.context_dim
        if dim is None:
            yield from repeat(None)
            return
        parameters = seeding.stream(self.seed, "world", "context parameters")
        loadings = drawn_loadings(parameters, dim, min(2, dim))
        random = seeding.stream(self.seed, "world", "contexts")
        while True:
            rows = random.standard_normal((1, min(2, dim))) @ loadings.T
            yield half_seen(random, rows, self.world.observe_prob)[0]

    def _arms(
        self, random: np.random.Generator, tails: np.random.Generator, n_arms: int, number: int
    ) -> FloatArray:
        """Draw the arms of a round, shape (n_arms, dim)."""
        world, basis = self.world, self.basis
        if world.change_round is not None and number >= world.change_round:
            assert self.later_basis is not None
            basis = self.later_basis
        arms = self._latents(random, tails, n_arms) @ (self.loadings[:, None] * basis.T)
        # Published instances draw a perturbation even if its size is 0.
        perturbation = random.standard_normal(arms.shape)
        if world.perturbation:
            arms += world.feature_scale * world.perturbation * perturbation
        return arms

    def _latents(
        self, random: np.random.Generator, tails: np.random.Generator, n_arms: int
    ) -> FloatArray:
        """Draw latents, shape (n_arms, rank)."""
        shape, law = (n_arms, self.world.rank), self.world.latent
        if law == "uniform":
            return random.uniform(-_UNIFORM_BOUND, _UNIFORM_BOUND, shape)
        latents = random.standard_normal(shape)
        if law == "student":
            # Student's law with 3 degrees of freedom is √3 Z / √(2G), with G of shape 3/2, and has
            # variance 3. Z are the published normals, so that masks and noise stay the same.
            latents /= np.sqrt(2 * tails.standard_gamma(1.5, shape))
        return latents

    def problem(self) -> Problem:
        """Return B_X, λ̄, λ_m, μ, S, R of this realization; B_X is infinite for unbounded latents.

        Raises
        ------
        InvalidSettingError
            The theory does not apply: arms are perturbed, their subspace changes, or masks are not
            Bernoulli.
        """
        world = self.world
        for name, plain in (("perturbation", 0), ("change_round", None), ("masks", Bernoulli())):
            if getattr(world, name) != plain:
                raise InvalidSettingError(
                    f"{name} must be {plain!r} for the constants of the theory, "
                    f"got {getattr(world, name)!r}"
                )
        latent_bound = _UNIFORM_BOUND if world.latent == "uniform" else math.inf
        return Problem(
            dim=world.dim,
            rank=world.rank,
            n_arms=world.n_shown,
            horizon=world.horizon,
            observe_prob=world.observe_prob,
            arm_bound=float(self.loadings.max()) * math.sqrt(world.rank) * latent_bound,
            top_eigenvalue=float(self.loadings.max()) ** 2,
            last_eigenvalue=float(self.loadings.min()) ** 2,
            incoherence=incoherence(self.basis),
            theta_bound=1.0 / world.feature_scale,
            noise_scale=world.noise_scale,
        )


def _with_first_row(basis: FloatArray, length: float) -> FloatArray:
    """Return a basis whose first row has a length, all of it in the first column."""
    rest = basis.copy()
    rest[0] = 0.0
    rest = np.linalg.qr(rest)[0]
    rest[:, 0] *= math.sqrt(1.0 - length**2)
    rest[0] = 0.0
    rest[0, 0] = length
    return rest


def drawn_loadings(random: np.random.Generator, dim: int, rank: int) -> FloatArray:
    """Draw loadings L, shape (dim, rank): rows Lz with z ~ N(0, I) have entries of variance ~ 1."""
    return random.standard_normal((dim, rank)) / math.sqrt(rank)


def half_seen(random: np.random.Generator, rows: FloatArray, observe_prob: float) -> FloatArray:
    """Return rows in which each entry is hidden, NaN, unless it is seen by chance."""
    return np.where(random.random(rows.shape) < observe_prob, rows, np.nan)
