"""The exchangeable parts of TOFU-POV, and how they are named, checked and saved."""

from collections.abc import Callable, Mapping
from inspect import isabstract
from typing import Any

from halfseen import checks, params
from halfseen.errors import InvalidSettingError
from halfseen.params import Value

_CLASSES: dict[str, type["Ingredient"]] = {}


class Ingredient(Value):
    """A part of TOFU-POV that can be exchanged: parameters that never change, and a method or two.

    Subclass `SubspaceEstimator` or `SequentialEstimator`, `RankRule`, `Imputation`, `Radius` or
    `ReplayRule`, and declare parameters (`halfseen.params`). Defining the class makes it known by
    its name, so that policies with it can be saved and loaded. An ingredient never changes: what it
    computes belongs to the epoch, and the state of a `SequentialEstimator` to the policy.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        checks.unused_name(cls.__name__, cls, _CLASSES)
        _CLASSES[cls.__name__] = cls

    def check(self, dim: int) -> None:
        """Raise InvalidSettingError if it cannot work with `dim` features."""

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the class as "rule", and the parameters, as plain JSON types."""
        return {"rule": type(self).__name__, **self.settings()}


def ingredient(
    kind: type[Ingredient],
    *,
    shorthand: Callable[[str, Any], Any] | None = None,
    words: str = "",
    **declared: Any,
) -> Any:
    """Declare a parameter that is an ingredient, its plain form, or the name of its class.

    `shorthand` turns any other value into one, from a name and a value; `words` says which. The
    rest, default and documentation, is that of `params.custom`.
    """

    def check(name: str, value: Any) -> Any:
        if isinstance(value, str) and issubclass(_CLASSES.get(value, object), kind):
            value = {"rule": value}
        if shorthand is not None and not isinstance(value, kind | Mapping):
            return shorthand(name, value)
        return _as_ingredient(name, kind, value)

    return params.custom(
        check=check,
        plain=lambda value: value.to_dict() if isinstance(value, Ingredient) else str(value),
        kind=f"{words} or {kind.__name__}" if words else kind.__name__,
        **declared,
    )


def _as_ingredient(name: str, kind: type[Ingredient], value: Any) -> Ingredient:
    """Return an ingredient from itself or from the result of `to_dict`."""
    if isinstance(value, kind):
        return value
    known = {each: found for each, found in _CLASSES.items() if issubclass(found, kind)}
    got = value.get("rule") if isinstance(value, Mapping) else value
    if not isinstance(value, Mapping) or not isinstance(got, str) or got not in known:
        names = sorted(each for each, found in known.items() if not isabstract(found))
        raise InvalidSettingError(
            f"must be one of {names}, or a {kind.__name__} whose module is imported, got {got!r}",
            name=name,
        )
    return known[got](**{key: value[key] for key in value if key != "rule"})
