"""Measures of whole runs: the regression of each epoch, and what freezing the subspace is for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from halfseen import seeding, theory
from halfseen.paper.measures_subspace import (
    FAILURE_PROB,
    IMPUTE_RIDGE,
    Radii,
    bounded_low_rank,
    log_spaced,
)
from halfseen.theory import Problem
from halfseen.tofu.epoch import EpochRecord
from halfseen.tofu.imputation import coordinates, fill
from halfseen.tofu.policy import TofuPov
from halfseen.values import Decision, FloatArray, Slate
from halfseen.worlds.base import Realization, Round
from halfseen.worlds.lowrank import LowRankRealization

# A run of Algorithm 1, epoch by epoch


_BLOCK = 20_000  # arms of a catalogue that are drawn at once

_FARTHEST = 10**12

_SIGN_STEPS = 20


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
        rank = self.played.shape[1]
        squares = self.played[:, :, None] * self.played[:, None, :]
        sums = np.concatenate([np.zeros((1, rank, rank)), np.cumsum(squares, axis=0)])
        return np.asarray(self.ridge * np.eye(rank) + sums)

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
        record = self.record
        known = (problem.noise_scale, record.failure_prob, record.misspecification)
        radii = Radii(self.ridge, problem.theta_bound, *known)
        return radii.at(self.potentials[:-1], np.arange(self.n_rounds))


class EpochRun(NamedTuple):
    """A run: its epochs, and what each round lost, shape (horizon,)."""

    epochs: list[FrozenEpoch]
    losses: FloatArray


def algorithm_1(truth: LowRankRealization, *, burn_in: int) -> TofuPov:
    """Return Algorithm 1 with all constants of the theorem except for its burn-in."""
    problem = truth.problem()
    return TofuPov.algorithm_1(
        dim=problem.dim,
        rank=problem.rank,
        observe_prob=problem.observe_prob,
        horizon=problem.horizon,
        burn_in=burn_in,
        impute_ridge=IMPUTE_RIDGE,
        arm_bound=problem.arm_bound,
        top_eigenvalue=problem.top_eigenvalue,
        last_eigenvalue=problem.last_eigenvalue,
        theta_bound=problem.theta_bound,
        noise_scale=problem.noise_scale,
        failure_prob=FAILURE_PROB,
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


def rounds_of_run(policy: TofuPov, truth: LowRankRealization) -> Iterator[tuple[Round, Decision]]:
    """Let a policy play, and yield every round with the choice."""
    for round in truth.rounds():
        decision = policy.choose(round.slate)
        policy.learn(decision, round.reward(decision.arm))
        yield round, decision


def play_epochs(
    policy: TofuPov, truth: LowRankRealization, *, ridge: float, catalogue: int = 0
) -> EpochRun:
    """Let a policy that replays nothing play, and return what happened inside its epochs.

    It first absorbs a catalogue of that many arms. Only the features of slates are kept: all slates
    of a long run would not fit into memory.
    """
    for slate in catalogue_of(truth, catalogue):
        policy.absorb(slate)
    losses: list[float] = []
    rows: list[list[tuple[FloatArray, FloatArray, int]]] = []
    targets: list[FloatArray] = []
    for (slate, means, *_), decision in rounds_of_run(policy, truth):
        losses.append(means.max() - means[decision.arm])
        if policy.basis is not None:
            if decision.epoch == len(rows):
                rows.append([])
                targets.append(policy.basis.T @ truth.theta)
            rows[-1].append((coordinates(policy.basis, slate, IMPUTE_RIDGE), means, decision.arm))
    epochs = []
    for record, target, noted in zip(policy.epoch_log, targets, rows, strict=True):
        latent, means, chosen = (np.array(column) for column in zip(*noted, strict=True))
        epochs.append(FrozenEpoch(record, latent, means, chosen, target, ridge))
    return EpochRun(epochs, np.array(losses))


def algorithm_1_run(
    realization: Realization,
    *,
    burn_in: int = 249,
    catalogue: int = 0,
    points: int = 15,
) -> dict[str, list[float]]:
    """Return what the lemmas of one epoch and the theorem bound, on a run of Algorithm 1.

    Lists over the samples of the longest epoch (`n_samples`): misspecification, see `bias_of`. Over
    the rounds of the run (`round`): regret and its bounds. Over horizons far beyond
    (`far_horizon`): the theorem and its parts.

    Parameters
    ----------
    realization : LowRankRealization
        With bounded arms.
    burn_in : int
        t_b; the theory's is longer than any run.
    catalogue : int
        Arms absorbed before the first round. Without them ε is vacuous in a run of this length.
    points : int
        Positions of each list, evenly spaced in their logarithm.
    """
    truth = bounded_low_rank(realization)
    problem = truth.problem()
    policy, ridge = algorithm_1(truth, burn_in=burn_in), theory.theorem_ridge(problem)
    run = play_epochs(policy, truth, ridge=ridge, catalogue=catalogue)
    longest = max(run.epochs, key=lambda epoch: epoch.n_rounds)
    samples = log_spaced(longest.n_rounds, points)
    return {
        "n_samples": [float(n) for n in samples],
        **bias_of(longest, samples),
        **_regret_of(run, problem, points),
        **_far_horizons(problem, points),
    }


def bias_of(epoch: FrozenEpoch, samples: list[int]) -> dict[str, list[float]]:
    """Return ‖Σzξ‖ in V⁻¹ after n samples, and the naive and the contracted bound on it.

    b is the largest bias of any offered arm of the epoch: the smallest for which the lemma's
    premise holds. `bias_term` has the run's own ξ, `worst_bias_term` the worst ξ = ±b found for the
    same features.
    """
    b = float(np.abs(epoch.biases).max())
    own = epoch.biases[np.arange(epoch.n_rounds), epoch.chosen]
    found: dict[str, list[float]] = {
        "bias_term": [],
        "worst_bias_term": [],
        "naive_bound": [],
        "contracted_bound": [],
    }
    for n in samples:
        features, inverse = epoch.played[:n], np.linalg.inv(epoch.grams[n])
        potential = float(epoch.potentials[n])
        found["bias_term"].append(_pushed(features, inverse, own[:n]))
        found["worst_bias_term"].append(b * _worst_push(features, inverse))
        found["naive_bound"].append(
            theory.naive_bias_bound(misspecification=b, n_samples=n, potential=potential)
        )
        found["contracted_bound"].append(
            theory.contracted_bias_bound(misspecification=b, n_samples=n)
        )
    return found


def _pushed(features: FloatArray, inverse: FloatArray, errors: FloatArray) -> float:
    total = features.T @ errors
    return float(np.sqrt(total @ inverse @ total))


def _worst_push(features: FloatArray, inverse: FloatArray) -> float:
    """Return the largest ‖Σ±z‖ in V⁻¹ that repeated updates of the signs find."""
    signs = np.ones(len(features))
    for _ in range(_SIGN_STEPS):
        signs = np.where(features @ (inverse @ (features.T @ signs)) >= 0, 1.0, -1.0)
    return _pushed(features, inverse, signs)


def _regret_of(run: EpochRun, problem: Problem, points: int) -> dict[str, list[float]]:
    """Return the regret so far, and its bounds by the lemmas, the theorem and the trivial argument.

    `lemma_bound` sums 2βq + 2b of every round, or 2·S·B_X where that is less; `theorem_bound` is
    the theorem's for a horizon of that many rounds.
    """
    most = 2 * problem.theta_bound * problem.arm_bound
    instant = np.full(len(run.losses), most)
    for epoch in run.epochs:
        first = epoch.record.round - 1
        promised = 2 * epoch.radii(problem) * epoch.widths + 2 * epoch.record.misspecification
        instant[first : first + epoch.n_rounds] = np.minimum(promised, most)
    regret, bound = np.cumsum(run.losses), np.cumsum(instant)
    rounds = log_spaced(len(regret), points)
    return {
        "round": [float(round) for round in rounds],
        "regret": [float(regret[round - 1]) for round in rounds],
        "lemma_bound": [float(bound[round - 1]) for round in rounds],
        "theorem_bound": [
            theory.main_regret_bound(
                replace(problem, horizon=round), failure_prob=FAILURE_PROB
            ).total
            for round in rounds
        ],
        "trivial_bound": [most * round for round in rounds],
    }


def _far_horizons(problem: Problem, points: int) -> dict[str, list[float]]:
    horizons = log_spaced(_FARTHEST, 2 * points)
    far = [replace(problem, horizon=horizon) for horizon in horizons]
    bounds = [theory.main_regret_bound(there, failure_prob=FAILURE_PROB) for there in far]
    naive = [theory.naive_regret_bound(there, failure_prob=FAILURE_PROB) for there in far]
    return {
        "far_horizon": [float(horizon) for horizon in horizons],
        "far_theorem": [bound.total for bound in bounds],
        "far_startup": [bound.startup for bound in bounds],
        "far_learning": [bound.ridge + bound.noise for bound in bounds],
        "far_representation": [bound.representation for bound in bounds],
        "far_naive_factor": [
            bound.representation / contracted.representation
            for bound, contracted in zip(naive, bounds, strict=True)
        ],
        "far_trivial": [theory.trivial_regret_bound(there) for there in far],
    }


# Freezing against re-estimating in every round


_RIDGE, _IMPUTE_RIDGE = 1.0, 1e-5  # λ and ρ of both runs
_EVERY_ROUND = 1 + 1e-9  # growth of the schedule: the next epoch starts in the next round


class RegressionSamples(NamedTuple):
    """The samples of one regression, in order.

    Attributes
    ----------
    arms : ndarray, shape (n, dim)
        x_s, filled in with what was known when it was played.
    noise : ndarray, shape (n,)
        η_s.
    bases : ndarray, shape (n, dim, rank)
        The basis in force when each was played.
    """

    arms: FloatArray
    noise: FloatArray
    bases: FloatArray


def freezing(realization: Realization, *, burn_in: int = 30) -> dict[str, list[float]]:
    """Return the terms that break the usual proofs, re-estimating every round and frozen.

    One run estimates the subspace in every round and projects all of its past with it; the other
    freezes it in doubling epochs, each with samples of its own. The realization must have bounded
    arms.

    There is one position per step from a round to the next of the same regression, from the first
    epoch on; `round` is the second of the two. Names begin with `reestimated_` or `frozen_` and
    are explained in `steps_of`.
    """
    truth = bounded_low_rank(realization)
    found: dict[str, list[float]] = {}
    for kind, growth, replay in (("reestimated", _EVERY_ROUND, "full"), ("frozen", 2.0, "none")):
        policy = TofuPov(
            dim=truth.world.dim,
            rank=truth.world.rank,
            observe_prob=truth.world.observe_prob,
            horizon=truth.world.horizon,
            noise_scale=truth.world.noise_scale,
            growth=growth,
            replay=replay,
            burn_in=burn_in,
            ridge=_RIDGE,
            impute_ridge=_IMPUTE_RIDGE,
        )
        for first, samples in _histories(policy, truth, replay == "full"):
            last = first + len(samples.noise)
            found.setdefault(f"{kind}_round", []).extend(map(float, range(first + 1, last)))
            for name, values in steps_of(samples, _RIDGE).items():
                found.setdefault(f"{kind}_{name}", []).extend(values.tolist())
    return found


def _histories(
    policy: TofuPov, truth: LowRankRealization, one_history: bool
) -> list[tuple[int, RegressionSamples]]:
    """Play and return the samples of every regression, each with the round of its first one."""
    noted: list[tuple[int, list[tuple[FloatArray, float, FloatArray]]]] = []
    epoch = -1
    for round, decision in rounds_of_run(policy, truth):
        if policy.basis is None:
            continue
        if decision.epoch > epoch and not (noted and one_history):
            noted.append((decision.round, []))
        epoch = decision.epoch
        chosen = Slate(decision.values[None], decision.mask[None])
        arm = fill(policy.basis, chosen, _IMPUTE_RIDGE)[0]
        noted[-1][1].append((arm, round.noise_of(decision.arm), policy.basis))
    return [
        (first, RegressionSamples(*(np.array(column) for column in zip(*rows, strict=True))))
        for first, rows in noted
    ]


def steps_of(samples: RegressionSamples, ridge: float) -> dict[str, FloatArray]:
    """Return what re-estimating does to old noise and to the potential, step by step.

    With P_t the projection in force and S_t = P_t Σ_{s≤t} x_s η_s, a step adds the martingale part
    P_{t+1} x_{t+1} η_{t+1} and the retrospective part (P_{t+1} - P_t) Σ_{s≤t} x_s η_s. The design
    is A_t = P_t (λI + Σ_{s<t} x_s x_s') P_t.

    Returned arrays have shape (n - 1,): `drift` is the length of the sum of all retrospective
    parts, relative to S; `squared_widths` the sum of min(1, ‖x_s‖²) in the inverse designs up to
    round t, and `potential_sum`, 2 log(det A_{t+1} / λ^m), bounds it if the design only grows.
    """
    summed = np.cumsum(samples.arms * samples.noise[:, None], axis=0)
    now, after = samples.bases[:-1], samples.bases[1:]
    retrospective = _projected(after, summed[:-1]) - _projected(now, summed[:-1])
    whole = np.linalg.norm(_projected(after, summed[1:]), axis=1)
    drift = np.linalg.norm(np.cumsum(retrospective, axis=0), axis=1)
    full, rank = ridge * np.eye(samples.arms.shape[1]), samples.bases.shape[2]
    potentials, squares = [], []
    for arm, basis in zip(samples.arms, samples.bases, strict=True):
        inner, latent = basis.T @ full @ basis, basis.T @ arm
        potentials.append(np.linalg.slogdet(inner)[1] - rank * np.log(ridge))
        squares.append(min(1.0, float(latent @ np.linalg.solve(inner, latent))))
        full += np.outer(arm, arm)
    return {
        "drift": np.divide(drift, whole, out=np.zeros_like(drift), where=whole > 0),
        "squared_widths": np.cumsum(squares)[:-1],
        "potential_sum": 2 * np.array(potentials[1:]),
    }


def _projected(bases: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return UU'v for each basis and vector, shape (n, dim)."""
    inside = np.einsum("nij,ni->nj", bases, vectors)
    return np.asarray(np.einsum("nij,nj->ni", bases, inside))
