"""Why the subspace is frozen: what a projection that changes every round does to past samples."""

from typing import NamedTuple

import numpy as np

from halfseen.core.latent import fill
from halfseen.core.moments import Moments
from halfseen.measures.runs import steps_of_run
from halfseen.measures.tools import bounded_low_rank
from halfseen.policies.tofu import TofuPov
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Realization
from halfseen.worlds.lowrank import LowRankRealization

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
        The basis in force when each was played.
    """

    arms: FloatArray
    noise: FloatArray
    bases: FloatArray


def freezing(
    realization: Realization,
    *,
    burn_in: int = 30,
    ridge: float = 1.0,
    impute_ridge: float = 1e-5,
) -> dict[str, list[float]]:
    """Return the terms that break the usual proofs, re-estimating every round and frozen.

    One run estimates the subspace in every round and projects all of its past with it; the other
    freezes it in doubling epochs, each with samples of its own. λ is `ridge` in both, ρ of
    the imputation `impute_ridge`. The realization must have bounded arms.

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
            ridge=ridge,
            impute_ridge=impute_ridge,
        )
        for first, samples in _histories(policy, truth, impute_ridge, replay == "full"):
            last = first + len(samples.noise)
            found.setdefault(f"{kind}_round", []).extend(map(float, range(first + 1, last)))
            for name, values in steps_of(samples, ridge).items():
                found.setdefault(f"{kind}_{name}", []).extend(values.tolist())
    return found


def _histories(
    policy: TofuPov, truth: LowRankRealization, impute_ridge: float, one_history: bool
) -> list[tuple[int, Samples]]:
    """Play and return the samples of every regression, each with the round of its first one."""
    noted: list[tuple[int, list[tuple[FloatArray, float, FloatArray]]]] = []
    for step in steps_of_run(policy, truth, Moments(truth.world.dim)):
        if step.basis is None:
            continue
        if step.opens_epoch and not (noted and one_history):
            noted.append((step.number, []))
        chosen = Slate(step.decision.values[None], step.decision.mask[None])
        arm = fill(step.basis, chosen, impute_ridge)[0]
        noted[-1][1].append((arm, step.round.noise_of(step.decision.arm), step.basis))
    return [
        (first, Samples(*(np.array(column) for column in zip(*rows, strict=True))))
        for first, rows in noted
    ]


def steps_of(samples: Samples, ridge: float) -> dict[str, FloatArray]:
    """Return the parts of each step of the projected noise and of the projected design.

    With P_t the projection in force and S_t = P_t Σ_{s≤t} x_s η_s, a step adds the martingale part
    P_{t+1} x_{t+1} η_{t+1} and the retrospective part (P_{t+1} - P_t) Σ_{s≤t} x_s η_s. The design
    A_t = P_t (λI + Σ_{s<t} x_s x_s') P_t should grow by one positive semidefinite term of rank 1.

    Returned arrays have shape (n - 1,): `martingale` and `retrospective` are the lengths of the two
    parts; `drift` that of the sum of all retrospective parts, relative to S; `smallest_increment`
    and `largest_increment` the extreme eigenvalues of A_{t+1} - A_t, `increment_rank` the number of
    those that are not zero; `squared_widths` the sum of min(1, ‖x_s‖²) in the inverse designs up to
    round t, and `potential_sum`, 2 log(det A_{t+1} / λ^m), bounds it if the design only grows.
    """
    pushes = samples.arms * samples.noise[:, None]
    summed = np.cumsum(pushes, axis=0)
    now, after = samples.bases[:-1], samples.bases[1:]
    martingale = _projected(after, pushes[1:])
    retrospective = _projected(after, summed[:-1]) - _projected(now, summed[:-1])
    whole = np.linalg.norm(_projected(after, summed[1:]), axis=1)
    drift = np.linalg.norm(np.cumsum(retrospective, axis=0), axis=1)
    return {
        "martingale": np.linalg.norm(martingale, axis=1),
        "retrospective": np.linalg.norm(retrospective, axis=1),
        "drift": np.divide(drift, whole, out=np.zeros_like(drift), where=whole > 0),
        **_design_steps(samples, ridge),
    }


def _projected(bases: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return UU'v for each basis and vector, shape (n, dim)."""
    inside = np.einsum("nij,ni->nj", bases, vectors)
    return np.asarray(np.einsum("nij,nj->ni", bases, inside))


def _design_steps(samples: Samples, ridge: float) -> dict[str, FloatArray]:
    dim, rank = samples.bases.shape[1:]
    full = ridge * np.eye(dim)
    designs, potentials, squares = [], [], []
    for arm, basis in zip(samples.arms, samples.bases, strict=True):
        inner, latent = basis.T @ full @ basis, basis.T @ arm
        designs.append(basis @ inner @ basis.T)
        potentials.append(np.linalg.slogdet(inner)[1] - rank * np.log(ridge))
        squares.append(min(1.0, float(latent @ np.linalg.solve(inner, latent))))
        full += np.outer(arm, arm)
    eigenvalues = np.linalg.eigvalsh(np.diff(designs, axis=0))
    sizes = np.abs(eigenvalues)
    return {
        "smallest_increment": eigenvalues[:, 0],
        "largest_increment": eigenvalues[:, -1],
        "increment_rank": np.sum(sizes > 1e-9 * sizes.max(axis=1, keepdims=True), axis=1) * 1.0,
        "squared_widths": np.cumsum(squares)[:-1],
        "potential_sum": 2 * np.array(potentials[1:]),
    }
