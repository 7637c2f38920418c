"""How often the confidence ellipsoid misses, over many epochs with the same arms and new noise."""

from itertools import islice
from typing import NamedTuple

import numpy as np

from halfseen import checks, seeding
from halfseen.core.latent import coordinates
from halfseen.core.moments import Moments
from halfseen.measures.tools import bounded_low_rank, leading_basis, log_spaced
from halfseen.values import FloatArray
from halfseen.worlds.base import Realization
from halfseen.worlds.lowrank import LowRankRealization


class Surrogate(NamedTuple):
    """The rounds of an epoch in the coordinates of one basis.

    Attributes
    ----------
    latent : ndarray, shape (n_rounds, n_arms, rank)
    means : ndarray, shape (n_rounds, n_arms)
    target : ndarray, shape (rank,)
        ϑ* = Û'θ, which the ellipsoid should cover.
    """

    latent: FloatArray
    means: FloatArray
    target: FloatArray

    @property
    def largest_bias(self) -> float:
        """The smallest b for which the premise of the confidence set holds."""
        return float(np.abs(self.means - self.latent @ self.target).max())


class Radii(NamedTuple):
    """The parameters of the radius β: λ, S, R, δ_e and b."""

    ridge: float
    theta_bound: float
    noise_scale: float
    failure_prob: float
    misspecification: float

    def at(self, log_dets: FloatArray, n_samples: int) -> FloatArray:
        """Return β for the log-determinant ratio of each replicate."""
        deviation = log_dets - 2 * np.log(self.failure_prob)
        steady = np.sqrt(self.ridge) * self.theta_bound
        growing = self.misspecification * np.sqrt(n_samples)
        return np.asarray(steady + self.noise_scale * np.sqrt(deviation) + growing)


def coverage(
    realization: Realization,
    *,
    burn_in: int = 30,
    replicates: int = 400,
    ridge: float = 0.01,
    failure_prob: float = 0.2,
    impute_ridge: float = 1e-5,
    points: int = 15,
) -> dict[str, list[float]]:
    """Return the share of epochs whose ellipsoid has missed ϑ* in any round so far.

    One epoch is played `replicates` times, optimistically, with the same slates and fresh noise: in
    the true subspace, and in the one estimated from the `burn_in` slates before it, there with and
    without the misspecification part of the radius (b is the largest bias of any offered arm).
    λ is `ridge` (if small, the noise part of the radius dominates), δ_e `failure_prob`, ρ of the
    imputation `impute_ridge`. Positions are `points` rounds, evenly spaced in their logarithm.
    The realization must have bounded arms.
    """
    truth = bounded_low_rank(realization)
    checks.integer("burn_in", burn_in, 1, truth.world.horizon - 1)
    checks.integer("replicates", replicates, 1)
    moments = Moments(truth.world.dim)
    for slate, *_ in islice(truth.rounds(), burn_in):
        moments.absorb(slate)
    estimated = _surrogate(truth, leading_basis(moments, truth), burn_in, impute_ridge)
    exact = _surrogate(truth, truth.basis, burn_in, impute_ridge)
    random = seeding.stream(truth.seed, "measure", "coverage")
    noise_scale = truth.world.noise_scale
    noise = noise_scale * random.standard_normal((replicates, len(exact.means)))
    rounds = np.array(log_spaced(len(exact.means), points))
    missed = {
        name: missed_by(epoch, noise, Radii(ridge, 1.0, noise_scale, failure_prob, b))
        for name, epoch, b in (
            ("missed_true_subspace", exact, exact.largest_bias),
            ("missed_with_bias_part", estimated, estimated.largest_bias),
            ("missed_without_bias_part", estimated, 0.0),
        )
    }
    return {
        "round": [float(round) for round in rounds],
        **{name: shares[rounds - 1].tolist() for name, shares in missed.items()},
        "failure_prob": [failure_prob] * len(rounds),
        "largest_bias": [estimated.largest_bias],
    }


def _surrogate(
    truth: LowRankRealization, basis: FloatArray, first: int, impute_ridge: float
) -> Surrogate:
    rounds = list(islice(truth.rounds(), first, None))
    latent = [coordinates(basis, round.slate, impute_ridge) for round in rounds]
    means = np.array([round.means for round in rounds])
    return Surrogate(np.array(latent), means, basis.T @ truth.theta)


def missed_by(epoch: Surrogate, noise: FloatArray, radii: Radii) -> FloatArray:
    """Return the share of replicates that missed in any round so far, shape (n_rounds,).

    `noise` has shape (n_replicates, n_rounds); `radii` decide both choices and misses.
    """
    n, rank = len(noise), epoch.latent.shape[2]
    grams = np.tile(radii.ridge * np.eye(rank), (n, 1, 1))
    responses, missed = np.zeros((n, rank)), np.zeros(n, dtype=np.bool_)
    shares = np.empty(len(epoch.means))
    for round, (points, means) in enumerate(zip(epoch.latent, epoch.means, strict=True)):
        inverses = np.linalg.inv(grams)
        estimates = np.einsum("rij,rj->ri", inverses, responses)
        log_dets = np.linalg.slogdet(grams)[1] - rank * np.log(radii.ridge)
        beta = radii.at(log_dets, round)
        off = estimates - epoch.target
        missed |= np.einsum("ri,rij,rj->r", off, grams, off) > beta**2
        shares[round] = missed.mean()
        squares = np.einsum("ki,rij,kj->rk", points, inverses, points, optimize=True)
        scores = estimates @ points.T + beta[:, None] * np.sqrt(np.maximum(squares, 0.0))
        chosen = np.argmax(scores, axis=1)
        played = points[chosen]
        grams += played[:, :, None] * played[:, None, :]
        responses += played * (means[chosen] + noise[:, round])[:, None]
    return shares
