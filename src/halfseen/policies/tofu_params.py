"""The parameters of TOFU-POV, declared once, and quantities derived from them."""

from numbers import Real
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core import theory
from halfseen.core.epochs import LARGEST_GROWTH, EpochSchedule
from halfseen.core.latent import checked_impute_ridge
from halfseen.core.moments import Moments, ObserveProb
from halfseen.core.operators import LARGEST_DENSE_DIM
from halfseen.core.rank import FixedRank, as_rule
from halfseen.core.replay import Replay
from halfseen.core.reservoir import Reservoir
from halfseen.errors import InvalidSettingError
from halfseen.params import custom, flag, integer, real
from halfseen.policies.base import Policy
from halfseen.policies.ridge_policy import ridge_param, scale_param
from halfseen.policies.tofu_burn_in import checked_burn_in_policy, policy_to_plain
from halfseen.values import LARGEST

# Below this, divisions by p² could overflow.
SMALLEST_PROB = 1e-6

COUNTED = "counted"
UNKNOWN = "unknown"
REPLAYS = tuple(mode.value for mode in Replay)

Offered = Moments | Reservoir
"""What is kept of the offered arms: beyond 8192 features a sample of the arms themselves."""


class TofuParams(Policy):
    """Parameters of TOFU-POV, and quantities derived from them."""

    rank: Any = custom(
        check=lambda name, value: as_rule(value),
        plain=lambda rule: rule.to_dict(),
        kind="int or RankRule",
        doc="""Dimension of the subspace, or a rule that chooses it: `FixedRank`,
    `PracticalThreshold`, `PaperThreshold`, `ConstantThreshold`.""",
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
    replay: Any = custom(
        default="full",
        check=lambda name, value: Replay(checks.one_of(name, value, REPLAYS)),
        plain=str,
        kind='"none", "burn-in-once", "burn-in" or "full"',
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
        doc="Memory for the uniform sample of arms that is kept beyond 8192 features.",
    )
    seed: int = integer(
        default=0,
        low=0,
        doc="Seed of that sample and of the uniform burn-in policy.",
    )

    def setup(self) -> None:
        """Check parameters against each other and make the schedule of epochs."""
        self.check_together()
        burn_in = self.theory_burn_in() if isinstance(self.burn_in, str) else self.burn_in
        self.schedule = EpochSchedule(burn_in=burn_in, growth=self.growth)

    def check_together(self) -> None:
        """Raise `InvalidSettingError` if parameters contradict each other."""
        self.rank.check(self.dim)
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
        if self.fits_dense:
            return Moments(self.dim, count_pairs=isinstance(self.observe_prob, str))
        return Reservoir.of_size(self.dim, self.memory_bytes, seed=self.seed)

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
