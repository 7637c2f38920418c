"""What a study says about panels that split regret into parts, read and checked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halfseen.report.keys import Keys

SPLIT_KEYS = ("setting", "total", "parts")
"""What such a panel may say beside kind, methods and title."""

_PART_KEYS = ("label", "plus", "minus")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSpec:
    """A part of a regret: regrets of some methods less those of others, seed by seed."""

    label: str
    plus: tuple[str, ...]
    minus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSpec:
    """Into which parts the regret of a method is split; together they are that regret."""

    total: str
    parts: tuple[PartSpec, ...]


def split_spec(plain: Mapping[str, Any], where: str, known: tuple[str, ...]) -> SplitSpec:
    """Return what a panel says.

    Raises
    ------
    StudyError
        The message names the key; the parts do not sum up to the total.
    """
    keys = Keys(plain, where, known)
    total, parts = keys.text("total"), []
    balance = Counter({total: -1})
    for index, part in enumerate(keys.tables("parts")):
        inner = Keys(part, f"{where}.parts[{index}]", _PART_KEYS)
        plus, minus = inner.texts("plus") or (), inner.texts("minus") or ()
        parts.append(PartSpec(label=inner.text("label"), plus=plus, minus=minus))
        balance.update(plus)
        balance.subtract(minus)
    if any(balance.values()):
        left = {method: count for method, count in balance.items() if count}
        raise keys.error("parts", f"parts that sum up to {total!r}, with nothing left over", left)
    return SplitSpec(total=total, parts=tuple(parts))
