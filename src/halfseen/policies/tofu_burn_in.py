"""The burn-in policy: it plays the rounds before the first epoch, and epochs of rank 0."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from halfseen.errors import InvalidSettingError
from halfseen.policies.ambient import AmbientOful
from halfseen.policies.base import Policy
from halfseen.policies.registry import registered
from halfseen.policies.uniform import Uniform

if TYPE_CHECKING:
    from halfseen.policies.tofu_params import TofuParams

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
