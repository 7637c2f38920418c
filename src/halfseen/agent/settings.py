"""The parameters of an agent."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.params import Declared, choice, custom, flag, integer, real
from halfseen.policies.base import Policy
from halfseen.policies.explorations import INVERSE_GAP
from halfseen.policies.latent_ucb import LatentUcb
from halfseen.policies.viewed import EXPLORATIONS

Path = str | os.PathLike[str]


class AgentSettings(Declared, ABC):
    """The parameters of an agent."""

    policy: Policy | None = custom(
        default=None,
        check=lambda name, value: _checked_policy(name, value),
        plain=lambda policy: {"policy": type(policy).__name__, "settings": policy.settings()},
        kind="Policy",
        doc="Who chooses; by default `LatentUcb()`. The agent uses a copy.",
    )
    explore: str | None = choice(
        default=None,
        words=(*EXPLORATIONS, INVERSE_GAP),
        doc='How the agent explores, if no policy is given; by default "ucb".',
    )
    uniform_share: float | None = real(
        default=None,
        low=0.0,
        high=1.0,
        doc="""Share of the decisions in which all options are equally likely, without a policy;
    by default 0.""",
    )
    id: str | None = custom(
        default=None,
        check=checks.text,
        kind="str",
        doc="""The column that names the options. By default the index of a frame does, or the
    position.""",
    )
    ignore: Sequence[str] = custom(
        default=(),
        check=lambda name, value: _checked_names(name, value),
        plain=list,
        kind="list of str",
        doc="Columns that are no features.",
    )
    categorical: Sequence[str] = custom(
        default=(),
        check=lambda name, value: _checked_names(name, value),
        plain=list,
        kind="list of str",
        doc="Columns whose numbers are categories.",
    )
    max_levels: int = integer(
        default=50, low=1, doc="Levels of a category with features of their own; others share 16."
    )
    max_columns: int = integer(default=1000, low=1, doc="Largest number of columns.")
    max_pending: int = integer(
        default=10_000,
        low=1,
        doc="Largest number of decisions that wait for a reward; the oldest is forgotten first.",
    )
    journal: Path | None = custom(
        default=None,
        check=lambda name, value: os.fspath(value),
        plain=str,
        kind="path",
        doc="""A file to which each decision and each reward is written before the call returns.
    `Agent.open` continues from it.""",
    )
    journal_options: bool = flag(
        default=True, doc="Whether the journal has all options of a decision, or the chosen one."
    )

    # Here and not in the subclass, where it would hide the parameters from type checkers.
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.setup()

    def fresh_policy(self) -> Policy:
        """Return a copy of the policy given, or the agent's own with its exploration.

        Raises
        ------
        InvalidSettingError
            There is a policy, and how to explore, too.
        """
        both = {"exploration": self.explore, "uniform_share": self.uniform_share}
        given: dict[str, Any] = {name: value for name, value in both.items() if value is not None}
        if self.policy is None:
            return LatentUcb(**given)
        for name in given:
            raise InvalidSettingError(
                "is for the agent's own policy: leave it out, or set it in the policy given, as "
                f"LatentUcb({name}=…)",
                name={"exploration": "explore"}.get(name, name),
            )
        return deepcopy(self.policy)

    @abstractmethod
    def setup(self) -> None:
        """Create the state of a fresh agent."""


def _checked_policy(name: str, value: Any) -> Policy:
    if not isinstance(value, Policy):
        kind = value.__name__ if isinstance(value, type) else type(value).__name__
        raise InvalidSettingError(f"must be a policy such as LatentUcb(), got {kind}", name=name)
    return value


def _checked_names(name: str, value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list | tuple | set | frozenset) else None
    if names is None or not all(isinstance(each, str) for each in names):
        raise InvalidSettingError(f"must be a list of column names, got {value!r}", name=name)
    return tuple(sorted(set(names)))
