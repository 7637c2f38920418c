"""TOFU-POV: OFUL in the coordinates of an estimated subspace, frozen per epoch."""

import math
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.errors import HorizonReachedError, InvalidSettingError
from halfseen.linear.history import Played
from halfseen.params import custom
from halfseen.policies.registry import InnerPolicy, register_policy
from halfseen.state import Each, Maybe, Part
from halfseen.theory import power_split
from halfseen.tofu.epoch import EPOCH, RECORD, Epoch, EpochRecord, replay_param
from halfseen.tofu.parameters import TofuParams
from halfseen.tofu.rank import PaperThreshold, PracticalThreshold
from halfseen.tofu.subspace import Offered
from halfseen.values import Choice, FloatArray, Note, Slate


@register_policy
class TofuPov(TofuParams):
    """Two-phase OFUL with partially observed vectors, and all its variants.

    For the first `burn_in` rounds another policy plays. Then, at the start of each epoch, the
    subspace of the arms is estimated from all arms offered before, played or not, and frozen.
    Inside the epoch each arm's seen entries determine its latent coordinates, in which OFUL plays.

    The defaults are those of `full_history`, TOFU-FH of the paper's figures, once `horizon` and
    `noise_scale` are given.

    Memory does not grow with the rounds, except for the played arms that `replay` needs: with
    "full" all of them, with "burn-in" those of the burn-in. Each opening computes their latent
    coordinates again, which takes time in proportion.

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

    STATE: ClassVar = {
        "_offered": Part(),
        "_played": Part(),
        "_log": Each(RECORD),
        "_epoch": Maybe(EPOCH),
        "_burner": InnerPolicy(),
    }

    needs = ("dim", "rank", "observe_prob", "horizon", "noise_scale", "seed")

    def setup(self) -> None:
        """Start with no arms, no rewards and no epoch."""
        super().setup()
        self._burner = self.new_burn_in_policy()
        # What the next subspace is estimated from: sums over all arms so far, or a sample of them.
        self._offered: Offered = self.subspace.no_arms(
            self.dim, seed=self.seed, count_pairs=isinstance(self.observe_prob, str)
        )
        self._played = Played(self.dim)
        self._epoch: Epoch | None = None
        self._log: tuple[EpochRecord, ...] = ()

    def _prepare(self, slate: Slate) -> None:
        """Open an epoch if one is due, from the slates before this one, and keep this one."""
        round = self._round + 1
        if self.horizon is not None and round > self.horizon:
            raise HorizonReachedError(
                f"all {self.horizon} rounds of the horizon are played: use horizon=None for a "
                "policy without an end"
            )
        start = self.schedule.burn_in + 1
        if self._epoch is not None:
            start = self.schedule.next_start(self._epoch.record.round)
        if round >= start:
            self._open_epoch(round)
        self._offer(slate)

    def _open_epoch(self, round: int) -> None:
        """Open an epoch, and let it learn the earlier rewards that are replayed."""
        epoch = Epoch.open(self, self._offered, round, self._latest_epoch + 1)
        is_first, plays = self._first_playing is None, epoch.record.rank > 0
        if plays and self._played:
            epoch.replay(*self._rewards_to_replay(is_first=is_first))
        self._log, self._epoch = self.epoch_log, epoch
        if plays and is_first:
            later = [self.replay.replays(by_burn_in=each, is_first=False) for each in (True, False)]
            if not any(later):  # nothing will be replayed again: free the memory
                self._played = Played(self.dim)

    def _rewards_to_replay(self, *, is_first: bool) -> tuple[FloatArray, FloatArray]:
        """Return the played arms and their rewards that a new epoch learns again."""
        arms, rewards, rounds = self._played.samples()
        log = self.epoch_log
        # The burn-in policy played before the first epoch and in epochs of rank 0.
        ranks = np.array([0, *(record.rank for record in log)])
        by_burn_in = ranks[np.searchsorted([each.round for each in log], rounds, "right")] == 0
        kept = np.where(
            by_burn_in,
            self.replay.replays(by_burn_in=True, is_first=is_first),
            self.replay.replays(by_burn_in=False, is_first=is_first),
        )
        return arms[kept], rewards[kept]

    def _offer(self, slate: Slate) -> None:
        self._offered = self._offered.fork()
        self._offered.add(slate._table)

    def _observe(self, slate: Slate) -> None:
        """Add the arms to those from which the next subspace is estimated."""
        self._burner = self._burner._fork()
        self._burner._observe(slate)
        self._offer(slate)

    def decide(self, slate: Slate) -> Choice:
        """Choose in the coordinates of the current epoch, or let the burn-in policy choose."""
        epoch = self._playing
        if epoch is not None:
            return Choice(*epoch.score(slate), epoch.record.epoch)
        self._burner = self._burner._fork()
        self._burner._key = self._key  # it draws from the streams of the same decision
        choice, note = self._burner._play(slate)
        return choice._replace(epoch=self._latest_epoch, inner=note)

    def _advance(self, slate: Slate, arm: int, inner: Note | None = None) -> Note:
        """Let the burn-in policy count the round, if it plays and has not when it chose."""
        if inner is None and self._playing is None:
            self._burner = self._burner._fork()
            inner = self._burner._advance(slate, arm)
        return super()._advance(slate, arm, inner)

    def update(self, note: Note, reward: float) -> None:
        """Add the reward to the epoch's regression, or keep it for a later epoch."""
        first = self._first_playing
        if self._is_replayed(note, is_first=first is None):  # by an epoch that is still to open
            self._played = self._played.fork()
            self._played.append(note.round, note.arm, reward)
        epoch = self._playing
        if epoch is not None:
            index = epoch.record.epoch
            is_own = note.inner is None and note.epoch == index
            if is_own or self._is_replayed(note, is_first=first == index):
                self._epoch = epoch.fork()
                self._epoch.learn(note.arm, reward)
        if note.inner is not None:
            self._burner = self._burner._fork()
            self._burner.update(note.inner, reward)

    def _is_replayed(self, note: Note, *, is_first: bool) -> bool:
        """Return whether an epoch, perhaps the first that plays, learns a reward again."""
        replays: bool = self.replay.replays(by_burn_in=note.inner is not None, is_first=is_first)
        return replays

    # The epochs so far

    @property
    def _playing(self) -> Epoch | None:
        """The current epoch; None if the burn-in policy plays, before it or because of rank 0."""
        return self._epoch if self._epoch is not None and self._epoch.record.rank > 0 else None

    @property
    def _first_playing(self) -> int | None:
        """Index of the first epoch with a rank above 0."""
        for record in self._log:
            if record.rank > 0:
                return record.epoch
        return None if self._playing is None else self._playing.record.epoch

    @property
    def _latest_epoch(self) -> int:
        return -1 if self._epoch is None else self._epoch.record.epoch

    def _check_note(self, note: Note) -> None:
        """Raise an error if this policy cannot have made the decision of a note."""
        super()._check_note(note)
        if note.inner is not None:
            self._burner._check_note(note.inner)

    @property
    def epoch_log(self) -> tuple[EpochRecord, ...]:
        """One record for each epoch opened so far."""
        current = () if self._epoch is None else (self._epoch.record,)
        return (*self._log, *current)

    @property
    def basis(self) -> FloatArray | None:
        """The frozen basis of the current epoch, shape (dim, rank); None during the burn-in."""
        return None if self._epoch is None else self._epoch.basis

    @property
    def current_rank(self) -> int:
        """Rank of the current epoch; the number of features while the burn-in policy plays."""
        epoch = self._playing
        return self.dim if epoch is None else epoch.record.rank

    def _diagnostics(self) -> dict[str, Any]:
        """Return the ranks of all epochs and the top of the last epoch's spectrum."""
        log = self.epoch_log
        return {
            "epoch_starts": [record.round for record in log],
            "epoch_ranks": [record.rank for record in log],
            "eigenvalues": list(log[-1].eigenvalues) if log else [],
            "threshold": log[-1].threshold if log else None,
        }

    # The variants of the paper

    @classmethod
    def algorithm_1(cls, *, arm_bound: float, **settings: Any) -> "TofuPov":
        """Algorithm 1 with the settings of the regret theorem.

        λ = 4B_X², t_b from the theory, δ_e, the misspecification bonus, imputation without a ridge,
        no replay. Needs `n_arms`, `last_eigenvalue` and `observe_prob`. Without a ridge, an arm
        whose seen entries do not identify it raises an error, and at practical sizes there are such
        arms: set `impute_ridge` above 0 to avoid it.

        The theorem also needs a p of at least `theory.observe_prob_condition` and arms no longer
        than `arm_bound`, which nothing checks.

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
            "follows_theorem": True,
        }
        return cls(arm_bound=arm_bound, **(defaults | settings))

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
    def rank_adaptive(cls, **settings: Any) -> "TofuPov":
        """RA-TOFU of the paper's figures: `practical` with the published spectral threshold."""
        return cls.practical(**({"rank": PracticalThreshold()} | settings))

    @classmethod
    def full_history(cls, **settings: Any) -> "TofuPov":
        """TOFU-FH of the paper's figures: all rewards replayed at every epoch."""
        return cls(**({"replay": "full"} | settings))

    @classmethod
    def rank_adaptive_full_history(cls, **settings: Any) -> "TofuPov":
        """RA-TOFU-FH of the paper's figures: `rank_adaptive` with all rewards replayed."""
        return cls.rank_adaptive(**({"replay": "full"} | settings))


@register_policy
class TwoPhase(TofuPov):
    """TOFU-POV with a single epoch: the subspace of the first `split` rounds is used to the end.

    The paper compares it with repeated epochs. Its bound is a sum of τ and T/√τ, up to constants,
    and these balance at τ = T^(2/3), where both are T^(2/3). That is the rate of the bound. Where
    the frozen subspace costs less than the bound says, a shorter first phase pays less.

    Examples
    --------
    >>> policy = TwoPhase(dim=4, rank=1, observe_prob=0.5, horizon=1000)
    >>> policy.schedule.burn_in
    100
    """

    split: int | float = custom(
        default=2 / 3,
        check=lambda name, value: _checked_split(name, value),
        kind="int or float",
        doc="""τ, the rounds of the first phase, or a power a in (0, 1) for τ = ⌈T^a⌉, which needs
    `horizon`.""",
    )
    replay: Any = replay_param(
        "none",
        doc="""Whether rewards of the first phase enter the second. "none" is the paper's strategy,
    whose second phase starts afresh: its confidence set requires that the frozen subspace does not
    depend on the rewards in the regression. "burn-in" is the stronger baseline in practice.""",
    )

    growth = math.inf  # a single epoch, which gets the whole share of δ
    follows_theorem = False
    n_arms = None

    @property  # type: ignore[misc]
    def burn_in(self) -> int:  # type: ignore[override]
        """Number of rounds of the first phase."""
        if isinstance(self.split, int):
            return self.split
        if self.horizon is None:
            raise InvalidSettingError(
                f"split={self.split!r} needs a horizon, got None: give a number of rounds"
            )
        return power_split(self.horizon, self.split)


def _checked_split(name: str, split: Any) -> int | float:
    if isinstance(split, float):
        return checks.real(f"{name} (a power of T)", split, 0.0, 1.0, low_open=True, high_open=True)
    return checks.integer(name, split, 1, checks.LARGEST_HORIZON)
