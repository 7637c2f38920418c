"""Which entries of the offered arms are seen: mask laws by name.

Every law turns one table of uniform numbers, of the shape of the arms, into a mask. So a world
draws the same arms, means and noise whichever law it has.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from halfseen import checks, params
from halfseen.errors import InvalidSettingError
from halfseen.params import Value
from halfseen.values import BoolArray, FloatArray


class MaskLaw(Value, ABC):
    """How masks are drawn.

    Attributes
    ----------
    law : str
        The name under which the law is known.
    """

    law: ClassVar[str]

    def mask(self, random: np.random.Generator, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen; draws one uniform per entry."""
        return self.seen(random.random(arms.shape), arms, observe_prob)

    @abstractmethod
    def seen(self, uniforms: FloatArray, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen; may overwrite the uniforms."""

    def stated_prob(self, observe_prob: float, dim: int) -> float | FloatArray:
        """Return the probability that facts state: an array (dim,) where features differ."""
        return observe_prob

    def to_dict(self) -> dict[str, Any]:
        """Return the law's name and those settings that are not at their default."""
        return {"law": self.law, **super().to_dict()}


L = TypeVar("L", bound=type[MaskLaw])
_LAWS: dict[str, type[MaskLaw]] = {}


def register_mask_law(name: str) -> Callable[[L], L]:
    """Make a mask law known by a name (a decorator)."""

    def keep(law: L) -> L:
        law.law = name
        _LAWS[name] = law
        return law

    return keep


def mask_laws() -> tuple[str, ...]:
    """Return the names of all mask laws."""
    return tuple(sorted(_LAWS))


def mask_law_from(plain: Any) -> MaskLaw:
    """Return the mask law that a name, a mapping with the key "law", or a law itself describes.

    >>> mask_law_from("bernoulli")
    Bernoulli()
    >>> mask_law_from({"law": "blocks", "size": 5})
    Blocks(size=5)
    >>> mask_law_from("blocks").to_dict()
    {'law': 'blocks'}
    """
    if isinstance(plain, MaskLaw):
        return plain
    if not isinstance(plain, str | Mapping):
        raise InvalidSettingError(
            f'must be a law, its name, or a mapping with the key "law", got {plain!r}', name="masks"
        )
    settings = {"law": plain} if isinstance(plain, str) else dict(plain)
    name = checks.one_of("masks.law", settings.pop("law", None), mask_laws())
    try:
        return _LAWS[name].from_dict(settings)
    except InvalidSettingError as error:
        raise InvalidSettingError(error.text, name=f"masks.{error.name}") from None


@register_mask_law("bernoulli")
class Bernoulli(MaskLaw):
    """Every entry is seen with the same probability, independently: the law of the paper.

    Notes
    -----
    Paper: eq:missing_model_bernoulli
    """

    def seen(self, uniforms: FloatArray, arms: FloatArray, observe_prob: float) -> BoolArray:
        """Return which entries of arms (n_arms, dim) are seen."""
        return uniforms < observe_prob


def mask_param() -> Any:
    """Declare the parameter `masks`: a law, its name, or its plain form."""
    return params.custom(
        default=Bernoulli(),
        check=lambda _, value: mask_law_from(value),
        kind="MaskLaw, str or mapping",
        plain=lambda law: law.to_dict(),
    )
