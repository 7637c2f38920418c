"""The parameters of TOFU-POV, checked where they are declared, and what follows from them."""

from copy import deepcopy
from typing import Any

import numpy as np

from halfseen import checks, theory
from halfseen.errors import InvalidSettingError
from halfseen.linear.covariance import ObserveProb
from halfseen.linear.history import LARGEST_GROWTH
from halfseen.linear.lift import checked_impute_ridge
from halfseen.params import custom, flag, integer, real
from halfseen.policies.ambient import AmbientOful, Optimism, scale_param
from halfseen.policies.base import Policy
from halfseen.policies.registry import registered
from halfseen.policies.trivial import Uniform
from halfseen.tofu.epoch import EpochSchedule, replay_param
from halfseen.tofu.imputation import Imputation, LeastSquares
from halfseen.tofu.ingredient import ingredient
from halfseen.tofu.rank import FixedRank, Known, rank_param
from halfseen.tofu.subspace import COUNTED, UNKNOWN, CorrectedCovariance, SubspaceEstimator
from halfseen.values import LARGEST

# Below this, divisions by p² could overflow.
_SMALLEST_PROB = 1e-6
_BURN_IN_POLICIES = ("zero-filled", "uniform")


class TofuParams(Optimism, Policy):
    """Parameters of TOFU-POV, and quantities derived from them."""

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
        doc="""Rounds before the first epoch; "theory" needs `n_arms`, `last_eigenvalue` and
    `horizon`.""",
    )
    burn_in_policy: Any = custom(
        default="zero-filled",
        check=lambda name, value: _checked_burn_in_policy(name, value),
        plain=lambda policy: _plain_policy(policy),
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

    def setup(self) -> None:
        """Check parameters against each other and make the schedule of epochs."""
        self.imputes: Imputation = self.imputation or LeastSquares(ridge=self.impute_ridge)
        self._check_together()
        burn_in = self.theory_burn_in() if isinstance(self.burn_in, str) else self.burn_in
        self.schedule = EpochSchedule(burn_in, self.growth)
        self._n_epochs = self._count_epochs()

    def _check_together(self) -> None:
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
            rank=self.rank.rank if isinstance(self.rank, FixedRank) else 1,
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


def _checked_observe_prob(observe_prob: Any) -> ObserveProb | str:
    if isinstance(observe_prob, str):
        return checks.one_of("observe_prob (numbers or a word)", observe_prob, (UNKNOWN, COUNTED))
    if observe_prob is None:
        return UNKNOWN
    if not hasattr(observe_prob, "__len__"):
        return checks.real("observe_prob", observe_prob, _SMALLEST_PROB, 1.0)
    try:
        probs = np.array(observe_prob, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidSettingError(
            f"observe_prob must be one number in (0, 1] or one per feature, got {observe_prob!r}"
        ) from None
    for feature, prob in enumerate(probs.ravel()):
        checks.real(f"observe_prob[{feature}]", float(prob), _SMALLEST_PROB, 1.0)
    probs.setflags(write=False)
    return probs
