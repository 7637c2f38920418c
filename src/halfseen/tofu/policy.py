"""TOFU-POV: OFUL in the coordinates of an estimated subspace, frozen per epoch."""

import math
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from halfseen import checks, theory
from halfseen.baselines.ambient import AmbientOful
from halfseen.baselines.trivial import Uniform
from halfseen.errors import HorizonReachedError, InvalidSettingError
from halfseen.linear.covariance import ObserveProb
from halfseen.linear.history import LARGEST_GROWTH, Played
from halfseen.linear.lift import checked_impute_ridge
from halfseen.params import custom, flag, integer, real
from halfseen.policies.abilities import Reports
from halfseen.policies.base import Policy
from halfseen.policies.optimism import Optimism, scale_param
from halfseen.policies.registry import InnerPolicy, register_policy, registered
from halfseen.state import Each, Maybe, Part
from halfseen.tofu.epoch import (
    EPOCH,
    RECORD,
    Epoch,
    EpochRecord,
    EpochSchedule,
    Radius,
    SelfNormalized,
    replay_param,
)
from halfseen.tofu.imputation import Imputation, LeastSquares
from halfseen.tofu.ingredient import ingredient
from halfseen.tofu.rank import FixedRank, Known, PaperThreshold, PracticalThreshold, rank_param
from halfseen.tofu.subspace import (
    COUNTED,
    UNKNOWN,
    CorrectedCovariance,
    Offered,
    SubspaceEstimator,
)
from halfseen.values import LARGEST, Choice, FloatArray, Note, Slate

# Below this, divisions by p² could overflow.
_SMALLEST_PROB = 1e-6
_BURN_IN_POLICIES = ("zero-filled", "uniform")


def _checked_burn_in_policy(name: str, value: Any) -> Any:
    """Return a policy, or the word for one, after a check; a plain form becomes a policy."""
    if isinstance(value, dict) and {"policy", "settings"} <= value.keys():
        return registered(value["policy"])(**value["settings"])
    if isinstance(value, Policy) or (isinstance(value, str) and value in _BURN_IN_POLICIES):
        return value
    raise InvalidSettingError(f"{name} must be 'zero-filled', 'uniform' or a Policy, got {value!r}")


def _plain_policy(value: Any) -> Any:
    if isinstance(value, Policy):
        return {"policy": type(value).__name__, "settings": value.settings()}
    return value


def _checked_burn_in(name: str, burn_in: Any) -> int | str:
    if isinstance(burn_in, str):
        return checks.one_of(f"{name} (a number of rounds or a word)", burn_in, ("theory",))
    return checks.integer(name, burn_in, 1, checks.LARGEST_HORIZON)


def _checked_observe_prob(name: str, observe_prob: Any) -> ObserveProb | str:
    if isinstance(observe_prob, str):
        return checks.one_of(f"{name} (numbers or a word)", observe_prob, (UNKNOWN, COUNTED))
    if observe_prob is None:
        return UNKNOWN
    if not hasattr(observe_prob, "__len__"):
        return checks.real(name, observe_prob, _SMALLEST_PROB, 1.0)
    try:
        probs = np.array(observe_prob, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidSettingError(
            f"{name} must be one number in (0, 1] or one per feature, got {observe_prob!r}"
        ) from None
    for feature, prob in enumerate(probs.ravel()):
        checks.real(f"{name}[{feature}]", float(prob), _SMALLEST_PROB, 1.0)
    probs.setflags(write=False)
    return probs


def _checked_split(name: str, split: Any) -> int | float:
    if isinstance(split, float):
        return checks.real(f"{name} (a power of T)", split, 0.0, 1.0, low_open=True, high_open=True)
    return checks.integer(name, split, 1, checks.LARGEST_HORIZON)


@register_policy
class TofuPov(Optimism, Reports, Policy):
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

    rank: Any = rank_param(
        doc="""Dimension of the subspace, or a rule that chooses it: `FixedRank`,
    `PracticalThreshold`, `PaperThreshold`, `ConstantThreshold`.""",
    )
    subspace: Any = ingredient(
        SubspaceEstimator,
        default=CorrectedCovariance(),
        doc="How the covariance of the arms is estimated, whose top directions span the subspace.",
    )
    observe_prob: Any = custom(
        check=_checked_observe_prob,
        plain=lambda prob: prob.tolist() if isinstance(prob, np.ndarray) else prob,
        kind='float, array of shape (dim,), "unknown" or "counted"',
        doc="""Probability that an entry is seen: one number for all features, one per feature, or
    the share of arms so far that showed the feature ("counted"). If "unknown" (or None), each pair
    of features is corrected by how often both were seen.""",
    )
    horizon: int | None = integer(
        default=None,
        low=1,
        high=checks.LARGEST_HORIZON,
        doc="Number of rounds. Without it, rounds are unlimited and no formula uses a horizon.",
    )
    burn_in: int | str = custom(
        default=30,
        check=_checked_burn_in,
        kind='int or "theory"',
        doc="""Rounds before the first epoch; "theory" needs `n_arms`, `last_eigenvalue` and
    `horizon`.""",
    )
    burn_in_policy: Any = custom(
        default="zero-filled",
        check=_checked_burn_in_policy,
        plain=_plain_policy,
        kind='"zero-filled", "uniform" or Policy',
        doc="""The policy of the burn-in and of epochs of rank 0. It learns from its own decisions.
    Its horizon, if any, must not end before this policy's.""",
    )
    noise_scale: float = scale_param(
        0.5,
        doc="""R: rewards differ from their means by about this much (they are R-sub-Gaussian).
    0.5 holds for all rewards in [0, 1]; if you know that their noise has a smaller standard
    deviation, set it, and the policy explores less. The paper's synthetic studies have 0.05.""",
    )
    arm_bound: float = real(default=1.0, low=1 / LARGEST, high=LARGEST, doc="B_X.")
    top_eigenvalue: float | None = real(
        default=None,
        low=1 / LARGEST**2,
        high=LARGEST**2,
        doc="λ̄ for `PaperThreshold` and the bonus; by default B_X².",
    )
    last_eigenvalue: float | None = real(
        default=None,
        low=1 / LARGEST**2,
        high=LARGEST**2,
        doc="λ_m, for the bonus and the theory's burn-in.",
    )
    n_arms: int | None = integer(default=None, low=1, doc="K, used by the theory's burn-in only.")
    bonus_scale: float = scale_param(
        0.0,
        doc="""Misspecification bonus in the radius: 0 is off, 1 as in the paper. Above 0 it needs
    `last_eigenvalue`.""",
    )
    impute_ridge: float = custom(
        default=1e-5,
        check=lambda name, value: checked_impute_ridge(value),
        kind="float",
        doc="""ρ ≥ 0 of the imputation. With 0, as in the paper, an arm whose seen entries do not
    identify it raises `Unidentifiable`.""",
    )
    imputation: Any = ingredient(
        Imputation,
        default=None,
        doc="""How seen entries determine latent coordinates; by default `LeastSquares` with
    `impute_ridge`.""",
    )
    radius: Any = ingredient(
        Radius,
        default=SelfNormalized(),
        doc="The factor of the widths in scores; by default the radius of the paper.",
    )
    replay: Any = replay_param(
        "full", doc="Which earlier rewards enter the regression of a new epoch (`Replay`)."
    )
    follows_theorem: bool = flag(
        default=False,
        doc="""Whether δ is divided among epochs as in the regret theorems, which count them. If
    not, it is divided as in the published runs, by the bound ⌈log₂ T⌉ + 2. `algorithm_1` sets
    it.""",
    )
    growth: float = real(
        default=2.0,
        low=1.0,
        high=LARGEST_GROWTH,
        low_open=True,
        doc="Factor between epoch starts; 2 in the paper.",
    )
    seed: int = integer(
        default=0,
        low=0,
        doc="Seed of the uniform burn-in policy, and of the sample of arms that `subspace` keeps.",
    )

    STATE: ClassVar = {
        "_offered": Part(),
        "_played": Part(),
        "_log": Each(RECORD),
        "_epoch": Maybe(EPOCH),
        "_burner": InnerPolicy(),
    }

    needs = ("dim", "rank", "observe_prob", "horizon", "noise_scale", "seed")

    def setup(self) -> None:
        """Check parameters against each other; start with no arms, no rewards and no epoch."""
        self.imputes: Imputation = self.imputation or LeastSquares(ridge=self.impute_ridge)
        self._check_together()
        burn_in = self.theory_burn_in() if isinstance(self.burn_in, str) else self.burn_in
        self.schedule = EpochSchedule(burn_in, self.growth)
        self._n_epochs = self._count_epochs()
        self._burner = self.new_burn_in_policy()
        # What the next subspace is estimated from: sums over all arms so far, or a sample of them.
        self._offered: Offered = self.subspace.no_arms(
            self.dim, seed=self.seed, observe_prob=self.observe_prob, rank=self._fixed_rank
        )
        self._played = Played(self.dim)
        self._epoch: Epoch | None = None
        self._log: tuple[EpochRecord, ...] = ()

    def prepare(self, slate: Slate) -> None:
        """Open an epoch if one is due, from the slates before this one, and keep this one."""
        round = self.round + 1
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
        self._offer(slate, round)
        if self._playing is None:
            self._burner = self._burner.fork()
            self._burner.prepare(slate)

    def _open_epoch(self, round: int) -> None:
        """Open an epoch, and let it learn the earlier rewards that are replayed."""
        epoch = Epoch.open(self, self._offered, round, self.latest_epoch + 1)
        is_first, plays = self._first_playing is None, epoch.record.rank > 0
        if plays and self._played:  # only what is replayed was kept
            epoch.replay(*self._played.samples()[:2])
        self._log, self._epoch = self.epoch_log, epoch
        if plays and is_first:
            self._played = self._played.kept(self._is_kept)

    def _is_kept(self, round: int, arm: FloatArray) -> bool:
        """Return whether a reward is still replayed after the first epoch that plays."""
        # Before that epoch the burn-in policy played.
        kept: bool = self.replay.is_replayed(round=round, arm=arm, by_burn_in=True, is_first=False)
        return kept

    def _offer(self, slate: Slate, round: int) -> None:
        if self.subspace.uses(round):
            self._offered = self._offered.fork()
            self._offered.add(slate.table)

    def collect(self, slate: Slate) -> None:
        """Add the arms to those from which the next subspace is estimated."""
        self._burner = self._burner.fork()
        self._burner.collect(slate)
        self._offer(slate, self.round + 1)

    def decide(self, slate: Slate) -> Choice:
        """Choose in the coordinates of the current epoch, or let the burn-in policy choose."""
        epoch = self._playing
        if epoch is not None:
            return Choice(*epoch.score(slate), epoch.record.epoch)
        return self._burner.decide(slate)._replace(epoch=self.latest_epoch)

    def advance(self, slate: Slate, arm: int) -> Note:
        """Let the burn-in policy count the round as well, if it plays."""
        note = super().advance(slate, arm)
        if self._playing is not None:
            return note
        self._burner = self._burner.fork()
        return note._replace(inner=self._burner.advance(slate, arm))

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
            self._burner = self._burner.fork()
            self._burner.update(note.inner, reward)

    def _is_replayed(self, note: Note, *, is_first: bool) -> bool:
        """Return whether an epoch, perhaps the first that plays, learns a reward again."""
        replays: bool = self.replay.is_replayed(
            round=note.round, arm=note.arm, by_burn_in=note.inner is not None, is_first=is_first
        )
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
    def latest_epoch(self) -> int:
        """Index of the latest epoch; −1 if there is none."""
        return -1 if self._epoch is None else self._epoch.record.epoch

    def check_note(self, note: Note) -> None:
        """Raise an error if this policy cannot have made the decision of a note."""
        super().check_note(note)
        if note.inner is not None:
            self._burner.check_note(note.inner)

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

    def diagnostics(self) -> dict[str, Any]:
        """Return the ranks of all epochs and the top of the last epoch's spectrum."""
        log = self.epoch_log
        return {
            "epoch_starts": [record.round for record in log],
            "epoch_ranks": [record.rank for record in log],
            "eigenvalues": list(log[-1].eigenvalues) if log else [],
            "threshold": log[-1].threshold if log else None,
        }

    # What follows from the parameters

    def _check_together(self) -> None:
        """Raise `InvalidSettingError` if parameters contradict each other."""
        self.rank.check(self.dim)
        self.subspace.check(self.dim)
        self.imputes.check(self.dim)
        for part in (self.rank, self.imputes):
            if part.needs_eigenvalues and not self.subspace.has_eigenvalues:
                raise InvalidSettingError(
                    f"{type(part).__name__} needs eigenvalues, which {type(self.subspace).__name__}"
                    " does not estimate: give rank a number, leave out imputation, or set "
                    "needs_eigenvalues = False in a class that does without"
                )
        prob = self.observe_prob
        if isinstance(prob, np.ndarray) and prob.shape != (self.dim,):
            raise InvalidSettingError(
                f"observe_prob must be one number or one per feature, shape ({self.dim},), got "
                f"shape {prob.shape}"
            )
        if self.last_eigenvalue is not None:
            top = self.eigenvalue_bound
            checks.real("last_eigenvalue", self.last_eigenvalue, 0.0, top, low_open=True)
        elif self.bonus_scale:
            raise InvalidSettingError(
                "bonus_scale > 0 needs last_eigenvalue (λ_m of the arms' covariance), got None"
            )

    @property
    def _fixed_rank(self) -> int | None:
        return self.rank.rank if isinstance(self.rank, FixedRank) else None

    @property
    def eigenvalue_bound(self) -> float:
        """λ̄, by default B_X², which is always valid: λ₁ ≤ E‖x‖² ≤ B_X²."""
        return self.arm_bound**2 if self.top_eigenvalue is None else self.top_eigenvalue

    @property
    def lemma_failure_prob(self) -> float:
        """δ_rep/4, the δ of the lemmas on the representation.

        δ_rep is half of δ. If the rank is chosen, it is a quarter, and δ_rank is another quarter.
        """
        share = 2.0 if isinstance(self.rank, FixedRank) else 4.0
        return self.failure_prob / share / 4.0

    def epoch_failure_prob(self, epoch: int) -> float:
        """Return δ_e, the share of δ of an epoch.

        With a horizon δ_e = δ / (2·number of epochs), without one δ / (2(e + 1)(e + 2)): both sum
        to at most δ/2.
        """
        if self._n_epochs is None:
            return self.failure_prob / (2.0 * (epoch + 1) * (epoch + 2))
        return self.failure_prob / (2.0 * self._n_epochs)

    def _count_epochs(self) -> int | None:
        """Return the number of epochs among which δ is divided; None without a horizon.

        For g = 2 that is the paper's bound ⌈log₂ T⌉ + 2, as in the published runs.
        """
        horizon = self.horizon
        if horizon is None:
            return None
        if self.growth == 2.0 and not self.follows_theorem:
            return theory.n_epochs_bound(horizon)
        if self.growth == 2.0 and not isinstance(self.rank, FixedRank):
            return theory.rank_adaptive_n_epochs(horizon)
        return max(1, len(self.schedule.starts(horizon)))

    def misspecification(self, known: Known) -> float:
        """Return b_e of the epoch that opens, times the bonus scale.

        At most `LARGEST`, which already outweighs everything else.
        """
        if self.bonus_scale == 0.0 or self.last_eigenvalue is None:
            return 0.0
        error = theory.subspace_error(
            n_arms=known.n_arms,
            arm_bound=self.arm_bound,
            top_eigenvalue=self.eigenvalue_bound,
            last_eigenvalue=self.last_eigenvalue,
            observe_prob=known.observe_prob,
            log_term=known.log_term(self.dim, self.lemma_failure_prob),
        )
        bias = theory.misspecification(
            theta_bound=self.theta_bound,
            arm_bound=self.arm_bound,
            observe_prob=known.observe_prob,
            subspace_error=min(error, LARGEST),
        )
        return min(self.bonus_scale * bias, LARGEST)

    def new_burn_in_policy(self) -> Policy:
        """Return a fresh policy for the burn-in."""
        chosen = self.burn_in_policy
        if isinstance(chosen, Policy):
            if chosen.dim != self.dim:
                raise InvalidSettingError(
                    f"burn_in_policy must have dim {self.dim}, got {chosen.dim}"
                )
            return deepcopy(chosen)  # others may use the given one as well
        if chosen == "uniform":
            return Uniform(dim=self.dim, seed=self.seed)
        return AmbientOful(dim=self.dim, **self.optimism() | {"radius_scale": 1.0})

    def theory_burn_in(self) -> int:
        """Return t_b of the theorem.

        Raises
        ------
        InvalidSettingError
            What it depends on is not given, or it is longer than anything that can be played.
        """
        prob, last = self.observe_prob, self.last_eigenvalue
        n_arms, horizon = self.n_arms, self.horizon
        if last is None or n_arms is None or horizon is None or isinstance(prob, str):
            raise InvalidSettingError(
                "burn_in='theory' needs last_eigenvalue, n_arms, horizon and observe_prob, got "
                f"{last}, {n_arms}, {horizon} and {prob}: give them or a number"
            )
        problem = theory.Problem(
            dim=self.dim,
            rank=self._fixed_rank or 1,
            n_arms=n_arms,
            horizon=horizon,
            observe_prob=float(np.min(prob)),
            arm_bound=self.arm_bound,
            top_eigenvalue=self.eigenvalue_bound,
            last_eigenvalue=last,
            incoherence=1.0,  # t_b depends neither on this nor on what follows
            theta_bound=1.0,
            noise_scale=1.0,
        )
        return theory.burn_in_length(problem, failure_prob=self.lemma_failure_prob)

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
    arms are independent draws from a continuous law, the loss per round is quadratic in the error
    of the subspace: regret is about τ + T/τ, and a shorter first phase pays less.

    Examples
    --------
    >>> policy = TwoPhase(dim=4, rank=1, observe_prob=0.5, horizon=1000)
    >>> policy.schedule.burn_in
    100
    """

    split: int | float = custom(
        default=2 / 3,
        check=_checked_split,
        kind="int or float",
        doc="""τ, the rounds of the first phase, or a power a in (0, 1) for τ = ⌈T^a⌉, which needs
    `horizon`.""",
    )
    replay: Any = replay_param(
        "none",
        doc="""Whether rewards of the first phase enter the second. "none" is the paper's strategy,
    whose second phase starts afresh. "burn-in" is the stronger baseline in practice.""",
    )

    # A single epoch, which gets the whole share of δ.
    growth: ClassVar[float] = math.inf  # type: ignore[misc]
    follows_theorem: ClassVar[bool] = False  # type: ignore[misc]
    n_arms: ClassVar[None] = None  # type: ignore[misc]

    @property  # type: ignore[misc]
    def burn_in(self) -> int:  # type: ignore[override]
        """Number of rounds of the first phase."""
        if isinstance(self.split, int):
            return self.split
        if self.horizon is None:
            raise InvalidSettingError(
                f"split={self.split!r} needs a horizon, got None: give a number of rounds"
            )
        return theory.power_split(self.horizon, self.split)
