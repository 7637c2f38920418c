"""Two estimates of the subspace beside each other, as arms come in: covariance and likelihood."""

import math

import numpy as np

from halfseen.core.likelihood import Ppca, fit_likelihood, spectral_start
from halfseen.core.moments import Moments
from halfseen.core.subspace import distance
from halfseen.simulation.measures import register_measure
from halfseen.simulation.measures.tools import leading_basis, log_spaced, low_rank
from halfseen.values import FloatArray
from halfseen.worlds.base import Realization


@register_measure("subspace-error")
def subspace_error(realization: Realization, *, points: int = 16) -> dict[str, list[float]]:
    """Return how far two estimates of known rank are from the subspace after more and more slates.

    One is the top of the corrected covariance, as in the paper. The other is the most likely
    subspace: EM from that one, and from the most likely one of the point before.

    Parameters
    ----------
    realization : LowRankRealization
    points : int
        How many rounds to look at, evenly spaced in their logarithm.

    Returns
    -------
    dict of lists
        One position per round looked at: `round`; `covariance_distance` and `likelihood_distance`,
        ‖P̂ − P‖₂; `root_rate`, which falls like 1/√round and ends where the first of them does.
    """
    truth = low_rank(realization)
    rounds = log_spaced(truth.world.horizon, points)
    moments, seen = Moments(truth.world.dim), list[FloatArray]()
    found: dict[str, list[float]] = {"covariance_distance": [], "likelihood_distance": []}
    model: Ppca | None = None
    for round, (slate, *_) in enumerate(truth.rounds(), start=1):
        moments.absorb(slate)
        seen.append(np.where(slate.mask, slate.values, np.nan))
        if round not in rounds:
            continue
        estimate = leading_basis(moments, truth)
        found["covariance_distance"].append(distance(estimate, truth.basis))
        model = _likeliest(np.concatenate(seen), truth.world.rank, model)
        found["likelihood_distance"].append(distance(model.subspace()[0], truth.basis))
    last = found["covariance_distance"][-1]
    rate = [last * math.sqrt(rounds[-1] / round) for round in rounds]
    return {"round": [float(round) for round in rounds], **found, "root_rate": rate}


def _likeliest(table: FloatArray, rank: int, before: Ppca | None) -> Ppca:
    """Return the most likely model of arms, shape (n, dim) with NaN where hidden."""
    starts = [spectral_start(table, rank), *(() if before is None else (before,))]
    return fit_likelihood(table, starts).model
