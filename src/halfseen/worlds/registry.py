"""All worlds by name, so that a study can name one in a data file."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.worlds.base import World

W = TypeVar("W", bound=type)

_KINDS: dict[str, Any] = {}
_NAMES: dict[Any, str] = {}


def register_world(kind: str) -> Callable[[W], W]:
    """Make a world, a frozen dataclass, known by a name (a decorator).

    Raises
    ------
    InvalidSettingError
        It is no dataclass, or a world of halfseen has this name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from halfseen import LowRankWorld
    >>> @register_world("small")
    ... @dataclass(frozen=True)
    ... class SmallWorld(LowRankWorld):
    ...     '''A low-rank world with other defaults.'''
    ...     dim: int = 6
    ...     rank: int = 2
    >>> SmallWorld().dim
    6
    """
    if not isinstance(kind, str):
        raise InvalidSettingError(
            f"a world is registered by a name, @register_world('mine'), got {kind!r}"
        )

    def keep(world: W) -> W:
        if not (isinstance(world, type) and is_dataclass(world)):
            raise InvalidSettingError(f"only a dataclass can be a world, got {world!r}")
        checks.unused_name(kind, world, _KINDS)
        _KINDS[kind], _NAMES[world] = world, kind
        return world

    return keep


def world_kinds() -> tuple[str, ...]:
    """Return the names of all worlds."""
    return tuple(sorted(_KINDS))


def kind_of(world: World) -> str:
    """Return the name under which the class of a world is known."""
    if type(world) not in _NAMES:
        raise InvalidSettingError(
            f"world {type(world).__name__} has no name: put @register_world on its class"
        )
    return _NAMES[type(world)]


def world_to_dict(world: World) -> dict[str, Any]:
    """Return a world as plain JSON types: its kind and those fields that are not at their default.

    The inverse of `world_from`.
    """
    return {"kind": kind_of(world), **changed_fields(world)}


def world_from(plain: Mapping[str, Any]) -> World:
    """Return the world that a mapping describes: its kind, and its settings by name.

    >>> world_from({"kind": "low-rank", "dim": 12}).dim
    12
    """
    settings = dict(plain)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidSettingError(
            f"must be one of {list(world_kinds())}, got {kind!r}"
            f"{checks.did_you_mean(kind, _KINDS)}",
            name="kind",
        )
    check_names(settings, _KINDS[kind], f"the {kind} world")
    try:
        world: World = _KINDS[kind](**settings)
    except TypeError as error:  # a required setting is missing
        raise InvalidSettingError(f"the {kind} world cannot be made: {error}") from None
    return world


def check_names(settings: Iterable[str], kind: type, owner: str, prefix: str = "") -> None:
    """Raise InvalidSettingError unless all settings are fields of a dataclass."""
    known = [field.name for field in fields(kind)]
    for name in settings:
        if name not in known:
            raise InvalidSettingError(
                f"is not a setting of {owner}, which has {known}{checks.did_you_mean(name, known)}",
                name=f"{prefix}{name}",
            )


def changed_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are not at their default, as plain JSON types."""
    found = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
    return {name: _plain(own) for name, (own, default) in found.items() if own != default}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return value.to_dict() if hasattr(value, "to_dict") else changed_fields(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
