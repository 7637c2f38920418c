"""The settings of an agent."""

import datetime
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from halfseen import checks
from halfseen.agent.health import Traffic
from halfseen.agent.member import Rules
from halfseen.agent.state import State
from halfseen.errors import InvalidSettingError
from halfseen.frames import Encoder, Reader
from halfseen.latent.policy import INVERSE_GAP, LatentUcb
from halfseen.params import Declared, choice, custom, integer, real
from halfseen.policies.base import Policy
from halfseen.policies.optimism import EXPLORATIONS
from halfseen.values import LARGEST


def _checked_policy(name: str, value: Any) -> Policy:
    if not isinstance(value, Policy):
        kind = value.__name__ if isinstance(value, type) else type(value).__name__
        raise InvalidSettingError(f"must be a policy such as LatentUcb(), got {kind}", name=name)
    return value


def _checked_time(name: str, value: Any) -> datetime.timedelta:
    if isinstance(value, int | float) and not isinstance(value, bool):  # from `settings()`
        value = datetime.timedelta(seconds=value)
    if not isinstance(value, datetime.timedelta) or value <= datetime.timedelta(0):
        raise InvalidSettingError(f"must be a timedelta above 0, got {value!r}", name=name)
    return value


def _names(doc: str) -> Any:
    """Return a parameter that is a list of columns."""

    def check(name: str, value: Any) -> tuple[str, ...]:
        names = value if isinstance(value, list | tuple | set | frozenset) else None
        if names is None or not all(isinstance(each, str) for each in names):
            raise InvalidSettingError(f"must be a list of column names, got {value!r}", name=name)
        return tuple(sorted(set(names)))

    return custom(default=(), check=check, plain=list, kind="list of str", doc=doc)


class Settings(Declared):
    """The settings of an agent, and what follows from them."""

    policy: Policy | None = custom(
        default=None,
        check=_checked_policy,
        plain=lambda policy: {"policy": type(policy).__name__, "settings": policy.settings()},
        kind="Policy",
        doc="The policy that chooses; by default `LatentUcb()`. The agent uses a copy.",
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
        doc="""Share of the decisions in which all options are equally likely, if no policy is
    given; by default 0.""",
    )
    id: str | None = custom(
        default=None,
        check=checks.text,
        kind="str",
        doc="The column with item ids; by default the index of a frame, or positions.",
    )
    ignore: Sequence[str] = _names(doc="Columns to leave out.")
    categorical: Sequence[str] = _names(doc="Columns whose numbers are categories.")
    numeric: Sequence[str] = _names(doc="Columns whose strings are numbers.")
    max_levels: int = integer(
        default=50, low=1, doc="Levels of a category that have their own feature; others share 16."
    )
    max_columns: int = integer(default=1000, low=1, doc="Largest number of columns.")
    max_pending: int = integer(
        default=10_000,
        low=1,
        doc="""Without a database, the largest number of pending decisions: the oldest is forgotten
    first. In a database none is.""",
    )
    expire_after: datetime.timedelta | None = custom(
        default=None,
        check=_checked_time,
        plain=lambda value: value.total_seconds(),
        kind="timedelta",
        doc="How long a decision is pending; by default until `expire` is called.",
    )
    expire_reward: float = real(
        default=0.0,
        low=-LARGEST,
        high=LARGEST,
        doc="The reward of a decision that expires without one.",
    )

    def fresh(self) -> State:
        """Return the state of an agent that has learned nothing."""
        encoder = Encoder(max_levels=self.max_levels, max_columns=self.max_columns)
        return State(self._fresh_policy(), encoder, encoder, Traffic())

    def reader(self) -> Reader:
        """Return the reader of tables."""
        if both := set(self.ignore) & {*self.categorical, *self.numeric, self.id}:
            raise InvalidSettingError(
                f"must not have columns that are used, got {sorted(both)}", name="ignore"
            )
        if both := set(self.numeric) & {*self.categorical}:
            raise InvalidSettingError(
                f"must not have columns that are categorical, got {sorted(both)}", name="numeric"
            )
        return Reader(
            self.id, frozenset(self.ignore), frozenset(self.categorical), frozenset(self.numeric)
        )

    def rules(self) -> Rules:
        """Return what is done with decisions that wait."""
        after = None if self.expire_after is None else self.expire_after.total_seconds()
        return Rules(after, self.expire_reward, self.max_pending)

    def _fresh_policy(self) -> Policy:
        """Return a copy of the policy given, or the agent's own with its exploration."""
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
