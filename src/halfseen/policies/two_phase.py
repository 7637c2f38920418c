"""The two-phase strategy: estimate the subspace once and keep it."""

import sys
from typing import Any

from halfseen import checks
from halfseen.core.epochs import LARGEST_GROWTH
from halfseen.core.replay import Replay
from halfseen.core.theory import balanced_split, power_split
from halfseen.errors import InvalidSettingError
from halfseen.params import custom
from halfseen.policies.registry import register_policy
from halfseen.policies.tofu import TofuPov
from halfseen.policies.tofu_burn_in import checked_burn_in_policy, policy_to_plain
from halfseen.policies.tofu_epoch import Epoch

REPLAYS = ("none", "burn-in")


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
        check=lambda name, value: Replay(checks.one_of(name, value, REPLAYS)),
        plain=str,
        kind='"none" or "burn-in"',
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
