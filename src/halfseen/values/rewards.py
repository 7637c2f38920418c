"""Which rewards are accepted."""

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidRewardError
from halfseen.values.arrays import LARGEST


def checked_reward(reward: Any, place: str = "") -> float:
    """Return a reward as a float if it is a finite number."""
    if isinstance(reward, float | Real | np.bool_):  # float first: it is the common case
        value = checks.as_float(reward)
        if -LARGEST <= value <= LARGEST:
            return value
    raise InvalidRewardError(
        f"a reward must be a finite number of size at most {LARGEST:g}, got {reward!r}{place}"
    )


def checked_rewards(rewards: Any, n_rewards: int) -> list[float]:
    """Return rewards as floats if they are as many finite numbers as there should be."""
    rewards = listed(rewards)
    if isinstance(rewards, str | bytes | Mapping) or not isinstance(rewards, Iterable):
        raise InvalidRewardError(f"rewards must be a list of numbers, got {rewards!r}")
    values = [checked_reward(reward, f" in place {at}") for at, reward in enumerate(rewards)]
    if len(values) != n_rewards:
        raise InvalidRewardError(f"there must be {n_rewards} rewards, got {len(values)}")
    return values


def listed(column: Any) -> Any:
    """Return a column of numpy, pandas, polars or pyarrow as a list; anything else as it is."""
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, name):
            return getattr(column, name)()
    return column
