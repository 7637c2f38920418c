"""TOFU-POV: OFUL in the coordinates of an estimated subspace, frozen per epoch."""

import math
import sys
import warnings
from copy import deepcopy
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from halfseen import checks, theory
from halfseen.errors import HorizonReachedError, InvalidSettingError
from halfseen.linear.covariance import LARGEST_DENSE_DIM, ObserveProb
from halfseen.linear.history import LARGEST_GROWTH, Played
from halfseen.linear.lift import checked_impute_ridge
from halfseen.params import custom, flag, integer, real
from halfseen.policies.ambient import AmbientOful, ridge_param, scale_param
from halfseen.policies.base import Policy
from halfseen.policies.registry import InnerPolicy, register_policy, registered
from halfseen.policies.trivial import Uniform
from halfseen.state import Each, Maybe, Part, Whole
from halfseen.theory import balanced_split, power_split
from halfseen.tofu.epoch import EPOCH, RECORD, Epoch, EpochRecord, EpochSchedule
from halfseen.tofu.imputation import Imputation, LeastSquares
from halfseen.tofu.ingredient import ingredient
from halfseen.tofu.rank import FixedRank, PaperThreshold, PracticalThreshold, RankRule, as_rule
from halfseen.tofu.replay import Replay, checked_replay, plain_replay
from halfseen.tofu.subspace import COUNTED, UNKNOWN, CorrectedCovariance, Offered, SubspaceEstimator
from halfseen.values import LARGEST, Choice, FloatArray, Note, Slate

_WORDS = ("zero-filled", "uniform")


def checked_burn_in_policy(name: str, value: Any) -> Any:
    """Return a policy, the word for one, or its plain form, after a check."""
    is_plain = isinstance(value, dict) and {"policy", "settings"} <= value.keys()
    if isinstance(value, Policy) or is_plain or (isinstance(value, str) and value in _WORDS):
        return value
    raise InvalidSettingError(f"{name} must be 'zero-filled', 'uniform' or a Policy, got {value!r}")


def policy_to_plain(value: Any) -> Any:
    """Return plain JSON types from which `burn_in_policy_of` can build the policy again."""
    if isinstance(value, Policy):
        return {"policy": type(value).__name__, "settings": value.settings()}
    return value


def burn_in_policy_of(params: "TofuParams") -> Policy:
    """Return a fresh burn-in policy according to the parameters."""
    value = params.burn_in_policy
    if value is None:
        value = "zero-filled" if params.fits_dense else "uniform"
    if isinstance(value, dict):
        value = registered(value["policy"])(**value["settings"])
    if isinstance(value, Policy):
        if value.dim != params.dim:
            raise InvalidSettingError(f"burn_in_policy must have dim {params.dim}, got {value.dim}")
        return deepcopy(value)  # others may use the given one, too
    if value == "uniform":
        return Uniform(dim=params.dim, seed=params.seed)
    return AmbientOful(
        dim=params.dim,
        ridge=params.ridge,
        failure_prob=params.failure_prob,
        theta_bound=params.theta_bound,
        noise_scale=params.noise_scale,
    )


# Below this, divisions by p² could overflow.
SMALLEST_PROB = 1e-6

REPLAYS = tuple(mode.value for mode in Replay)


class TofuParams(Policy):
    """Parameters of TOFU-POV, and quantities derived from them."""

    rank: Any = custom(
        check=lambda name, value: as_rule(value),
        plain=lambda rule: rule.to_dict(),
        kind="int or RankRule",
        doc="""Dimension of the subspace, or a rule that chooses it: `FixedRank`,
    `PracticalThreshold`, `PaperThreshold`, `ConstantThreshold`.""",
    )
    subspace: Any = ingredient(
        SubspaceEstimator,
        default=CorrectedCovariance(),
        doc="How the covariance of the arms is estimated, whose top directions span the subspace.",
    )
    observe_prob: Any = custom(
        check=lambda name, value: _checked_observe_prob(value),
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
        check=lambda name, value: _checked_burn_in(name, value),
        kind='int or "theory"',
        doc='Rounds before the first epoch; "theory" needs `n_arms` and `last_eigenvalue`.',
    )
    burn_in_policy: Any = custom(
        default=None,
        check=lambda name, value: checked_burn_in_policy(name, value),
        plain=lambda policy: policy_to_plain(policy),
        kind='"zero-filled", "uniform" or Policy',
        doc="""The policy of the burn-in and of epochs of rank 0; by default "zero-filled", or
    "uniform" beyond 8192 features. It learns from its own decisions. Its horizon, if any, must not
    end before this policy's.""",
    )
    ridge: float = ridge_param(doc="λ.")
    failure_prob: float = custom(default=0.05, check=checks.failure_prob, kind="float", doc="δ.")
    theta_bound: float = scale_param(1.0, doc="S.")
    noise_scale: float = scale_param(0.5, doc="R; 0.5 for rewards in [0, 1].")
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
    replay: Any = custom(
        default="full",
        check=lambda name, value: checked_replay(name, value, REPLAYS),
        plain=plain_replay,
        kind='"none", "burn-in-once", "burn-in", "full" or ReplayRule',
        doc="Which earlier rewards enter the regression of a new epoch (`Replay`).",
    )
    follows_theorem: bool = flag(
        default=False,
        doc="""Whether δ is divided among epochs as in the regret theorems, which count them, and an
    arm longer than `arm_bound` causes a `PremiseWarning`. If not, δ is divided as in the published
    runs, by the bound ⌈log₂ T⌉ + 2. `algorithm_1` sets it.""",
    )
    growth: float = real(
        default=2.0,
        low=1.0,
        high=LARGEST_GROWTH,
        low_open=True,
        doc="Factor between epoch starts; 2 in the paper.",
    )
    radius_scale: float = scale_param(1.0, doc="Multiplies the radius; 1 as in the theory.")
    memory_bytes: int = integer(
        default=64_000_000,
        low=1,
        doc="Memory for the uniform sample of arms, kept beyond 8192 features or by `subspace`.",
    )
    seed: int = integer(
        default=0,
        low=0,
        doc="Seed of that sample and of the uniform burn-in policy.",
    )

    def setup(self) -> None:
        """Check parameters against each other and make the schedule of epochs."""
        self.imputes: Imputation = self.imputation or LeastSquares(ridge=self.impute_ridge)
        self.check_together()
        burn_in = self.theory_burn_in() if isinstance(self.burn_in, str) else self.burn_in
        self.schedule = EpochSchedule(burn_in=burn_in, growth=self.growth)

    def check_together(self) -> None:
        """Raise `InvalidSettingError` if parameters contradict each other."""
        self.rank.check(self.dim)
        self.subspace.check(self.dim)
        self.imputes.check(self.dim)
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
    def eigenvalue_bound(self) -> float:
        """λ̄, by default B_X², which is always valid: λ₁ ≤ E‖x‖² ≤ B_X²."""
        return self.arm_bound**2 if self.top_eigenvalue is None else self.top_eigenvalue

    @property
    def fits_dense(self) -> bool:
        """Whether a dim × dim matrix fits in memory; if not, nothing works in all features."""
        return self.dim <= LARGEST_DENSE_DIM

    def no_arms(self) -> Offered:
        """Return an empty collection of offered arms that suits these settings."""
        offered: Offered = self.subspace.no_arms(
            self.dim,
            memory_bytes=self.memory_bytes,
            seed=self.seed,
            count_pairs=isinstance(self.observe_prob, str),
        )
        return offered

    @property
    def lemma_failure_prob(self) -> float:
        """δ_rep/4, the δ of the lemmas on the representation.

        δ_rep is half of δ. If the rank is chosen, it is a quarter, and δ_rank is another quarter.
        """
        share = 2.0 if isinstance(self.rank, FixedRank) else 4.0
        return self.failure_prob / share / 4.0

    def epoch_failure_prob(self, epoch: int) -> float:
        """Return δ_e, the share of δ of an epoch."""
        horizon = self.horizon
        if not self.follows_theorem or horizon is None or self.growth != 2.0:
            return self.schedule.failure_prob(self.failure_prob, epoch, horizon)
        if isinstance(self.rank, FixedRank):
            count = theory.n_epochs(burn_in=self.schedule.burn_in, horizon=horizon)
        else:
            count = theory.rank_adaptive_n_epochs(horizon)
        return self.failure_prob / (2.0 * max(1, count))

    def misspecification(self, *, n_arms: int, round: int, observe_prob: float) -> float:
        """Return b_e for a subspace estimated from `n_arms` arms, times the bonus scale.

        At most `LARGEST`, which already outweighs everything else.
        """
        if self.bonus_scale == 0.0 or self.last_eigenvalue is None:
            return 0.0
        error = theory.subspace_error(
            n_arms=n_arms,
            arm_bound=self.arm_bound,
            top_eigenvalue=self.eigenvalue_bound,
            last_eigenvalue=self.last_eigenvalue,
            observe_prob=observe_prob,
            log_term=theory.log_term(
                dim=self.dim,
                failure_prob=self.lemma_failure_prob,
                horizon=self.horizon,
                round=round,
            ),
        )
        bias = theory.misspecification(
            theta_bound=self.theta_bound,
            arm_bound=self.arm_bound,
            observe_prob=observe_prob,
            subspace_error=min(error, LARGEST),
        )
        return min(self.bonus_scale * bias, LARGEST)

    def theory_burn_in(self) -> int:
        """Return t_b of the theorem.

        Raises
        ------
        InvalidSettingError
            What it depends on is not given, or it is longer than anything that can be played.
        """
        prob = self.observe_prob
        if (
            self.last_eigenvalue is None
            or self.n_arms is None
            or not isinstance(prob, float | np.ndarray)
        ):
            raise InvalidSettingError(
                "burn_in='theory' needs last_eigenvalue, n_arms and observe_prob, got "
                f"{self.last_eigenvalue}, {self.n_arms} and {prob}: give them or a number"
            )
        return theory.burn_in_length(
            dim=self.dim,
            n_arms=self.n_arms,
            arm_bound=self.arm_bound,
            top_eigenvalue=self.eigenvalue_bound,
            last_eigenvalue=self.last_eigenvalue,
            observe_prob=float(np.min(prob)),
            failure_prob=self.lemma_failure_prob,
            horizon=self.horizon,
        )


def _checked_burn_in(name: str, burn_in: Any) -> int | str:
    if isinstance(burn_in, str):
        return checks.one_of(f"{name} (a number of rounds or a word)", burn_in, ("theory",))
    return checks.integer(name, burn_in, 1, checks.LARGEST_HORIZON)


def _checked_prob(name: str, value: Any) -> float:
    prob = checks.probability(name, value)
    return checks.real(name, prob, SMALLEST_PROB, 1.0)


def _checked_observe_prob(observe_prob: Any) -> ObserveProb | str:
    if isinstance(observe_prob, str):
        return checks.one_of("observe_prob (numbers or a word)", observe_prob, (UNKNOWN, COUNTED))
    if observe_prob is None:
        return UNKNOWN
    if isinstance(observe_prob, np.ndarray) and observe_prob.ndim == 0:
        observe_prob = observe_prob.item()
    if isinstance(observe_prob, Real) or not hasattr(observe_prob, "__len__"):
        return _checked_prob("observe_prob", observe_prob)
    try:
        probs = np.array(observe_prob, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidSettingError(
            f"observe_prob must be one number in (0, 1] or one per feature, got {observe_prob!r}"
        ) from None
    for feature, prob in enumerate(probs.ravel()):
        _checked_prob(f"observe_prob[{feature}]", float(prob))
    probs.setflags(write=False)
    return probs


_ROUNDING = 1e-9


class PremiseWarning(UserWarning):
    """A premise of the regret theorem does not hold, so that its bound is not proved.

    Examples
    --------
    >>> import warnings
    >>> from halfseen import TofuPov
    >>> small = {"dim": 30, "rank": 3, "observe_prob": 0.5, "n_arms": 8, "last_eigenvalue": 0.1}
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     policy = TofuPov.algorithm_1(arm_bound=1.0, **small)
    >>> print(caught[0].message)
    the regret theorem does not apply: the theorem needs p of at least 24.1, and p is 0.5
    """


def warn_of_settings(settings: TofuParams, *, incoherence: float, stacklevel: int) -> None:
    """Warn once of all premises that the settings do not meet, for μ = `incoherence`."""
    unmet = [premise.text for premise in _premises(settings, incoherence) if not premise.holds]
    if unmet:
        message = f"the regret theorem does not apply: {'; '.join(unmet)}"
        warnings.warn(message, PremiseWarning, stacklevel=stacklevel)


def warn_of_long_arms(arm_bound: float, arms: FloatArray) -> bool:
    """Warn if the seen entries alone make an arm longer than B_X, and return whether they do."""
    longest = math.sqrt(float(np.nansum(arms * arms, axis=1).max(initial=0.0)))
    if longest <= arm_bound * (1 + _ROUNDING):
        return False
    message = (
        f"the regret theorem does not apply: an arm has a length of at least {longest:.3g}, and "
        f"arm_bound is {arm_bound:.3g}"
    )
    warnings.warn(message, PremiseWarning, stacklevel=2)
    return True


def _premises(settings: TofuParams, incoherence: float) -> list[theory.Premise]:
    """Return the premises that can be judged; what is unknown is taken as favourable as can be."""
    rank = settings.rank.rank if isinstance(settings.rank, FixedRank) else 1
    widest = math.sqrt(settings.dim / rank)
    checks.real("incoherence", incoherence, 1.0, widest * (1 + _ROUNDING))
    prob = settings.observe_prob
    is_unknown = isinstance(prob, str)
    masks = theory.mask_premise(
        observe_prob=1.0 if is_unknown else float(np.min(prob)),
        dim=settings.dim,
        rank=rank,
        n_arms=settings.n_arms or 1,
        horizon=settings.horizon or 1,
        incoherence=incoherence,
        failure_prob=settings.lemma_failure_prob,
    )
    if is_unknown:
        text = f"the theorem needs p of at least {masks.needed:.3g}, and no p is above 1"
        return [masks._replace(text=text)]
    if settings.n_arms is None or settings.last_eigenvalue is None:
        return [masks]
    try:
        needed: float = settings.theory_burn_in()
    except InvalidSettingError:  # more rounds than there can be
        needed = math.inf
    return [masks, theory.burn_in_premise(needed=needed, burn_in=settings.schedule.burn_in)]


@register_policy
class TofuPov(TofuParams):
    """Two-phase OFUL with partially observed vectors, and all its variants.

    For the first `burn_in` rounds another policy plays. Then, at the start of each epoch, the
    subspace of the arms is estimated from all arms offered before, played or not, and frozen.
    Inside the epoch each arm's seen entries determine its latent coordinates, in which OFUL plays.

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
        "_next_event": Whole(0, sys.maxsize),
        "_burner": InnerPolicy(),
    }

    needs: ClassVar[tuple[str, ...]] = (
        "dim",
        "rank",
        "observe_prob",
        "horizon",
        "noise_scale",
        "seed",
    )

    def setup(self) -> None:
        """Start with no arms, no rewards and no epoch."""
        super().setup()
        self._burner = burn_in_policy_of(self)
        self._offered = self.no_arms()
        self._played = Played(self.dim)
        self._epoch: Epoch | None = None
        self._next_event = self._event_after(self.schedule.burn_in + 1)
        self._log: tuple[EpochRecord, ...] = ()
        self._first_playing: int | None = None  # index of the first epoch with a rank above 0
        self._checks_lengths = self.follows_theorem

    @classmethod
    def algorithm_1(
        cls, *, arm_bound: float, rank: int | RankRule, incoherence: float = 1.0, **settings: Any
    ) -> "TofuPov":
        """Algorithm 1 with the settings of the regret theorem.

        λ = 4B_X², t_b from the theory, δ_e, the misspecification bonus, imputation without a ridge,
        no replay. Needs `n_arms`, `last_eigenvalue` and `observe_prob`. Without a ridge, an arm
        whose seen entries do not identify it raises an error, and at practical sizes there are such
        arms: set `impute_ridge` above 0 to avoid it.

        If the theorem's condition on p (for μ = `incoherence`) or its burn-in is not met, or an arm
        is longer than `arm_bound`, a `PremiseWarning` says so, once. A burn-in that is set by hand
        can be judged only if `n_arms`, `last_eigenvalue` and `observe_prob` are given.

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
        policy = cls(arm_bound=arm_bound, rank=rank, **(defaults | settings))
        warn_of_settings(policy, incoherence=incoherence, stacklevel=3)
        return policy

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
        """One record for each epoch opened so far."""
        current = () if self._epoch is None else (self._epoch.record,)
        return (*self._log, *current)

    @property
    def current_rank(self) -> int:
        """Rank of the current epoch; the number of features while the burn-in policy plays."""
        epoch = self._epoch
        return epoch.record.rank if epoch is not None and epoch.plays else self.dim

    def diagnostics(self) -> dict[str, Any]:
        """Return the ranks of all epochs and the top of the last epoch's spectrum."""
        log = self.epoch_log
        return {
            "epoch_starts": [record.round for record in log],
            "epoch_ranks": [record.rank for record in log],
            "eigenvalues": list(log[-1].eigenvalues) if log else [],
            "threshold": log[-1].threshold if log else None,
        }

    def decide(self, slate: Slate) -> Choice:
        """Open an epoch if one is due, then choose in the coordinates of the current epoch."""
        if self._round >= self._next_event:
            self._enter(self._opened_epoch())
        self._offer(slate)
        epoch = self._epoch
        if epoch is not None and epoch.plays:
            return Choice(*epoch.score(slate), epoch.index)
        self._burner = self._burner.fork()
        choice, note = self._burner.play(slate)
        index = -1 if epoch is None else epoch.index
        return choice._replace(epoch=index, inner=note)

    def _offer(self, slate: Slate) -> None:
        if self._checks_lengths:
            self._checks_lengths = not warn_of_long_arms(self.arm_bound, slate._table)
        offered = self._offered.fork()
        offered.add(slate._table)
        self._offered = offered

    def _opened_epoch(self) -> Epoch:
        """Open the epoch that is due and return it, without making it the current one."""
        round = self._round + 1
        if self.horizon is not None and round > self.horizon:
            raise HorizonReachedError(
                f"all {self.horizon} rounds of the horizon are played: use horizon=None for a "
                "policy without an end"
            )
        index = 0 if self._epoch is None else self._epoch.index + 1
        epoch = Epoch.open(self, self._offered, round, index)
        if epoch.plays and self._played:
            self._replay_in(epoch)
        return epoch

    def _replay_in(self, epoch: Epoch) -> None:
        """Let a new epoch learn earlier rewards."""
        arms, rewards, rounds = self._played.samples()
        is_first = self._first_playing is None
        of_burn_in = self.replay.replays(by_burn_in=True, is_first=is_first)
        of_epochs = self.replay.replays(by_burn_in=False, is_first=is_first)
        if not (of_burn_in and of_epochs):
            log = self.epoch_log
            # The burn-in policy played before the first epoch and in epochs of rank 0.
            ranks = np.array([0, *(record.rank for record in log)])
            by_burn_in = ranks[np.searchsorted([each.round for each in log], rounds, "right")] == 0
            kept = np.where(by_burn_in, of_burn_in, of_epochs)
            arms, rewards = arms[kept], rewards[kept]
        epoch.replay(arms, rewards)

    def _enter(self, epoch: Epoch) -> None:
        if self._epoch is not None:
            self._log = (*self._log, self._epoch.record)
        self._epoch = epoch
        self._next_event = self._event_after(self.schedule.next_start(epoch.record.round))
        if epoch.plays and self._first_playing is None:
            self._first_playing = epoch.index
            later = [self.replay.replays(by_burn_in=each, is_first=False) for each in (True, False)]
            if not any(later):  # nothing is replayed any more
                self._played = Played(self.dim)

    def _event_after(self, start: int) -> int:
        """Return the round before the next event: an epoch at `start`, or the horizon's end."""
        horizon = self.horizon
        return start - 1 if horizon is None else min(start - 1, horizon)

    def update(self, note: Note, reward: float) -> None:
        """Add the reward to the epoch's regression, or keep it for a later epoch."""
        first = self._first_playing
        if self._replays(note, is_first=first is None):  # a later epoch will replay it
            played = self._played.fork()
            played.append(note.round, note.arm, reward)
            self._played = played
        if self._epoch is not None and self._epoch.plays:
            epoch = self._epoch.fork()
            if note.inner is None and note.epoch == epoch.index:
                epoch.learn(note.arm, reward)
            elif self._replays(note, is_first=first == epoch.index):
                epoch.learn_earlier(note.arm, reward)
            self._epoch = epoch
        if note.inner is not None:
            self._burner = self._burner.fork()
            self._burner.update(note.inner, reward)

    def _replays(self, note: Note, *, is_first: bool) -> bool:
        replays: bool = self.replay.replays(by_burn_in=note.inner is not None, is_first=is_first)
        return replays

    def _restored(self) -> None:
        """Find the first epoch with a rank."""
        ranked = (record.epoch for record in self.epoch_log if record.rank > 0)
        self._first_playing = next(ranked, None)

    def observe(self, slate: Slate) -> None:
        """Add the arms to those from which the next subspace is estimated."""
        self._burner = self._burner.fork()
        self._burner.observe(slate)
        self._offer(slate)

    @property
    def _latest_epoch(self) -> int:
        return -1 if self._epoch is None else self._epoch.index

    def check_note(self, note: Note) -> None:
        """Raise an error if this policy cannot have made the decision of a note."""
        super().check_note(note)
        if note.inner is not None:
            self._burner.check_note(note.inner)


_TWO_PHASE_REPLAYS = ("none", "burn-in")


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

    split: int | float | str = custom(
        default="balanced",
        check=lambda name, value: _checked_split(name, value),
        kind='int, float or "balanced"',
        doc="""τ, the rounds of the first phase, or a power a in (0, 1) for τ = ⌈T^a⌉; "balanced" is
    ⌈T^(2/3)⌉. All but a number of rounds need `horizon`.""",
    )
    first_phase: Any = custom(
        default="zero-filled",
        check=checked_burn_in_policy,
        plain=policy_to_plain,
        kind='"zero-filled", "uniform" or Policy',
        doc="The policy of the first phase.",
    )
    replay: Any = custom(
        default="none",
        check=lambda name, value: checked_replay(name, value, _TWO_PHASE_REPLAYS),
        plain=plain_replay,
        kind='"none", "burn-in" or ReplayRule',
        doc="""Whether rewards of the first phase enter the second. "none" is the paper's strategy,
    whose second phase starts afresh: its confidence set requires that the frozen subspace does not
    depend on the rewards in the regression. "burn-in" is the stronger baseline in practice.""",
    )

    # A single epoch for every horizon, so that it gets the whole share of δ.
    growth = LARGEST_GROWTH
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
        if isinstance(self.split, float):
            return power_split(self.horizon, self.split)
        return balanced_split(self.horizon)

    @property  # type: ignore[misc]
    def burn_in_policy(self) -> Any:
        """The policy of the first phase."""
        return self.first_phase

    def _enter(self, epoch: Epoch) -> None:
        super()._enter(epoch)
        self._next_event = self._event_after(sys.maxsize)  # there is no second epoch


def _checked_split(name: str, split: Any) -> int | float | str:
    if isinstance(split, str):
        return checks.one_of(f"{name} (a number of rounds or a word)", split, ("balanced",))
    if isinstance(split, float):
        return checks.real(f"{name} (a power of T)", split, 0.0, 1.0, low_open=True, high_open=True)
    return checks.integer(name, split, 1, checks.LARGEST_HORIZON)
