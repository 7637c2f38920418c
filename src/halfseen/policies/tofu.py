"""TOFU-POV: OFUL in the coordinates of an estimated subspace, frozen per epoch."""

from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halfseen.core.epochs import EpochSchedule
from halfseen.core.moments import Moments, Sums
from halfseen.core.rank import PaperThreshold, PracticalThreshold, RankRule
from halfseen.core.replay import Played, Replay
from halfseen.errors import HorizonReachedError, InvalidSettingError
from halfseen.policies.base import Note, Policy
from halfseen.policies.registry import policy_from_tree, register
from halfseen.policies.tofu_burn_in import burn_in_policy_from
from halfseen.policies.tofu_epoch import Epoch, EpochRecord, record_from
from halfseen.policies.tofu_settings import TofuSettings
from halfseen.values import LARGEST, Decision, FloatArray, Slate, is_plain_table


@register
class TofuPov(Policy):
    """Two-phase OFUL with partially observed vectors, and all its variants.

    For the first `burn_in` rounds another policy plays. Then, at the start of each epoch, the
    subspace of the arms is estimated from every arm offered before (played or not) and frozen;
    inside the epoch each arm's seen entries give its latent coordinates, and OFUL plays in them.

    Parameters
    ----------
    dim : int
        Number of features.
    rank : int or RankRule
        Dimension of the subspace, or how to choose it: `FixedRank`, `PracticalThreshold`,
        `PaperThreshold`, `ConstantThreshold`, `HeldOutRank`.
    observe_prob : float, array of shape (dim,), None, "unknown" or "counted"
        Probability that an entry is seen: one for all, one per feature, each feature's share of
        the arms so far ("counted"), or unknown (None, and "unknown" where a file has no word for
        None), where each pair of features is corrected by how often both were seen.
    horizon : int, optional
        Number of rounds. Without it no formula uses one and the rounds are unlimited.
    burn_in : int or "theory"
        Rounds before the first epoch; "theory" needs `n_arms` and `last_eigenvalue`.
    burn_in_policy : "zero-filled", "uniform" or Policy, optional
        By default "zero-filled", or "uniform" beyond 8192 features. Who plays the burn-in, and
        epochs of rank 0. It learns from its own decisions, and must not
        have a horizon that ends before this policy's.
    ridge, failure_prob, theta_bound, noise_scale : float
        λ, δ, S, R. A reward in [0, 1] has R = 0.5. All but δ may be "estimated" from the rewards
        when an epoch opens.
    arm_bound, top_eigenvalue, last_eigenvalue : float
        B_X, λ̄ (default B_X²) and λ_m; used by `PaperThreshold`, the bonus and the theory's burn-in.
    n_arms : int, optional
        K, used by the theory's burn-in only.
    bonus_scale : float
        Misspecification bonus in the radius: 0 is off, 1 is the paper's. Needs `last_eigenvalue`.
    impute_ridge : float
        ρ ≥ 0 of the imputation. With 0, as in the paper, a slate with an arm that its seen entries
        do not identify raises `Unidentifiable`.
    replay : "none", "burn-in-once", "burn-in" or "full"
        Which earlier rewards an epoch starts from (`Replay`).
    growth : float
        Factor between epoch starts; 2 in the paper.
    radius_scale : float
        Multiplies the radius in epochs, and the deviation R of "thompson"; 1 is the theory's.
    subspace : "covariance" or "likelihood"
        The paper's corrected covariance, or the maximum likelihood of what was seen (`Ppca`).
    features : "least-squares" or "posterior-mean"
        The paper's imputation, or the posterior mean given the subspace's spectrum and noise.
    exploration : "ucb", "thompson" or "greedy"
        Optimism; a parameter drawn from the posterior; no exploration.
    fallback : bool
        Whether zero-filled OFUL plays the epochs before which it predicted rewards better than
        the subspace did, and those of rank 0. Needs `replay="full"`.
    memory_bytes : int
        Room for a uniform sample of arms, which "likelihood" and `HeldOutRank` need.
    seed : int
        Of that sample, of "thompson" and of the uniform burn-in policy.
    max_open : int
        How many decisions wait for their reward at most; the oldest is forgotten first.

    Examples
    --------
    >>> import numpy as np
    >>> policy = TofuPov(dim=4, rank=1, observe_prob=0.5, burn_in=2)
    >>> random = np.random.default_rng(0)
    >>> for _ in range(6):
    ...     slate = np.where(random.random((3, 4)) < 0.5, random.normal(size=(3, 1)), np.nan)
    ...     decision = policy.choose(slate)
    ...     policy.learn(decision, 0.1)
    >>> decision.epoch, [record.round for record in policy.epoch_log]
    (1, [3, 6])

    Notes
    -----
    Paper: alg:bandits
    """

    told: ClassVar[tuple[str, ...]] = (
        "dim",
        "rank",
        "observe_prob",
        "horizon",
        "noise_scale",
        "seed",
    )

    _plays_known: ClassVar[bool] = True
    _takes_shortcuts: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Quick ways do not call what they do the work of. So a subclass that changes it is played
        # the long way, unless it says that the quick one still does the same.
        parent = next(each for each in cls.__mro__[1:] if issubclass(each, TofuPov))
        steps = _differs(cls, parent, "_choose", "_learn")
        calls = _differs(cls, parent, "choose", "learn")
        cls._takes_shortcuts = parent._takes_shortcuts and not steps
        if "_plays_known" not in cls.__dict__:
            cls._plays_known = parent._plays_known and not (steps or calls)

    def __init__(
        self,
        *,
        dim: int,
        rank: int | RankRule,
        observe_prob: Any,
        horizon: int | None = None,
        burn_in: Any = 30,
        burn_in_policy: Any = None,
        ridge: float | str = 1.0,
        failure_prob: float = 0.05,
        theta_bound: float | str = 1.0,
        noise_scale: float | str = 0.5,
        arm_bound: float = 1.0,
        top_eigenvalue: float | None = None,
        last_eigenvalue: float | None = None,
        n_arms: int | None = None,
        bonus_scale: float = 0.0,
        impute_ridge: float = 1e-5,
        replay: str = "full",
        growth: float = 2.0,
        radius_scale: float = 1.0,
        subspace: str = "covariance",
        features: str = "least-squares",
        exploration: str = "ucb",
        fallback: bool = False,
        memory_bytes: int = 64_000_000,
        seed: int = 0,
        max_open: int = 10_000,
    ) -> None:
        super().__init__(dim=dim, max_open=max_open)
        self._settings = TofuSettings.checked(
            dim=dim,
            rank=rank,
            observe_prob=observe_prob,
            horizon=horizon,
            burn_in=burn_in,
            ridge=ridge,
            failure_prob=failure_prob,
            theta_bound=theta_bound,
            noise_scale=noise_scale,
            arm_bound=arm_bound,
            top_eigenvalue=top_eigenvalue,
            last_eigenvalue=last_eigenvalue,
            n_arms=n_arms,
            bonus_scale=bonus_scale,
            impute_ridge=impute_ridge,
            replay=replay,
            growth=growth,
            radius_scale=radius_scale,
            subspace=subspace,
            features=features,
            exploration=exploration,
            fallback=fallback,
            memory_bytes=memory_bytes,
            seed=seed,
        )
        self._replays_all = self._settings.replay is Replay.FULL
        self._offered = self._settings.collector()
        self._played = Played(dim)
        self._epoch: Epoch | None = None
        self._quick_epoch: Epoch | None = None  # the same, if its rounds go the quick way
        # The last decision, if its arm's coordinates are at hand in the epoch.
        self._latest: Decision | None = None
        self._next_event = self._event_after(self._settings.schedule.burn_in + 1)
        self._log: list[EpochRecord] = []
        self._burner = burn_in_policy_from(burn_in_policy, self._settings, self.max_open)

    @classmethod
    def algorithm_1(cls, *, arm_bound: float, rank: int | RankRule, **settings: Any) -> "TofuPov":
        """Algorithm 1 with the settings of the regret theorem.

        λ = 4B_X², t_b from the theory, δ_e, the misspecification bonus on, imputation without a
        ridge, nothing replayed. Needs `n_arms`, `last_eigenvalue` and `observe_prob`. An
        `impute_ridge` above 0 may be given: without one an arm that its seen entries do not
        identify ends in an error, and at practical sizes there are such arms.

        Notes
        -----
        Paper: thm:main_regret
        """
        defaults: dict[str, Any] = {
            "ridge": 4.0 * arm_bound**2,
            "burn_in": "theory",
            "bonus_scale": 1.0,
            "impute_ridge": 0.0,
            "replay": "none",
        }
        return cls(arm_bound=arm_bound, rank=rank, **(defaults | settings))

    @classmethod
    def rank_adaptive_algorithm_1(cls, **settings: Any) -> "TofuPov":
        """Algorithm 1 with the paper's spectral threshold 2ρ in place of a known rank.

        Notes
        -----
        Paper: thm:unknown_rank
        """
        return cls.algorithm_1(**({"rank": PaperThreshold()} | settings))

    @classmethod
    def practical(cls, **settings: Any) -> "TofuPov":
        """TOFU of the paper's figures: λ = 1, no bonus, burn-in rewards replayed once."""
        return cls(**({"replay": "burn-in-once"} | settings))

    @classmethod
    def rank_adaptive(cls, *, max_rank: int | None = None, **settings: Any) -> "TofuPov":
        """RA-TOFU of the paper's figures: `practical` with the published spectral threshold."""
        if max_rank is not None and "rank" in settings:
            raise InvalidSettingError("give a rank rule or max_rank, not both")
        return cls.practical(**({"rank": PracticalThreshold(cap=max_rank)} | settings))

    @classmethod
    def full_history(cls, **settings: Any) -> "TofuPov":
        """TOFU-FH of the paper's figures: all rewards replayed at every epoch."""
        return cls(**({"replay": "full"} | settings))

    @classmethod
    def rank_adaptive_full_history(
        cls, *, max_rank: int | None = None, **settings: Any
    ) -> "TofuPov":
        """RA-TOFU-FH of the paper's figures: `rank_adaptive` with all rewards replayed."""
        return cls.rank_adaptive(max_rank=max_rank, **({"replay": "full"} | settings))

    @property
    def epoch_log(self) -> tuple[EpochRecord, ...]:
        """One record per epoch opened so far."""
        current = () if self._epoch is None else (self._epoch.record,)
        return (*self._log, *current)

    @property
    def current_rank(self) -> int:
        """Rank of the current epoch; all features where the burn-in policy plays."""
        if self._epoch is None or self._epoch.lift is None:
            return self.dim
        return self._epoch.record.rank

    @property
    def fallback_rounds(self) -> int:
        """Rounds so far in which zero-filled OFUL played because low rank did not help."""
        log = self.epoch_log
        ends = [*(record.round for record in log[1:]), self._round + 1]
        lengths = (max(0, end - record.round) for record, end in zip(log, ends, strict=True))
        return sum(n for n, record in zip(lengths, log, strict=True) if record.fallback)

    def hidden_deviations(self, options: Any) -> FloatArray:
        """Return how uncertain each arm's estimate is for what is hidden of it, shape (n_arms,).

        The standard deviation of the estimated reward over the hidden entries given the seen ones,
        where `features="posterior-mean"`; 0 with least squares, NaN where no subspace is used. It
        is told to people and never added to scores: masks are drawn anew in every round, so there
        is nothing to learn by choosing an arm that hides much.
        """
        slate = Slate.of(options, self.dim)
        if self._epoch is None:
            return np.full(slate.n_arms, np.nan)
        return self._epoch.hidden_deviations(slate._table)

    @property
    def schedule(self) -> EpochSchedule:
        """When epochs start."""
        return self._settings.schedule

    def diagnostics(self) -> dict[str, Any]:
        """Return the ranks of all epochs, and the top of the last one's spectrum."""
        log = self.epoch_log
        return {
            "epoch_starts": [record.round for record in log],
            "epoch_ranks": [record.rank for record in log],
            "eigenvalues": list(log[-1].eigenvalues) if log else [],
            "threshold": log[-1].threshold if log else None,
        }

    def settings(self) -> dict[str, Any]:
        """Return arguments that rebuild the policy, as plain JSON types."""
        burner = self._burner
        return self._settings.to_dict() | {
            "burn_in_policy": {"policy": type(burner).__name__, "settings": burner.settings()},
            "max_open": self.max_open,
        }

    def choose(self, options: Any) -> Decision:
        """Choose one of the offered arms.

        Parameters
        ----------
        options : Slate or array_like, shape (n_arms, dim)
            NaN where hidden.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        Unidentifiable
            `impute_ridge` is 0 and an arm's seen entries do not determine its coordinates.
        HorizonReachedError
            All rounds of the horizon are played.
        """
        # The everyday case, a plain table inside an epoch, takes one compiled call; whatever is
        # not plain sailing there goes the long way, which does the same and explains itself.
        epoch = self._quick_epoch
        if (
            epoch is not None
            and self._round < self._next_event
            and (type(options) is Slate or is_plain_table(options))
        ):
            table = options._table if type(options) is Slate else options
            offered, self._latest = self._offered, None
            arm, parts, chosen = epoch.play_table(
                table, offered.block, offered.n_waiting, offered.hidden
            )
            if arm >= 0:
                offered.claim(table)
                self._latest = decision = self._opened(chosen, arm, parts, epoch.index, None)
                return decision
        return super().choose(options)

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn from the reward of a decision, as `Policy.learn` does; soonest is quickest."""
        # The everyday case, the reward of the last choice: its coordinates are at hand.
        epoch = self._epoch
        if (
            decision is not self._latest
            or epoch is None
            or decision is None
            or decision._id not in self._open
            or type(reward) is not float
            or not -LARGEST <= reward <= LARGEST
        ):
            super().learn(decision, reward)
            return
        played, place = self._played, -1
        if self._replays_all:
            place = played.place()
        epoch.learn_latest(reward, decision._chosen, played.arms, place)
        if place >= 0:
            played.claim(decision._round, reward)
        self._latest = None
        del self._open[decision._id]

    def play_known(self, tables: FloatArray, rewards: FloatArray) -> NDArray[np.int64]:
        """Play rounds of which every reward is known, as in a simulation, in one compiled call.

        As `Policy.play_known`, for as long as all goes its everyday way inside an epoch.
        """
        epoch, offered = self._quick_epoch, self._offered
        n_rounds, n_arms, dim = tables.shape
        n = min(n_rounds, self._next_event - self._round, offered.room_for(max(1, n_arms)))
        if (
            epoch is None
            or not self._plays_known
            or n < 1
            or n_arms < 1
            or dim != self.dim
            or rewards.shape != (n_rounds, n_arms)
            or len(self._open) == self.max_open
            or not (np.abs(rewards[:n]) <= LARGEST).all()
        ):
            return super().play_known(tables, rewards)
        self._latest = None
        played = self._played
        place = played.place(n) if self._replays_all else -1
        arms, earned = epoch.play_rounds(tables[:n], rewards[:n], offered, played.arms, place)
        offered.claim_all(tables[: len(arms)])
        if place >= 0:
            played.claim_all(self._round + 1, earned)
        self._round += len(arms)
        return arms

    def _choose(self, slate: Slate) -> Decision:
        # All that may fail comes first and changes nothing; `burner.choose` is the last of it.
        self._latest = None
        epoch, sums = self._epoch, None
        if self._round >= self._next_event:
            epoch, sums = self._opened_epoch()
        prepared = self._offered.prepare(slate, sums)
        if epoch is not None and epoch.plays:
            arm, parts = epoch.score(slate, self._round + 1)
            inner = None
        else:
            inner = self._burner.choose(slate)
        self._offered.commit(slate, prepared)
        if epoch is not None and epoch is not self._epoch:
            self._enter(epoch)
        index = -1 if epoch is None else epoch.index
        if inner is None:
            decision = self._answer(slate, arm, parts, index)
            self._latest = decision if self._takes_shortcuts else None
            return decision
        note = inner._id, inner._round, inner._epoch
        return self._opened(inner._chosen, inner._arm, inner._parts, index, note)

    def _opened_epoch(self) -> tuple[Epoch, Sums | None]:
        """Return the epoch that is due, opened but not entered, and the sums it came from."""
        settings, round = self._settings, self._round + 1
        if settings.horizon is not None and round > settings.horizon:
            raise HorizonReachedError(
                f"all {settings.horizon} rounds of the horizon are played: use horizon=None for a "
                "policy without an end"
            )
        played = None if settings.replay is Replay.NONE else self._played
        sums = self._offered.sums() if isinstance(self._offered, Moments) else None
        return Epoch.open(settings, self._offered, sums, played, round, self._epoch), sums

    def _enter(self, epoch: Epoch) -> None:
        if self._epoch is not None:
            self._log.append(self._epoch.record)
        self._set_epoch(epoch)
        self._next_event = self._event_after(self._settings.schedule.next_start(epoch.record.round))
        if self._settings.replay is Replay.BURN_IN_ONCE and epoch.plays:
            self._played.clear()

    def _set_epoch(self, epoch: Epoch | None) -> None:
        self._epoch = epoch
        is_quick = epoch is not None and epoch.is_quick and self._takes_shortcuts
        self._quick_epoch = epoch if is_quick else None

    def _event_after(self, start: int) -> int:
        """Return after which round something is due: an epoch at `start`, or the horizon's end."""
        horizon = self._settings.horizon
        return start - 1 if horizon is None else min(start - 1, horizon)

    def _learn(self, decision: Decision, reward: float, note: Note | None) -> None:
        if note is not None:
            self._learn_burn_in(decision, reward, note)
            return
        keep, epoch = self._replays_all, self._epoch
        if keep:
            self._played.place()
        earned_here = epoch is not None and decision._epoch == epoch.index
        if epoch is not None and epoch.plays and (earned_here or keep):
            epoch.learn(decision, reward, replayed=not earned_here)
        if keep:
            self._played.append(decision, reward)

    def _learn_burn_in(self, decision: Decision, reward: float, note: Note) -> None:
        """Learn a reward that the burn-in policy earned, perhaps late."""
        keep = self._keeps_burn_in()
        if keep:
            self._played.place()
        epoch = self._epoch
        if epoch is not None and epoch.plays and self._replays_late_burn_in():
            # In a copy, until the burn-in policy has learned, too.
            epoch = epoch.copied()
            epoch.learn(decision, reward, replayed=True)
        self._burner.learn(decision.retold(*note), reward)
        self._set_epoch(epoch)
        if keep:
            self._played.append(decision, reward)

    def _first_playing_epoch(self) -> int | None:
        return next((record.epoch for record in self.epoch_log if record.rank > 0), None)

    def _keeps_burn_in(self) -> bool:
        """Return whether a later epoch will replay burn-in rewards."""
        replay = self._settings.replay
        if replay is Replay.BURN_IN_ONCE:
            return self._first_playing_epoch() is None
        return replay is not Replay.NONE

    def _replays_late_burn_in(self) -> bool:
        """Return whether the current epoch would have replayed a burn-in reward that comes late."""
        replay = self._settings.replay
        if replay is Replay.BURN_IN_ONCE and self._epoch is not None:
            return self._first_playing_epoch() == self._epoch.index
        return replay is not Replay.NONE

    def _absorb(self, slate: Slate) -> None:
        prepared = self._offered.prepare(slate)
        self._burner.absorb(slate)
        self._offered.commit(slate, prepared)

    def _state(self) -> dict[str, Any]:
        return {
            "offered": self._offered.state(),
            "played": self._played.state(),
            "log": [asdict(record) for record in self._log],
            "epoch": None if self._epoch is None else self._epoch.state(),
            "next_event": self._next_event,
            "burn_in_policy": self._burner.to_tree(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._offered.restore(state["offered"])
        self._played.restore(state["played"])
        self._log = [record_from(plain) for plain in state["log"]]
        if state["epoch"] is not None:
            self._set_epoch(Epoch.restored(self._settings, state["epoch"]))
        self._next_event = int(state["next_event"])
        self._burner = policy_from_tree(state["burn_in_policy"])


def _differs(cls: type, parent: type, *names: str) -> bool:
    return any(getattr(cls, name) is not getattr(parent, name) for name in names)
