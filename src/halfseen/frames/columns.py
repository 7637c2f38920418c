"""What became of a column of a table: which features it has, and which levels."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from halfseen import checks
from halfseen.errors import ArchiveError

N_SHARED = 16
"""Number of features that all levels beyond `max_levels` share."""

KINDS = ("number", "category", "ignored", "id")


@dataclass(frozen=True, slots=True)
class Column:
    """What became of a column.

    Attributes
    ----------
    name : str
    kind : "number", "category", "ignored" or "id"
    features : tuple of int
        Its features in the policy's slate, in the order in which they entered.
    levels : tuple of str
        The levels of a category that have a feature of their own, as `features`.
    n_shared : int
        Number of further features, which all other levels share; a level is assigned by its hash.

    Examples
    --------
    >>> print(Column("colour", "category", (0, 2), ("red", "blue")))
    colour: category of 2 levels
    """

    name: str
    kind: str
    features: tuple[int, ...] = ()
    levels: tuple[str, ...] = ()
    n_shared: int = 0
    feature_of: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = zip(self.levels, self.features, strict=False)
        object.__setattr__(self, "feature_of", dict(own))

    def feature(self, level: str) -> int | None:
        """Return the feature of a level; None if it has none."""
        own = self.feature_of.get(level)
        if own is None and self.n_shared:
            return self.features[len(self.levels) + hashed(level)]
        return own

    def __str__(self) -> str:
        if self.kind != "category":
            return f"{self.name}: {self.kind}"
        more = f", all others share {self.n_shared} features" if self.n_shared else ""
        levels = "level" if len(self.levels) == 1 else "levels"
        return f"{self.name}: category of {len(self.levels)} {levels}{more}"

    def state(self) -> dict[str, Any]:
        """Return the column as plain values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "features": list(self.features),
            "levels": list(self.levels),
            "n_shared": self.n_shared,
        }


def restored_column(state: dict[str, Any], width: int) -> Column:
    """Return the column that `Column.state` described."""
    features = tuple(checks.integer("feature", each, 0, width - 1) for each in state["features"])
    levels = tuple(str(level) for level in state["levels"])
    n_shared = checks.integer("n_shared", state["n_shared"], 0, N_SHARED)
    kind = checks.one_of("kind", state["kind"], KINDS[:2])
    n_features = len(levels) + n_shared if kind == "category" else 1
    if len(features) != n_features or n_shared not in (0, N_SHARED):
        raise ArchiveError(f"column {state['name']!r} must have {n_features} features")
    return Column(str(state["name"]), kind, features, levels, n_shared)


def hashed(level: str) -> int:
    """Return which of the shared features a level has: the same in every process."""
    digest = hashlib.blake2b(level.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % N_SHARED
