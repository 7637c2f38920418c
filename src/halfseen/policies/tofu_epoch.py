"""One epoch of TOFU-POV: a frozen basis and a regression in its coordinates."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core.collector import Collector
from halfseen.core.confidence import Confidence
from halfseen.core.latent import Lift, check_identified
from halfseen.core.rank import Known
from halfseen.core.replay import Played
from halfseen.core.ridge import Ridge
from halfseen.errors import ArchiveError
from halfseen.policies.contest import Contest
from halfseen.policies.tofu_params import TofuParams
from halfseen.policies.tofu_rewards import Rewards
from halfseen.policies.tofu_subspace import Subspace, find_subspace
from halfseen.seeding import stream
from halfseen.values import LARGEST, LARGEST_POINT, FloatArray, Slate


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
    ridge, theta_bound, noise_scale : float
        λ, S and R, as set or as estimated from the rewards so far.
    fallback : bool
        Whether zero-filled OFUL plays the epoch because low rank does not help.
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
    ridge: float
    theta_bound: float
    noise_scale: float
    fallback: bool = False
    n_replayed: int = 0
    n_skipped: int = 0


class Epoch:
    """A subspace frozen at the start of an epoch, and the regression in its coordinates."""

    __slots__ = (
        "confidence", "contest", "index", "lift", "model", "plays", "record", "settings",
        "subspace", "unit",
    )  # fmt: skip

    def __init__(
        self,
        settings: TofuParams,
        record: EpochRecord,
        subspace: Subspace,
        lift: Lift | None,
        model: Ridge,
        contest: Contest,
        unit: float,
    ) -> None:
        self.settings = settings
        self.record = record
        self.index = record.epoch
        self.plays = record.rank > 0 or record.fallback  # else the burn-in policy plays
        self.subspace = subspace
        # Under the fallback the arms are zero-filled and divided by a unit.
        self.lift = lift
        self.unit = unit
        self.model = model
        self.contest = contest
        self.confidence = Confidence(
            ridge=record.ridge,
            theta_bound=record.theta_bound,
            noise_scale=record.noise_scale,
            failure_prob=record.failure_prob,
            misspecification=record.misspecification,
            radius_scale=settings.radius_scale,
        )

    @property
    def basis(self) -> FloatArray:
        """Orthonormal basis of the frozen subspace, shape (dim, rank)."""
        return self.subspace.basis

    @classmethod
    def open(
        cls,
        settings: TofuParams,
        offered: Collector,
        played: Played | None,
        round: int,
        last: "Epoch | None",
    ) -> "Epoch":
        """Estimate the subspace from all offered arms, freeze it, and replay `played`."""
        index = 0 if last is None else last.index + 1
        failure_prob = settings.schedule.failure_prob(
            settings.failure_prob, index, settings.horizon
        )
        known = Known(
            n_arms=offered.n_arms,
            round=round - 1,
            horizon=settings.horizon,
            observe_prob=1.0,
            failure_prob=settings.failure_prob,
            epoch_failure_prob=failure_prob,
            arm_bound=settings.arm_bound,
            top_eigenvalue=settings.eigenvalue_bound,
        )
        found = find_subspace(settings, offered, known, None if last is None else last.subspace)
        rewards = Rewards.replayed(settings, found.subspace, played, last)
        record = EpochRecord(
            epoch=index,
            round=round,
            n_arms=offered.n_arms,
            rank=found.subspace.rank,
            eigenvalues=tuple(found.eigenvalues.tolist()),
            threshold=found.threshold,
            n_never_paired=found.n_never_paired,
            failure_prob=failure_prob,
            misspecification=settings.misspecification(
                n_arms=offered.n_arms, round=round - 1, observe_prob=found.observe_prob
            ),
            ridge=rewards.ridge,
            theta_bound=rewards.theta_bound,
            noise_scale=rewards.noise_scale,
            fallback=rewards.fallback,
            n_replayed=rewards.model.n_samples,
            n_skipped=rewards.n_skipped,
        )
        return cls(
            settings,
            record,
            found.subspace,
            rewards.lift,
            rewards.model,
            rewards.contest,
            rewards.unit,
        )

    def score(self, slate: Slate, round: int) -> tuple[int, FloatArray, FloatArray]:
        """Return the chosen arm, scores with their parts (3, n_arms), and the arm's coordinates."""
        points = self.coordinates(slate._table)
        if self.lift is not None and self.lift.ridge == 0.0:
            check_identified(slate, points)
        arm, parts = self.model.score(points, self.radius)
        if self.settings.exploration == "thompson":
            arm = self._draw(points, round, parts)
        return arm, parts, points[arm].copy()

    def coordinates(self, table: FloatArray) -> FloatArray:
        """Return half-seen arms (n, dim) as points of the regression; see `Lift.coordinates`."""
        if self.lift is not None:
            return self.lift.coordinates(table)
        unit = self.unit
        if unit < 1.0:  # clip coordinates to `LARGEST`, as a lift does
            table = np.clip(table, -LARGEST * unit, LARGEST * unit)
        return table / unit

    def radius(self, log_det: float, n_samples: float) -> float:
        """Return the factor by which widths are multiplied in a score."""
        if self.settings.exploration != "ucb":
            return 0.0
        return self.confidence.total(log_det, n_samples)

    def _draw(self, points: FloatArray, round: int, parts: FloatArray) -> int:
        """Draw a parameter, write scores and widths under it, and return the best arm.

        With V = R'R, u = R'⁻¹z and g standard normal, u·g has the posterior's variance z'V⁻¹z.
        """
        model = self.model
        # Each round has its own random stream, so there is no stream state to save.
        draw = stream(self.settings.seed, "thompson", str(round)).standard_normal(model.dim)
        draw *= self.settings.radius_scale * self.record.noise_scale
        drawn = Ridge(model.dim, ridge=model.ridge)
        drawn.set_root(model.factor, draw, model.log_det, model.n_samples)
        parts[2] = drawn.predict(points)[0]
        parts[0] = parts[1] + parts[2]
        return int(parts[0].argmax())

    def fork(self) -> "Epoch":
        """Return a copy that can learn; afterwards this one must learn no more."""
        fork = object.__new__(Epoch)
        fork.settings, fork.record, fork.index = self.settings, self.record, self.index
        fork.plays, fork.subspace, fork.lift = self.plays, self.subspace, self.lift
        fork.unit, fork.contest, fork.confidence = self.unit, self.contest, self.confidence
        fork.model = self.model.fork()
        return fork

    def learn(self, point: FloatArray, reward: float) -> None:
        """Add the reward of an arm that was chosen in this epoch, given its coordinates."""
        self.model.update(point, reward)

    def learn_earlier(self, arm: FloatArray, reward: float) -> None:
        """Add a late reward that this epoch would have replayed."""
        point = self.coordinates(arm[None, :])[0]
        if self.lift is None or not np.isnan(point[0]):
            self.model.update(point, reward)
            self.record = replace(self.record, n_replayed=self.record.n_replayed + 1)
        else:
            self.record = replace(self.record, n_skipped=self.record.n_skipped + 1)

    def hidden_deviations(self, table: FloatArray) -> FloatArray:
        """Return the standard deviation of each arm's estimate due to hidden entries."""
        if self.lift is None:
            return np.full(len(table), np.nan)
        return np.sqrt(self.lift.hidden_variances(table, self.model.estimate))

    def state(self) -> dict[str, Any]:
        """Return subspace, record and regression."""
        return {
            "subspace": self.subspace.state(),
            "record": asdict(self.record),
            "model": self.model.state(),
            "contest": list(self.contest),
            "unit": self.unit,
        }

    @classmethod
    def restored(cls, settings: TofuParams, state: dict[str, Any]) -> "Epoch":
        """Return the epoch that `state` described."""
        record = record_from(state["record"])
        subspace = Subspace.restored(state["subspace"], settings.dim)
        if subspace.rank != record.rank:
            raise ArchiveError(f"a basis must have rank {record.rank}, got {subspace.rank}")
        model = Ridge(settings.dim if record.fallback else max(1, record.rank), ridge=record.ridge)
        model.restore(state["model"])
        contest = Contest.restored(state["contest"])
        unit = checks.real("unit", state["unit"], 0.0, LARGEST, low_open=True)
        plays_latent = record.rank > 0 and not record.fallback
        lift = subspace.lift(settings) if plays_latent else None
        return cls(settings, record, subspace, lift, model, contest, unit)


def record_from(plain: dict[str, Any]) -> EpochRecord:
    """Return the record that was saved as plain values."""
    eigenvalues = tuple(checks.real("eigenvalues", value) for value in plain["eigenvalues"])
    record = EpochRecord(**(plain | {"eigenvalues": eigenvalues}))
    for name in ("epoch", "n_arms", "rank", "n_never_paired", "n_replayed", "n_skipped"):
        checks.integer(name, getattr(record, name), 0, checks.LARGEST_HORIZON)
    checks.integer("round", record.round, 1, checks.LARGEST_HORIZON)
    for name in ("misspecification", "theta_bound", "noise_scale"):
        checks.real(name, getattr(record, name), 0.0, LARGEST_POINT)
    checks.real(
        "failure_prob", record.failure_prob, 0.0, 1.0, low_open=True, high_open=True
    )  # a share
    if record.threshold is not None:
        checks.real("threshold", record.threshold)
    checks.boolean("fallback", record.fallback)
    return record
