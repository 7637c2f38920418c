"""One epoch of TOFU-POV: a frozen basis and a regression in its coordinates."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfseen.core.confidence import Confidence
from halfseen.core.latent import Lift, check_identified
from halfseen.core.moments import covariance_of, shares_of, smallest_prob
from halfseen.core.operators import CovarianceOperator
from halfseen.core.rank import Covariance, Known
from halfseen.core.replay import Played
from halfseen.core.reservoir import Reservoir
from halfseen.core.ridge import Ridge
from halfseen.policies.tofu_params import COUNTED, Offered, TofuParams
from halfseen.state import Basis, Each, Maybe, Real, Sizes, Value, Whole
from halfseen.values import LARGEST_POINT, FloatArray, Slate


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """What happened when an epoch opened.

    Attributes
    ----------
    epoch, round : int
        Index of the epoch and its first round.
    n_arms : int
        Arms absorbed before it.
    rank : int
        Directions kept; 0 means that the burn-in policy plays the epoch.
    eigenvalues : tuple of float
        Top of the spectrum of the corrected covariance, descending.
    threshold : float or None
        Smallest eigenvalue that is kept; None for a fixed rank.
    n_never_paired : int
        If the observation probability is unknown: entries of the covariance that are 0 because no
        arm showed both features.
    failure_prob, misspecification : float
        δ_e, and b_e times the bonus scale.
    n_replayed, n_skipped : int
        Earlier rewards that entered the regression, and those left out because their arm is not
        identified in this basis.
    """

    epoch: int
    round: int
    n_arms: int
    rank: int
    eigenvalues: tuple[float, ...]
    threshold: float | None
    n_never_paired: int
    failure_prob: float
    misspecification: float
    n_replayed: int = 0
    n_skipped: int = 0


RECORD = Value(
    EpochRecord,
    epoch=Whole(),
    round=Whole(1),
    n_arms=Whole(),
    rank=Whole(),
    eigenvalues=Each(Real()),
    threshold=Maybe(Real()),
    n_never_paired=Whole(),
    failure_prob=Real(0.0, 1.0, low_open=True),
    misspecification=Real(0.0, LARGEST_POINT),
    n_replayed=Whole(),
    n_skipped=Whole(),
)


class Epoch:
    """A subspace frozen at the start of an epoch, and the regression in its coordinates.

    Attributes
    ----------
    basis : ndarray, shape (dim, rank)
        Orthonormal basis of the subspace.
    plays : bool
        Whether the rank is above 0; otherwise the burn-in policy plays.
    """

    __slots__ = ("basis", "confidence", "index", "lift", "model", "plays", "record")

    def __init__(
        self, settings: TofuParams, record: EpochRecord, basis: FloatArray, model: Ridge
    ) -> None:
        self.record = record
        self.index = record.epoch
        self.plays = record.rank > 0
        self.basis = basis
        self.lift = Lift.least_squares(basis, settings.impute_ridge)
        self.model = model
        self.confidence = Confidence(
            ridge=settings.ridge,
            theta_bound=settings.theta_bound,
            noise_scale=settings.noise_scale,
            failure_prob=record.failure_prob,
            misspecification=record.misspecification,
            radius_scale=settings.radius_scale,
        )

    @classmethod
    def open(
        cls,
        settings: TofuParams,
        offered: Offered,
        played: Played | None,
        round: int,
        index: int,
    ) -> "Epoch":
        """Estimate the subspace from all offered arms, freeze it, and replay `played`."""
        failure_prob = settings.epoch_failure_prob(index)
        covariance, n_never_paired, observe_prob = _covariance(settings, offered)
        known = Known(
            n_arms=offered.n_arms,
            round=round - 1,
            horizon=settings.horizon,
            observe_prob=observe_prob,
            failure_prob=settings.failure_prob,
            epoch_failure_prob=failure_prob,
            arm_bound=settings.arm_bound,
            top_eigenvalue=settings.eigenvalue_bound,
        )
        basis, eigenvalues, threshold = settings.rank.select(covariance, known)
        rank = int(basis.shape[1])
        record = EpochRecord(
            epoch=index,
            round=round,
            n_arms=offered.n_arms,
            rank=rank,
            eigenvalues=tuple(eigenvalues.tolist()),
            threshold=threshold,
            n_never_paired=n_never_paired,
            failure_prob=failure_prob,
            misspecification=settings.misspecification(
                n_arms=offered.n_arms, round=round - 1, observe_prob=observe_prob
            ),
        )
        epoch = cls(settings, record, basis, Ridge(max(1, rank), ridge=settings.ridge))
        if played and epoch.plays:
            epoch._replay(*played.samples()[:2])
        return epoch

    def _replay(self, arms: FloatArray, rewards: FloatArray) -> None:
        """Add earlier rewards of the arms that are identified in this basis."""
        points = self.lift.coordinates(arms)
        identified = ~np.isnan(points[:, 0])
        n_replayed = int(np.count_nonzero(identified))
        if n_replayed:
            self.model.insert(points[identified], rewards[identified])
        self.record = replace(
            self.record, n_replayed=n_replayed, n_skipped=len(rewards) - n_replayed
        )

    def score(self, slate: Slate) -> tuple[int, FloatArray]:
        """Return the chosen arm, and scores with their parts (3, n_arms)."""
        points = self.lift.coordinates(slate._table)
        if self.lift.ridge == 0.0:
            check_identified(slate, points)
        return self.model.score(points, self.confidence.total)

    def fork(self) -> "Epoch":
        """Return a copy that can learn; afterwards this one must learn no more."""
        fork = object.__new__(Epoch)
        fork.record, fork.index, fork.plays = self.record, self.index, self.plays
        fork.basis, fork.lift, fork.confidence = self.basis, self.lift, self.confidence
        fork.model = self.model.fork()
        return fork

    def learn(self, arm: FloatArray, reward: float) -> None:
        """Add the reward of an arm that was chosen in this epoch."""
        self.model.update(self.lift.coordinates(arm[None, :])[0], reward)

    def learn_earlier(self, arm: FloatArray, reward: float) -> None:
        """Add a late reward that this epoch would have replayed."""
        point = self.lift.coordinates(arm[None, :])[0]
        if np.isnan(point[0]):
            self.record = replace(self.record, n_skipped=self.record.n_skipped + 1)
        else:
            self.model.update(point, reward)
            self.record = replace(self.record, n_replayed=self.record.n_replayed + 1)

    def state(self) -> dict[str, Any]:
        """Return basis, record and regression."""
        return {
            "basis": self.basis,
            "record": RECORD.dump(self.record),
            "model": self.model.state(),
        }

    @classmethod
    def restored(cls, settings: TofuParams, saved: dict[str, Any]) -> "Epoch":
        """Return the epoch that `state` described."""
        sizes = Sizes(settings)
        record = RECORD.load("record", saved["record"], sizes)
        basis = Basis(("dim", record.rank)).load("basis", saved["basis"], sizes)
        model = Ridge(max(1, record.rank), ridge=settings.ridge)
        model.restore(saved["model"])
        return cls(settings, record, basis, model)


def _covariance(settings: TofuParams, offered: Offered) -> tuple[Covariance, int, float]:
    """Return the corrected covariance, how many pairs were never seen, and the smallest p."""
    prob = settings.observe_prob
    if isinstance(offered, Reservoir):
        # Counts of pairs would be as large as the matrix, so single features are counted.
        operator = CovarianceOperator(offered.rows, None if isinstance(prob, str) else prob)
        return operator, 0, operator.smallest_prob
    sums, n_arms = offered.sums(), offered.n_arms
    if isinstance(prob, str):
        prob = shares_of(sums, n_arms) if prob == COUNTED else None
    covariance, n_never_paired = covariance_of(sums, n_arms, prob)
    return covariance, n_never_paired, smallest_prob(sums, n_arms, prob)
