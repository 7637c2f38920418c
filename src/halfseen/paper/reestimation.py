"""Appendix A: what a subspace that is estimated again in every round does to two usual proofs.

A frozen subspace does nothing of the kind, which is why epochs freeze it.
"""

from typing import NamedTuple

import numpy as np

from halfseen.paper.measures import bounded_low_rank
from halfseen.tofu.imputation import fill
from halfseen.tofu.policy import TofuPov
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Realization
from halfseen.worlds.lowrank import LowRankRealization

_RIDGE, _IMPUTE_RIDGE = 1.0, 1e-5  # λ and ρ of both runs
_EVERY_ROUND = 1 + 1e-9  # growth of the schedule: the next epoch starts in the next round


class Samples(NamedTuple):
    """The samples of one regression, in order.

    Attributes
    ----------
    arms : ndarray, shape (n, dim)
        x_s, filled in with what was known when it was played.
    noise : ndarray, shape (n,)
        η_s.
    bases : ndarray, shape (n, dim, rank)
        Û_s, the basis in force when each was played.
    """

    arms: FloatArray
    noise: FloatArray
    bases: FloatArray


def projected_noise(samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Return the steps of the projected noise sum: martingale part and retrospective part.

    With P̂_t the projection in force and S_t = P̂_t Σ_{s≤t} x_s η_s, the step to t + 1 adds
    P̂_{t+1} x_{t+1} η_{t+1}, as in the usual proof, and (P̂_{t+1} − P̂_t) Σ_{s≤t} x_s η_s, which
    weighs old noise anew. Both have shape (n − 1, dim).

    Examples
    --------
    >>> axes = np.eye(2)[:, :, None]  # e1, then e2
    >>> samples = Samples(np.array([[1.0, 1.0], [0.0, 6.0]]), np.ones(2), axes)
    >>> [part.tolist() for part in projected_noise(samples)]
    [[[0.0, 6.0]], [[-1.0, 1.0]]]
    """
    steps = samples.arms * samples.noise[:, None]
    before, now, after = np.cumsum(steps, axis=0)[:-1], samples.bases[:-1], samples.bases[1:]
    return _projected(after, steps[1:]), _projected(after, before) - _projected(now, before)


def projected_designs(samples: Samples, *, ridge: float) -> FloatArray:
    """Return A_t = P̂_t (λI + Σ_{s<t} x_s x_s') P̂_t, shape (n, dim, dim).

    With a frozen basis A_{t+1} − A_t is P̂ x_t x_t' P̂, of rank one and positive semidefinite, and
    the determinants telescope. Otherwise it need be neither.

    Examples
    --------
    >>> axes = np.eye(2)[:, :, None]
    >>> samples = Samples(np.array([[1.0, 1.0], [0.0, 6.0]]), np.ones(2), axes)
    >>> first, second = projected_designs(samples, ridge=1.0)
    >>> np.linalg.eigvalsh(second - first).tolist()
    [-1.0, 2.0]
    """
    designs = []
    inner = ridge * np.eye(samples.arms.shape[1])
    for arm, basis in zip(samples.arms, samples.bases, strict=True):
        projection = basis @ basis.T
        designs.append(projection @ inner @ projection)
        inner = inner + np.outer(arm, arm)
    return np.array(designs)


def reestimation(realization: Realization, *, burn_in: int = 30) -> dict[str, list[float]]:
    """Return both obstacles for a subspace estimated in every round, and for a frozen one.

    One run estimates the subspace in every round and projects all of its past with it; the other
    freezes it in doubling epochs, each with samples of its own. The realization has bounded arms.

    Names begin with `reestimated_` or `frozen_`. `drift` is the length of the sum of all
    retrospective parts over that of the noise sum (the largest of all regressions), `smallest` the
    smallest eigenvalue of A_{t+1} − A_t over λ, of all rounds.
    """
    truth = bounded_low_rank(realization)
    found: dict[str, list[float]] = {}
    for kind, growth, replay in (("reestimated", _EVERY_ROUND, "full"), ("frozen", 2.0, "none")):
        histories = _histories(truth, growth=growth, replay=replay, burn_in=burn_in)
        found[f"{kind}_drift"] = [max(map(_drift, histories))]
        found[f"{kind}_smallest"] = [min(map(_smallest_step, histories))]
    return found


def _drift(samples: Samples) -> float:
    martingale, retrospective = projected_noise(samples)
    whole = np.linalg.norm(martingale.sum(axis=0) + retrospective.sum(axis=0))
    return float(np.linalg.norm(retrospective.sum(axis=0)) / (whole or 1.0))


def _smallest_step(samples: Samples) -> float:
    steps = np.diff(projected_designs(samples, ridge=_RIDGE), axis=0)
    return float(np.linalg.eigvalsh(steps).min() / _RIDGE)


def _histories(
    truth: LowRankRealization, *, growth: float, replay: str, burn_in: int
) -> list[Samples]:
    """Play and return the samples of every regression that has two or more."""
    world = truth.world
    policy = TofuPov(
        dim=world.dim,
        rank=world.rank,
        observe_prob=world.observe_prob,
        horizon=world.horizon,
        noise_scale=world.noise_scale,
        growth=growth,
        replay=replay,
        burn_in=burn_in,
        ridge=_RIDGE,
        impute_ridge=_IMPUTE_RIDGE,
    )
    noted: dict[int, list[tuple[FloatArray, float, FloatArray]]] = {}
    for round in truth.rounds():
        decision = policy.choose(round.slate)
        reward = round.reward(decision.arm)
        policy.learn(decision, reward)
        if policy.basis is not None:
            regression = 0 if replay == "full" else len(policy.epoch_log)
            arm = Slate(round.slate.table[decision.arm : decision.arm + 1])
            filled = fill(policy.basis, arm, _IMPUTE_RIDGE)[0]
            noise = reward - round.means.item(decision.arm)
            noted.setdefault(regression, []).append((filled, noise, policy.basis))
    columns = (map(np.array, zip(*rows, strict=True)) for rows in noted.values() if len(rows) > 1)
    return [Samples(*each) for each in columns]


def _projected(bases: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return UU'v for each basis and vector, shape (n, dim)."""
    inside = np.einsum("nij,ni->nj", bases, vectors)
    return np.asarray(np.einsum("nij,nj->ni", bases, inside))
