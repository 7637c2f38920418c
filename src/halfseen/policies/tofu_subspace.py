"""The subspace that an epoch freezes, estimated from all arms offered before it."""

import math
from typing import Any, NamedTuple

import numpy as np

from halfseen import archive, checks
from halfseen.core.collector import Collector
from halfseen.core.held_out import HeldOutRank, Ranking
from halfseen.core.latent import Lift
from halfseen.core.likelihood import (
    MOST_WORK,
    NOISE_FLOOR,
    Arms,
    Fit,
    Ppca,
    Spectrum,
    fit_arms,
    step_work,
)
from halfseen.core.moments import (
    Moments,
    ObserveProb,
    Sums,
    covariance_of,
    shares_of,
    smallest_prob,
    sums_of,
)
from halfseen.core.operators import LARGEST_DENSE_DIM, CovarianceOperator
from halfseen.core.rank import Covariance, FixedRank, Known, Selection, SpectralRule
from halfseen.core.reservoir import Reservoir
from halfseen.policies.tofu_params import COUNTED, TofuParams
from halfseen.values import LARGEST_VARIANCE, FloatArray

MAX_FIT_ARMS = 5000
ARMS_PER_FEATURE = 64
"""Largest number of arms that a likelihood is fitted to: more add little and cost time."""

# A likelihood is fitted only if its budget allows this many arms and steps.
_FEWEST_ARMS = 64
_FEWEST_STEPS = 5
# With more arms, a fit from the last subspace is no longer compared with a fresh start.
_FRESH_START_ARMS = 1000
# Arms on which to check whether the last subspace still explains everything.
_LOOK = 256
# With noise below this share of the mean square, a fresh start cannot do better.
_NEGLIGIBLE = 1e-4


class Subspace(NamedTuple):
    """A frozen subspace with its spectrum.

    Attributes
    ----------
    basis : ndarray, shape (dim, rank)
    variances : ndarray, shape (rank,)
        Variances of the arms along the basis.
    noise : float
        Variance of an entry's distance from the subspace.
    ranking : Ranking or None
        The decision on the rank by held-out entries, if there was one.
    """

    basis: FloatArray
    variances: FloatArray
    noise: float
    ranking: Ranking | None = None

    @property
    def rank(self) -> int:
        """Number of directions."""
        return int(self.basis.shape[1])

    def lift(self, settings: TofuParams) -> Lift:
        """Return the lift to its coordinates, in units of its spread if λ is estimated."""
        unit = 1.0
        if isinstance(settings.ridge, str):
            unit = float(np.sqrt(self.variances.mean())) or 1.0
        if settings.features == "least-squares":
            return Lift.least_squares(self.basis, settings.impute_ridge, unit)
        return Lift.posterior_mean(self.basis, self.variances, self.noise, unit)

    def model(self) -> Ppca:
        """Return the model that a later fit may start from."""
        return Ppca(self.basis * np.sqrt(self.variances), self.noise)

    def state(self) -> dict[str, Any]:
        """Return everything as arrays and numbers."""
        plain = self._asdict()
        return plain | {"ranking": None if self.ranking is None else self.ranking.state()}

    @classmethod
    def restored(cls, state: dict[str, Any], dim: int) -> "Subspace":
        """Return the subspace that `state` described."""
        basis = archive.orthonormal(state, "basis", (dim, None))
        variances = archive.array(
            state, "variances", (basis.shape[1],), low=0.0, high=LARGEST_VARIANCE
        )
        ranking = state["ranking"]
        return cls(
            basis,
            variances,
            checks.real("noise", state["noise"], 0.0, LARGEST_VARIANCE),
            None if ranking is None else Ranking.restored(ranking, dim),
        )


class Finding(NamedTuple):
    """A subspace, and the details of its estimation for the epoch's record."""

    subspace: Subspace
    eigenvalues: FloatArray
    threshold: float | None
    n_never_paired: int
    observe_prob: float


def find_subspace(
    settings: TofuParams,
    offered: Collector,
    known: Known,
    last: Subspace | None,
) -> Finding:
    """Return the subspace to freeze.

    Parameters
    ----------
    settings : TofuParams
    offered : Collector
    known : Known
        Without the observation probability, which is filled in here.
    last : Subspace, optional
        The subspace of the previous epoch.
    """
    if isinstance(offered, Reservoir):
        return _find_from_arms(settings, offered, known, last)
    assert isinstance(offered, Moments)
    sums = offered.sums()
    prob, known = _prob(settings, sums, offered.n_arms, known)
    covariance, n_never = covariance_of(sums, offered.n_arms, prob)
    assert isinstance(settings.rank, SpectralRule)
    selection = settings.rank.select(covariance, known)
    subspace = _spectral(selection, covariance, None)
    return Finding(
        subspace, selection.eigenvalues, selection.threshold, n_never, known.observe_prob
    )


def _prob(settings: TofuParams, sums: Sums, n_arms: int, known: Known) -> tuple[ObserveProb, Known]:
    """Return the observation probability, counted from the arms if the settings ask for it."""
    prob = settings.observe_prob
    if isinstance(prob, str):
        prob = shares_of(sums, n_arms) if prob == COUNTED else None
    return prob, known._replace(observe_prob=smallest_prob(sums, n_arms, prob))


def _find_from_arms(
    settings: TofuParams, offered: Reservoir, known: Known, last: Subspace | None
) -> Finding:
    likely = settings.subspace == "likelihood"
    rule, ranking = settings.rank, None if last is None else last.ranking
    if likely and last is not None:
        unchanged = _if_it_explains_all(last, settings, offered)
        if unchanged is not None:
            return unchanged
    if isinstance(rule, HeldOutRank):
        if rule.is_due(offered.n_arms, ranking):
            sample, numbers = offered.numbered_sample(rule.max_arms)
            ranking = rule.decide(sample, n_arms=offered.n_arms, numbers=numbers, last=ranking)
        if ranking is None or ranking.rank == 0:
            return _nothing(settings, ranking)
        rule = FixedRank(ranking.rank)
    assert isinstance(rule, SpectralRule)
    most = min(MAX_FIT_ARMS, ARMS_PER_FEATURE * settings.dim)
    table = offered.sample(most) if likely else offered.rows
    if likely and isinstance(rule, FixedRank):
        return _most_likely(settings, table, rule.rank, ranking, last)
    covariance, n_never, known = _covariance(settings, table, known)
    selection = rule.select(covariance, known)
    if likely and selection.basis.shape[1] > 0:
        found = _most_likely(settings, table, selection.basis.shape[1], None, last)
        return found._replace(threshold=selection.threshold)
    subspace = _spectral(selection, covariance, ranking)
    return Finding(
        subspace, selection.eigenvalues, selection.threshold, n_never, known.observe_prob
    )


def _covariance(
    settings: TofuParams, table: FloatArray, known: Known
) -> tuple[Covariance, int, Known]:
    """Return the corrected covariance of some arms, as an operator if the matrix is too large."""
    prob: ObserveProb | str = settings.observe_prob
    if settings.dim > LARGEST_DENSE_DIM:
        # Counts of pairs would be as large as the matrix, so single features are counted.
        given = prob if isinstance(prob, float | np.ndarray) else None
        operator = CovarianceOperator(table, given)
        return operator, 0, known._replace(observe_prob=operator.smallest_prob)
    sums = sums_of(table)
    prob, known = _prob(settings, sums, len(table), known)
    covariance, n_never = covariance_of(sums, len(table), prob)
    return covariance, n_never, known


def _nothing(settings: TofuParams, ranking: Ranking | None) -> Finding:
    empty = Subspace(np.empty((settings.dim, 0)), np.empty(0), 0.0, ranking)
    return Finding(empty, np.empty(0), None, 0, 1.0)


def _spectral(selection: Selection, covariance: Covariance, ranking: Ranking | None) -> Subspace:
    """Return the subspace of eigenvectors; the rest of the trace is noise."""
    basis = selection.basis
    dim, rank = basis.shape
    trace = float(covariance.trace())
    floor = NOISE_FLOOR * max(trace, 0.0) / dim
    variances = np.maximum(selection.eigenvalues[:rank], floor)
    noise = max((trace - float(variances.sum())) / max(1, dim - rank), floor)
    return Subspace(basis, variances, noise, ranking)


def _most_likely(
    settings: TofuParams,
    table: FloatArray,
    rank: int,
    ranking: Ranking | None,
    last: Subspace | None,
) -> Finding:
    """Fit by likelihood; if the rank is too large for that, return the spectral start."""
    affordable = _affordable_arms(settings.dim, rank)
    arms = Arms(table[:: max(1, math.ceil(len(table) / max(_FEWEST_ARMS, affordable)))])
    if arms.n_entries == 0 or arms.feature_squares.sum() == 0.0:
        return _nothing(settings, ranking)
    prob = settings.observe_prob
    spectrum = Spectrum(arms, None if isinstance(prob, str) else prob)
    if affordable < _FEWEST_ARMS:
        model = spectrum.start(rank)
    else:
        known = None
        if last is not None and last.rank == rank:
            known = last.model()
        elif ranking is not None:
            known = ranking.fits.get(rank)
        model = _fitted(arms, spectrum, rank, known)
    basis, variances = model.subspace()
    subspace = Subspace(basis, variances, model.noise, ranking)
    return Finding(subspace, variances, None, 0, _shown(arms))


def _fitted(arms: Arms, spectrum: Spectrum, rank: int, known: Ppca | None) -> Ppca:
    """Fit from a known model and, while arms are few, from a fresh start."""
    fit = None if known is None else fit_arms(arms, [known])
    if fit is None or _may_gain(fit, arms):
        fresh = fit_arms(arms, [spectrum.start(rank)])
        if fit is None or fresh.log_likelihood > fit.log_likelihood:
            fit = fresh
    return fit.model


def _affordable_arms(dim: int, rank: int) -> int:
    """Return the number of arms for which a fit can take a few steps; negative if none."""
    rank = max(1, rank)
    once = step_work(0, dim, rank)
    return int((MOST_WORK / _FEWEST_STEPS - once) / (step_work(1, dim, rank) - once))


def _shown(arms: Arms) -> float:
    """Return the share of seen entries."""
    return float(arms.n_entries) / (len(arms) * arms.dim)


def _if_it_explains_all(last: Subspace, settings: TofuParams, offered: Reservoir) -> Finding | None:
    """Return the last subspace if its rank is settled and it explains the arms completely.

    Then nothing is fitted. This only happens if the arms are low-rank to rounding error.
    """
    rule = settings.rank
    if last.ranking is not None:
        known = last.ranking.is_settled
    else:
        known = isinstance(rule, FixedRank) and last.rank == rule.rank
    if not known or offered.n_arms < _LOOK or _affordable_arms(settings.dim, last.rank) < _LOOK:
        return None
    arms = Arms(offered.sample(_LOOK))
    if arms.n_entries == 0:
        return None
    looked = fit_arms(arms, [last.model()], max_steps=1, tolerance=0.0)
    if looked.model.noise > 2.0 * NOISE_FLOOR * arms.unit**2:
        return None
    return Finding(last, last.variances, None, 0, _shown(arms))


def _may_gain(fit: Fit, arms: Arms) -> bool:
    """Return whether a fresh start can lead to a likelier model."""
    return len(arms) < _FRESH_START_ARMS and fit.model.noise > _NEGLIGIBLE * arms.unit**2
