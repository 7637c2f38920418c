"""Who plays the rounds before the first epoch, and epochs without a subspace."""

from typing import Any

from halfseen.errors import InvalidSettingError
from halfseen.policies.ambient import AmbientOful
from halfseen.policies.base import Policy
from halfseen.policies.registry import registered
from halfseen.policies.tofu_settings import ESTIMATED, TofuSettings
from halfseen.policies.uniform import Uniform

_WORDS = ("zero-filled", "uniform")


def burn_in_policy_from(value: Any, settings: TofuSettings, max_open: int) -> Policy:
    """Return the policy that a setting means: itself, a word, its plain form, or the default."""
    if value is None:
        value = "zero-filled" if settings.fits_dense else "uniform"
    if isinstance(value, dict) and {"policy", "settings"} <= value.keys():
        return registered(value["policy"])(**value["settings"])
    if isinstance(value, Policy):
        return _checked(value, settings.dim, max_open)
    if not isinstance(value, str) or value not in _WORDS:
        raise InvalidSettingError(
            f"burn_in_policy must be 'zero-filled', 'uniform' or a Policy, got {value!r}"
        )
    if value == "uniform":
        return Uniform(dim=settings.dim, seed=settings.seed, max_open=max_open)
    given = {
        name: getattr(settings, name)
        for name in ("ridge", "theta_bound", "noise_scale")
        if getattr(settings, name) != ESTIMATED
    }
    return AmbientOful(
        dim=settings.dim, failure_prob=settings.failure_prob, max_open=max_open, **given
    )


def _checked(policy: Policy, dim: int, max_open: int) -> Policy:
    if policy.dim != dim:
        raise InvalidSettingError(f"burn_in_policy must have dim {dim}, got {policy.dim}")
    if policy.max_open < max_open:
        raise InvalidSettingError(
            f"burn_in_policy must keep at least max_open = {max_open} decisions open, got "
            f"{policy.max_open}"
        )
    return policy
