"""The policy without settings: likelihood subspace, posterior coordinates, scales from the data."""

from typing import Any, ClassVar

from halfseen.checks import LARGEST_SIZE
from halfseen.core.held_out import HeldOutRank
from halfseen.core.rank import RankRule
from halfseen.params import integer
from halfseen.policies.registry import register_policy
from halfseen.policies.tofu import TofuPov
from halfseen.policies.tofu_params import COUNTED, ESTIMATED
from halfseen.values import Slate

RADIUS_SCALE = 0.3
"""Chosen by benchmarks/choose_defaults.py on worlds and seeds that no study reports."""


def _tofu(name: str, default: Any, doc: str = "") -> Any:
    """Declare a parameter of `TofuPov` with another default and, if given, another description."""
    return TofuPov.params[name].changed(default, doc)


@register_policy
class LatentUcb(TofuPov):
    """Learns in the most likely subspace of the arms; needs no settings.

    It is `TofuPov` with other parts, each of which is also an option there:

    - the subspace maximises the likelihood of the seen entries (`subspace="likelihood"`) and
      held-out entries choose its rank (`HeldOutRank`), so neither an observation probability nor a
      rank is needed;
    - coordinates are posterior means (`features="posterior-mean"`);
    - noise, size of the parameter and penalty are estimated from the rewards (`"estimated"`);
    - epochs start in the second round and grow by a quarter; each replays all rewards;
    - zero-filled OFUL plays if low rank does not help to predict rewards (`fallback=True`).

    A common factor of all features, or of all rewards, changes no decision.

    Examples
    --------
    >>> import numpy as np
    >>> policy = LatentUcb()
    >>> random = np.random.default_rng(0)
    >>> directions = random.normal(size=(2, 12))
    >>> for _ in range(20):
    ...     arms = random.normal(size=(6, 2)) @ directions
    ...     decision = policy.choose(np.where(random.random(arms.shape) < 0.5, arms, np.nan))
    ...     policy.learn(decision, float(arms[decision.arm].sum()))
    >>> policy.dim, policy.current_rank
    (12, 2)
    """

    needs: ClassVar[tuple[str, ...]] = ("seed",)

    dim: int | None = integer(  # type: ignore[assignment]
        default=None,
        low=1,
        high=LARGEST_SIZE,
        doc="Number of features; by default that of the first slate.",
    )
    rank: RankRule = _tofu(
        "rank",
        HeldOutRank(),
        doc="By default chosen by held-out entries, and again once there are clearly more arms.",
    )
    observe_prob: Any = _tofu(
        "observe_prob", COUNTED, doc="Only used to find a first subspace; by default counted."
    )
    ridge: Any = _tofu(
        "ridge", ESTIMATED, doc="λ. With a number, coordinates are in the arms' units."
    )
    theta_bound: Any = _tofu("theta_bound", ESTIMATED)
    noise_scale: Any = _tofu("noise_scale", ESTIMATED)
    radius_scale: float = _tofu("radius_scale", RADIUS_SCALE)
    subspace: str = _tofu("subspace", "likelihood")
    features: str = _tofu("features", "posterior-mean")
    growth: float = _tofu("growth", 1.25)
    burn_in: Any = _tofu("burn_in", 1)
    fallback: bool = _tofu("fallback", True)

    # Parameters of the paper's theory, which does not cover this policy.
    horizon = None
    burn_in_policy = None
    failure_prob = 0.05
    arm_bound = 1.0
    top_eigenvalue = None
    last_eigenvalue = None
    n_arms = None
    bonus_scale = 0.0
    impute_ridge = 1e-5

    def setup(self) -> None:
        """Start without data; without a dimension, wait for the first slate."""
        if self.dim is not None:
            super().setup()
        else:
            self.check_together()
            self._epoch, self._log = None, []

    @property
    def is_begun(self) -> bool:
        """Whether the number of features is known, as a setting or from the first slate."""
        return self.dim is not None

    def diagnostics(self) -> dict[str, Any]:
        """Return ranks and scales of all epochs, and how often zero-filled OFUL played."""
        with self._lock:
            log = self.epoch_log
            last = log[-1] if log else None
            return super().diagnostics() | {
                "fallback_rounds": self.fallback_rounds,
                "noise_scale": last.noise_scale if last else None,
                "theta_bound": last.theta_bound if last else None,
            }

    def state(self) -> dict[str, Any]:
        """Return the state of `TofuPov`, or nothing before the first slate."""
        return super().state() if self.is_begun else {}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        if self.is_begun:
            super().restore(state)

    def _checked(self, options: Any) -> Slate:
        slate = super()._checked(options)
        if not self.is_begun:  # the first slate determines `dim`
            self.__dict__["dim"] = slate.dim
            self.setup()
        return slate
