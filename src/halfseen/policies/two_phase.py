"""The one-shot strategy: estimate the subspace once, then keep it for good."""

import sys
from typing import Any

from halfseen import checks
from halfseen.core.epochs import LARGEST_GROWTH
from halfseen.core.rank import RankRule
from halfseen.core.theory import balanced_split
from halfseen.errors import InvalidSettingError
from halfseen.policies.registry import register
from halfseen.policies.tofu import TofuPov
from halfseen.policies.tofu_epoch import Epoch

REPLAYS = ("none", "burn-in")


@register
class TwoPhase(TofuPov):
    """TOFU-POV with a single epoch: the subspace of the first `split` rounds serves to the end.

    The baseline that the paper holds against repeated epochs: the error of the frozen subspace
    costs a constant per round, so that the best split leaves a regret of order T^(2/3).

    Parameters
    ----------
    dim, rank, observe_prob, horizon
        As for `TofuPov`. Where a rank rule finds rank 0, the first phase never ends.
    split : int or "balanced"
        τ, the rounds of the first phase; "balanced" is ⌈T^(2/3)⌉ and needs `horizon`.
    first_phase : "zero-filled", "uniform" or Policy
        Who plays it.
    replay : "none" or "burn-in"
        Whether rewards of the first phase enter the second. "none" is the strategy of the paper,
        whose second phase starts afresh: the frozen subspace then does not depend on the rewards
        that the regression uses, which its confidence set needs. "burn-in" is the stronger
        baseline in practice.
    ridge, failure_prob, theta_bound, noise_scale, arm_bound, top_eigenvalue, last_eigenvalue
        As for `TofuPov`. With a horizon, half of δ is the second phase's.
    bonus_scale, impute_ridge, radius_scale, seed, max_open
        As for `TofuPov`.

    Examples
    --------
    >>> policy = TwoPhase(dim=4, rank=1, observe_prob=0.5, horizon=1000)
    >>> policy.schedule.burn_in
    100
    """

    def __init__(
        self,
        *,
        dim: int,
        rank: int | RankRule,
        observe_prob: Any,
        horizon: int | None = None,
        split: int | str = "balanced",
        first_phase: Any = "zero-filled",
        replay: str = "none",
        ridge: float = 1.0,
        failure_prob: float = 0.05,
        theta_bound: float = 1.0,
        noise_scale: float = 0.5,
        arm_bound: float = 1.0,
        top_eigenvalue: float | None = None,
        last_eigenvalue: float | None = None,
        bonus_scale: float = 0.0,
        impute_ridge: float = 1e-5,
        radius_scale: float = 1.0,
        seed: int = 0,
        max_open: int = 10_000,
    ) -> None:
        super().__init__(
            dim=dim,
            rank=rank,
            observe_prob=observe_prob,
            horizon=horizon,
            burn_in=_checked_split(split, horizon),
            burn_in_policy=first_phase,
            ridge=ridge,
            failure_prob=failure_prob,
            theta_bound=theta_bound,
            noise_scale=noise_scale,
            arm_bound=arm_bound,
            top_eigenvalue=top_eigenvalue,
            last_eigenvalue=last_eigenvalue,
            bonus_scale=bonus_scale,
            impute_ridge=impute_ridge,
            replay=checks.one_of("replay", replay, REPLAYS),
            growth=LARGEST_GROWTH,  # one epoch within any horizon, so that its share of δ is whole
            radius_scale=radius_scale,
            seed=seed,
            max_open=max_open,
        )

    def settings(self) -> dict[str, Any]:
        """Return arguments that rebuild the policy, as plain JSON types."""
        plain = super().settings()
        for name in ("growth", "subspace", "features", "exploration", "fallback", "memory_bytes"):
            del plain[name]  # one epoch, as in the literature
        plain["split"] = plain.pop("burn_in")
        plain["first_phase"] = plain.pop("burn_in_policy")
        return plain

    def _enter(self, epoch: Epoch) -> None:
        super()._enter(epoch)
        self._next_event = self._event_after(sys.maxsize)  # no second epoch, however long it lasts


def _checked_split(split: Any, horizon: Any) -> int:
    if isinstance(split, str):
        checks.one_of("split (a number of rounds or a word)", split, ("balanced",))
        if horizon is None:
            raise InvalidSettingError("split='balanced' needs a horizon, got None: give a number")
        return balanced_split(checks.integer("horizon", horizon, 1))
    return checks.integer("split", split, 1)
