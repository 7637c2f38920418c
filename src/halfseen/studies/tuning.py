"""Which methods of a study are tuned, on which seeds, and who shares what was chosen."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from halfseen.simulation.tune import Search
from halfseen.studies.schema import Shared, TuningTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What is tuned before anything is reported, for each setting and probability anew.

    Attributes
    ----------
    seeds : tuple of int
        Validation seeds.
    searches : mapping
        By key of the method that is tuned.
    shared : mapping
        From the key of a method to that of another, whose chosen settings it takes.
    """

    seeds: tuple[int, ...]
    searches: Mapping[str, Search]
    shared: Mapping[str, str] = field(default_factory=dict)

    def source(self, key: str) -> str | None:
        """Return whose chosen settings a method takes; None where it keeps its own."""
        return key if key in self.searches else self.shared.get(key)

    def part(self, keys: Collection[str]) -> "Tuning | None":
        """Return what some methods need; None where that is nothing."""
        shared = {key: source for key, source in self.shared.items() if key in keys}
        needed = {*keys, *shared.values()}
        searches = {key: search for key, search in self.searches.items() if key in needed}
        return replace(self, searches=searches, shared=shared) if searches else None

    def mistakes(self, settings: Mapping[str, Iterable[str]]) -> list[str]:
        """Return what is wrong because a study does not have a method.

        Parameters
        ----------
        settings : mapping
            From the name of a setting to the keys of its methods.
        """
        known = list(dict.fromkeys(key for keys in settings.values() for key in keys))
        found = [
            f"tuning.methods.{key} is not a method of this study: {known}"
            for key in (*self.searches, *self.shared)
            if key not in known
        ]
        return found + [
            f"tuning.methods.{key}.shared_with must name a method of settings.{name}, "
            f"{list(keys)}, got {source!r}"
            for key, source in self.shared.items()
            for name, keys in settings.items()
            if key in keys and source not in keys
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, from which `tuning_from` makes it again."""
        methods: dict[str, Any] = {
            key: {"ties": search.ties, **{name: list(each) for name, each in search.grid.items()}}
            for key, search in self.searches.items()
        }
        methods |= {key: {"shared_with": source} for key, source in self.shared.items()}
        return {"seeds": list(self.seeds), "methods": methods}


def tuning_from(table: TuningTable | None, seeds: tuple[int, ...] | None = None) -> Tuning | None:
    """Return what a table says, perhaps with other seeds; None where there is no table."""
    if table is None:
        return None
    given = table.methods.items()
    return Tuning(
        seeds=table.seeds if seeds is None else seeds,
        searches={key: each for key, each in given if isinstance(each, Search)},
        shared={key: each.shared_with for key, each in given if isinstance(each, Shared)},
    )
