"""A run of TOFU taken apart: in each epoch the frozen basis, all features, choices and noise."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from halfseen import seeding
from halfseen.core import theory
from halfseen.core.latent import coordinates
from halfseen.core.moments import Moments
from halfseen.core.theory import Problem
from halfseen.policies.tofu import TofuPov
from halfseen.policies.tofu_epoch import EpochRecord
from halfseen.simulation.measures.tools import leading_basis
from halfseen.values import FloatArray, Slate
from halfseen.worlds.lowrank import LowRankRealization

_BLOCK = 20_000  # arms of a catalogue that are drawn at once


@dataclass(frozen=True, kw_only=True)
class FrozenEpoch:
    """What the lemmas speak of in one epoch, from the truth and the choices.

    Attributes
    ----------
    record : EpochRecord
        Of the policy: δ_e, b_e and the epoch's first round.
    latent : ndarray, shape (n_rounds, n_arms, rank)
        Features of all offered arms.
    means : ndarray, shape (n_rounds, n_arms)
    chosen : ndarray of int, shape (n_rounds,)
    target : ndarray, shape (rank,)
        ϑ* = Û'θ.
    ridge : float
    """

    record: EpochRecord
    latent: FloatArray
    means: FloatArray
    chosen: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    target: FloatArray
    ridge: float

    @property
    def n_rounds(self) -> int:
        """Number of rounds, each with one sample."""
        return len(self.chosen)

    @cached_property
    def played(self) -> FloatArray:
        """Features of the chosen arms, shape (n_rounds, rank)."""
        features: FloatArray = self.latent[np.arange(self.n_rounds), self.chosen]
        return features

    @cached_property
    def grams(self) -> FloatArray:
        """V before each round and after the last, shape (n_rounds + 1, rank, rank)."""
        return grams_before(self.played, self.ridge)

    @cached_property
    def potentials(self) -> FloatArray:
        """Γ before each round and after the last, shape (n_rounds + 1,)."""
        rank = self.played.shape[1]
        logs: FloatArray = np.linalg.slogdet(self.grams)[1] - rank * np.log(self.ridge)
        return logs

    @cached_property
    def widths(self) -> FloatArray:
        """q_t of the chosen arms, shape (n_rounds,)."""
        inverses = np.linalg.inv(self.grams[:-1])
        squares = np.einsum("ti,tij,tj->t", self.played, inverses, self.played)
        return np.asarray(np.sqrt(squares))

    @cached_property
    def biases(self) -> FloatArray:
        """ξ of all offered arms: mean reward less its surrogate, shape (n_rounds, n_arms)."""
        return self.means - self.latent @ self.target

    def radii(self, problem: Problem) -> FloatArray:
        """Return β_t before each round with the policy's δ_e and b_e, shape (n_rounds,)."""
        deviation = self.potentials[:-1] + theory.confidence_term(self.record.failure_prob)
        steady = np.sqrt(self.ridge) * problem.theta_bound
        growing = self.record.misspecification * np.sqrt(np.arange(self.n_rounds))
        return np.asarray(steady + problem.noise_scale * np.sqrt(deviation) + growing)


def grams_before(features: FloatArray, ridge: float) -> FloatArray:
    """Return λI + Σzz' before each sample and after the last, shape (n + 1, rank, rank)."""
    squares = features[:, :, None] * features[:, None, :]
    start = np.zeros((1, features.shape[1], features.shape[1]))
    sums = np.concatenate([start, np.cumsum(squares, axis=0)])
    return np.asarray(ridge * np.eye(features.shape[1]) + sums)


class EpochRun(NamedTuple):
    """A run: its epochs, and what each round lost, shape (horizon,)."""

    epochs: list[FrozenEpoch]
    losses: FloatArray


@dataclass(slots=True)
class _Pages:
    """What is noted down while an epoch is played."""

    basis: FloatArray
    latent: list[FloatArray] = field(default_factory=list)
    means: list[FloatArray] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)

    def bound(self, record: EpochRecord, theta: FloatArray, ridge: float) -> FrozenEpoch:
        return FrozenEpoch(
            record=record,
            latent=np.array(self.latent),
            means=np.array(self.means),
            chosen=np.array(self.chosen, dtype=np.int64),
            target=self.basis.T @ theta,
            ridge=ridge,
        )


def algorithm_1(
    truth: LowRankRealization, *, burn_in: int, failure_prob: float, impute_ridge: float
) -> TofuPov:
    """Return Algorithm 1 with all constants of the theorem, but a burn-in set by hand."""
    problem = truth.problem()
    return TofuPov.algorithm_1(
        dim=problem.dim,
        rank=problem.rank,
        observe_prob=problem.observe_prob,
        horizon=problem.horizon,
        burn_in=burn_in,
        impute_ridge=impute_ridge,
        arm_bound=problem.arm_bound,
        top_eigenvalue=problem.top_eigenvalue,
        last_eigenvalue=problem.last_eigenvalue,
        theta_bound=problem.theta_bound,
        noise_scale=problem.noise_scale,
        failure_prob=failure_prob,
    )


def catalogue_of(truth: LowRankRealization, n_arms: int) -> Iterator[Slate]:
    """Yield slates with `n_arms` arms in all, of the law of the offered ones but drawn apart."""
    random = seeding.stream(truth.seed, "measure", "catalogue")
    lift = truth.loadings[:, None] * truth.basis.T
    widest = np.sqrt(3.0)  # uniform latents of variance 1
    for start in range(0, n_arms, _BLOCK):
        shape = (min(_BLOCK, n_arms - start), truth.world.rank)
        arms = random.uniform(-widest, widest, shape) @ lift
        seen = random.random(arms.shape) < truth.world.observe_prob
        yield Slate(np.where(seen, arms, np.nan))


def play_epochs(
    policy: TofuPov,
    truth: LowRankRealization,
    *,
    ridge: float,
    impute_ridge: float,
    catalogue: int = 0,
) -> EpochRun:
    """Let a policy that replays nothing play, and note down what happens inside its epochs.

    Before, it absorbs a catalogue of that many arms. The basis of an epoch is worked out anew from
    the slates before it. Features are kept as they come, since all slates of a long run would not
    fit into memory.
    """
    starts = policy.schedule.starts(truth.world.horizon)
    moments, pages = Moments(truth.world.dim), list[_Pages]()
    for slate in catalogue_of(truth, catalogue):
        policy.absorb(slate)
        moments.absorb(slate)
    losses = np.zeros(truth.world.horizon)
    for index, (slate, means, noise, *_) in enumerate(truth.rounds()):
        if index + 1 in starts:
            pages.append(_Pages(leading_basis(moments, truth)))
        decision = policy.choose(slate)
        policy.learn(decision, float(means[decision.arm]) + noise)
        moments.absorb(slate)
        losses[index] = means.max() - means[decision.arm]
        if pages:
            pages[-1].latent.append(coordinates(pages[-1].basis, slate, impute_ridge))
            pages[-1].means.append(means)
            pages[-1].chosen.append(decision.arm)
    records = policy.epoch_log
    epochs = [
        page.bound(record, truth.theta, ridge) for page, record in zip(pages, records, strict=True)
    ]
    return EpochRun(epochs, losses)
