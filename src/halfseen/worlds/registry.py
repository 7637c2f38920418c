"""All worlds by name, so that a study can name one in a data file."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.worlds.base import World

W = TypeVar("W", bound=type)

_KINDS: dict[str, Any] = {}
_NAMES: dict[Any, str] = {}


def register_world(kind: str) -> Callable[[W], W]:
    """Make a world, a frozen dataclass, known by a name (a decorator)."""

    def keep(world: W) -> W:
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
    plain: dict[str, Any] = {"kind": kind_of(world)}
    for field in fields(world):  # type: ignore[arg-type]
        value = getattr(world, field.name)
        if value != field.default:
            plain[field.name] = _plain(value)
    return plain


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
    known = [field.name for field in fields(_KINDS[kind])]
    for name in settings:
        if name not in known:
            raise InvalidSettingError(
                f"is not a setting of the {kind} world, which has {known}"
                f"{checks.did_you_mean(name, known)}",
                name=name,
            )
    try:
        world: World = _KINDS[kind](**settings)
    except TypeError as error:  # a required setting is missing
        raise InvalidSettingError(f"the {kind} world cannot be made: {error}") from None
    return world


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return value.to_dict()  # type: ignore[union-attr]
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
