"""A run of TOFU, epoch by epoch: the frozen basis, the features of all arms, and the choices."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from halfseen import seeding
from halfseen.core import theory
from halfseen.core.latent import coordinates
from halfseen.core.moments import Moments
from halfseen.core.theory import Problem
from halfseen.measures.tools import leading_basis
from halfseen.policies.tofu import TofuPov
from halfseen.policies.tofu_epoch import EpochRecord
from halfseen.policies.tofu_premises import PremiseWarning
from halfseen.values import Decision, FloatArray, Slate
from halfseen.worlds.base import Round
from halfseen.worlds.lowrank import LowRankRealization

_BLOCK = 20_000  # arms of a catalogue that are drawn at once


@dataclass(frozen=True)
class FrozenEpoch:
    """What the lemmas bound in one epoch, from the truth and the choices.

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


class Step(NamedTuple):
    """One round of a run, with the choice and the basis in force (None in the burn-in)."""

    number: int
    round: Round
    decision: Decision
    basis: FloatArray | None
    opens_epoch: bool


def algorithm_1(
    truth: LowRankRealization, *, burn_in: int, failure_prob: float, impute_ridge: float
) -> TofuPov:
    """Return Algorithm 1 with all constants of the theorem except for its burn-in."""
    problem = truth.problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PremiseWarning)  # the burn-in is shorter on purpose
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
    """Yield slates of `n_arms` arms in all, from the law of the offered ones but drawn apart."""
    random = seeding.stream(truth.seed, "measure", "catalogue")
    lift = truth.loadings[:, None] * truth.basis.T
    widest = np.sqrt(3.0)  # uniform latents of variance 1
    for start in range(0, n_arms, _BLOCK):
        shape = (min(_BLOCK, n_arms - start), truth.world.rank)
        arms = random.uniform(-widest, widest, shape) @ lift
        seen = random.random(arms.shape) < truth.world.observe_prob
        yield Slate(np.where(seen, arms, np.nan))


def steps_of_run(policy: TofuPov, truth: LowRankRealization, moments: Moments) -> Iterator[Step]:
    """Let a policy play, and yield every round with the basis that its epoch froze.

    The basis is computed from `moments`, which absorb every slate as the policy does.
    """
    starts, basis = policy.schedule.starts(truth.world.horizon), None
    for number, round in enumerate(truth.rounds(), start=1):
        if number in starts:
            basis = leading_basis(moments, truth)
        decision = policy.choose(round.slate)
        policy.learn(decision, round.reward(decision.arm))
        moments.absorb(round.slate)
        yield Step(number, round, decision, basis, number in starts)


def play_epochs(
    policy: TofuPov,
    truth: LowRankRealization,
    *,
    ridge: float,
    impute_ridge: float,
    catalogue: int = 0,
) -> EpochRun:
    """Let a policy that replays nothing play, and return what happened inside its epochs.

    It first absorbs a catalogue of that many arms. Only the features of slates are kept: all slates
    of a long run would not fit into memory.
    """
    moments = Moments(truth.world.dim)
    for slate in catalogue_of(truth, catalogue):
        policy.absorb(slate)
        moments.absorb(slate)
    losses = np.zeros(truth.world.horizon)
    rows: list[list[tuple[FloatArray, FloatArray, int]]] = []
    targets: list[FloatArray] = []
    for number, (slate, means, *_), decision, basis, opens_epoch in steps_of_run(
        policy, truth, moments
    ):
        losses[number - 1] = means.max() - means[decision.arm]
        if basis is not None:
            if opens_epoch:
                rows.append([])
                targets.append(basis.T @ truth.theta)
            rows[-1].append((coordinates(basis, slate, impute_ridge), means, decision.arm))
    epochs = []
    for record, target, noted in zip(policy.epoch_log, targets, rows, strict=True):
        latent, means, chosen = (np.array(column) for column in zip(*noted, strict=True))
        epochs.append(FrozenEpoch(record, latent, means, chosen, target, ridge))
    return EpochRun(epochs, losses)
