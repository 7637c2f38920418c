"""One epoch of TOFU-POV: a frozen basis and a regression in its coordinates."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy import empty

from halfseen import _kernels, archive
from halfseen.core.confidence import Confidence
from halfseen.core.latent import identified_coordinates, unidentifiable
from halfseen.core.moments import Sums, covariance_of, smallest_prob
from halfseen.core.rank import Known
from halfseen.core.replay import Played
from halfseen.core.ridge import Ridge
from halfseen.policies.tofu_settings import TofuSettings
from halfseen.values import LARGEST, Decision, FloatArray, Slate


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
        What an eigenvalue had to reach; None for a fixed rank.
    n_never_paired : int
        Entries of the covariance that are 0 because no arm showed both features, where the
        observation probability is unknown.
    failure_prob, misspecification : float
        δ_e, and b_e times the bonus scale.
    n_replayed, n_skipped : int
        Earlier rewards that entered the regression, and those that could not because their arm is
        not identified in this basis.
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


class Epoch:
    """The part of a policy that is frozen at an epoch's start, and the regression inside it."""

    __slots__ = ("basis", "confidence", "index", "model", "plays", "record", "settings")

    def __init__(
        self, settings: TofuSettings, record: EpochRecord, basis: FloatArray, model: Ridge
    ) -> None:
        self.settings = settings
        self.record = record
        self.index = record.epoch
        self.plays = record.rank > 0  # else there is no subspace to play in
        self.basis = basis
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
        settings: TofuSettings,
        sums: Sums,
        n_arms: int,
        played: Played | None,
        index: int,
        round: int,
    ) -> "Epoch":
        """Estimate the subspace from the sums over `n_arms` arms, freeze it, replay `played`."""
        observe_prob = smallest_prob(sums, n_arms, settings.observe_prob)
        failure_prob = settings.schedule.failure_prob(
            settings.failure_prob, index, settings.horizon
        )
        known = Known(
            n_arms=n_arms,
            round=round - 1,
            horizon=settings.horizon,
            observe_prob=observe_prob,
            failure_prob=settings.failure_prob,
            epoch_failure_prob=failure_prob,
            arm_bound=settings.arm_bound,
            top_eigenvalue=settings.top_eigenvalue,
        )
        covariance, n_never_paired = covariance_of(sums, n_arms, settings.observe_prob)
        selection = settings.rank.select(covariance, known)
        rank = selection.basis.shape[1]
        model = Ridge(max(1, rank), ridge=settings.ridge)
        n_replayed = n_skipped = 0
        if rank > 0 and played:
            n_replayed, n_skipped = _replay(model, selection.basis, played, settings.impute_ridge)
        record = EpochRecord(
            epoch=index,
            round=round,
            n_arms=n_arms,
            rank=rank,
            eigenvalues=tuple(selection.eigenvalues.tolist()),
            threshold=selection.threshold,
            n_never_paired=n_never_paired,
            failure_prob=failure_prob,
            misspecification=settings.misspecification(
                n_arms=n_arms, round=round - 1, observe_prob=observe_prob
            ),
            n_replayed=n_replayed,
            n_skipped=n_skipped,
        )
        return cls(settings, record, selection.basis, model)

    def score(self, slate: Slate) -> tuple[int, FloatArray]:
        """Return the optimistic arm and per arm score, estimate and width, shape (3, n_arms)."""
        arm, parts, _ = self.play_table(slate._table, empty(slate._table.shape), 0)
        if arm < 0:
            raise unidentifiable(slate, -1 - arm, self.record.rank)
        return arm, parts

    def play_table(
        self, table: FloatArray, block: FloatArray, start: int
    ) -> tuple[int, FloatArray, FloatArray]:
        """Score a raw table, NaN where hidden, in one compiled call.

        Returns what `score` returns and the chosen arm, and zero-fills the table into a block from
        row `start` on. A negative index means that the table must not or cannot be scored.
        """
        n_arms, dim = table.shape
        model = self.model
        parts, chosen = empty((3, n_arms)), empty(dim)
        arm: int = _kernels.play_table(
            table,
            LARGEST,
            self.basis,
            self.settings.impute_ridge,
            model.factor,
            model.white,
            self.confidence.total(model.log_det, model.n_samples),
            parts,
            chosen,
            block,
            start,
        )
        return arm, parts, chosen

    def learn(self, decision: Decision, reward: float, *, replayed: bool) -> None:
        """Add the reward of an arm, played in this epoch or (`replayed`) before it."""
        learned = self.model.learn_arm(
            self.basis, decision._chosen, self.settings.impute_ridge, reward
        )
        if replayed or not learned:
            self.record = replace(
                self.record,
                n_replayed=self.record.n_replayed + learned,
                n_skipped=self.record.n_skipped + (not learned),
            )

    def copied(self) -> "Epoch":
        """Return an independent copy."""
        return Epoch(self.settings, self.record, self.basis, self.model.copied())

    def state(self) -> dict[str, Any]:
        """Return basis, record and regression."""
        return {"basis": self.basis, "record": asdict(self.record), "model": self.model.state()}

    @classmethod
    def restored(cls, settings: TofuSettings, state: dict[str, Any]) -> "Epoch":
        """Return the epoch that `state` described."""
        record = record_from(state["record"])
        model = Ridge(max(1, record.rank), ridge=settings.ridge)
        model.restore(state["model"])
        basis = archive.array(state, "basis", (settings.dim, record.rank))
        return cls(settings, record, basis, model)


def record_from(plain: dict[str, Any]) -> EpochRecord:
    """Return the record that was saved as plain values."""
    return EpochRecord(**(plain | {"eigenvalues": tuple(plain["eigenvalues"])}))


def _replay(
    model: Ridge, basis: FloatArray, played: Played, impute_ridge: float
) -> tuple[int, int]:
    """Insert played arms in the coordinates of `basis`; return how many, and how many could not."""
    arms, rewards = played.samples()
    latent, identified = identified_coordinates(basis, arms, impute_ridge)
    n_replayed = int(np.count_nonzero(identified))
    if n_replayed < len(rewards):
        latent, rewards = latent[identified], rewards[identified]
    model.insert(latent, rewards)
    return n_replayed, len(arms) - n_replayed
