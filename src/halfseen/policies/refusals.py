"""Which rewards and decisions a policy refuses, and how it says so."""

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.errors import (
    InvalidInputError,
    InvalidRewardError,
    InvalidSettingError,
    UnknownDecisionError,
)
from halfseen.log import logger
from halfseen.values import LARGEST


def checked_reward(reward: Any, place: str = "") -> float:
    """Return a reward as a float if it is a finite number."""
    if isinstance(reward, float | Real | np.bool_):  # float first: it is the common case
        value = checks.as_float(reward)
        if -LARGEST <= value <= LARGEST:
            return value
    raise InvalidRewardError(
        f"a reward must be a finite number of size at most {LARGEST:g}, got {reward!r}{place}"
    )


def listed(column: Any) -> Any:
    """Return a column of numpy, pandas, polars or pyarrow as a list; anything else as it is."""
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, name):
            return getattr(column, name)()
    return column


def checked_rewards(rewards: Any, n_rewards: int) -> list[float]:
    """Return rewards as floats if they are as many finite numbers as there should be."""
    rewards = listed(rewards)
    if isinstance(rewards, str | bytes | Mapping) or not isinstance(rewards, Iterable):
        raise InvalidRewardError(f"rewards must be a list of numbers, got {rewards!r}")
    values = [checked_reward(reward, f" in place {at}") for at, reward in enumerate(rewards)]
    if len(values) != n_rewards:
        raise InvalidRewardError(f"there must be {n_rewards} rewards, got {len(values)}")
    return values


def unknown_decision(id: Any, token: str, max_open: int) -> UnknownDecisionError:
    """Return the error for a decision that is not open, or is none."""
    if not isinstance(id, str):
        return UnknownDecisionError(
            f"learn needs a Decision or the id of one, got {type(id).__name__}"
        )
    if not id.startswith(f"{token}-"):
        return UnknownDecisionError(
            f"decision {id} is not open here: it was made by another policy, or was open when "
            "this one was loaded and has been learned or forgotten since, or before"
        )
    return UnknownDecisionError(
        f"decision {id} is not open: it was learned before, or forgotten because more than "
        f"max_open = {max_open} decisions waited"
    )


def log_forgotten(id: str, n_forgotten: int, limit: str) -> None:
    """Log the 1st, 2nd, 4th, 8th, … decision that is forgotten."""
    if n_forgotten & (n_forgotten - 1) == 0:
        logger.warning(
            "decision %s was forgotten, %d so far: more than %s wait for their reward",
            id,
            n_forgotten,
            limit,
        )


def cannot_grow(policy: Any, dim: int) -> InvalidSettingError:
    """Return the error for new features that a policy cannot take."""
    return InvalidSettingError(
        f"{type(policy).__name__} with {policy.dim} features cannot grow to {dim}: make it with "
        f"more features, or use a policy that can grow ({_named(lambda each: each.can_grow())})"
    )


def no_context(policy: type) -> InvalidInputError:
    """Return the error for a context that a policy cannot use."""
    return InvalidInputError(
        f"{policy.__name__} cannot use a context: leave it out, or use a policy that can "
        f"({_named(lambda each: each.takes_context)})"
    )


def cannot_exploit(policy: type) -> InvalidInputError:
    """Return the error for a request not to explore that a policy cannot fulfil."""
    return InvalidInputError(
        f"{policy.__name__} cannot choose without exploring: leave out explore=False, or use a "
        f"policy that can ({_named(lambda each: each.can_exploit())})"
    )


def cannot_explain(policy: type) -> InvalidInputError:
    """Return the error for reasons that a policy cannot give."""
    return InvalidInputError(
        f"{policy.__name__} cannot explain its scores: use a policy that can "
        f"({_named(lambda each: each.can_explain())})"
    )


def _named(fits: Callable[[Any], bool]) -> str:
    """Return the names of all registered policies of a kind."""
    from halfseen.policies.registry import all_policies  # imports the base class, which needs this

    names = [name for name, policy in all_policies().items() if fits(policy)]
    return ", ".join(names) or "there is none yet"
