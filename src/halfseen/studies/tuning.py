"""Which methods of a study are tuned, on which seeds, and who shares what was chosen."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from halfseen.errors import InvalidSettingError, StudyError
from halfseen.simulation.tune import Search


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

    def check(self, settings: Mapping[str, Iterable[str]]) -> None:
        """Raise StudyError for a method that a study does not have.

        Parameters
        ----------
        settings : mapping
            From the name of a setting to the keys of its methods.
        """
        known = list(dict.fromkeys(key for keys in settings.values() for key in keys))
        for key in (*self.searches, *self.shared):
            if key not in known:
                raise StudyError(f"tuning.methods.{key} is not a method of this study: {known}")
        for key, source in self.shared.items():
            for name, keys in settings.items():
                if key in keys and source not in keys:
                    raise StudyError(
                        f"tuning.methods.{key}.shared_with must name a method of settings.{name}, "
                        f"{list(keys)}, got {source!r}"
                    )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, from which `tuning_from` makes it again."""
        methods: dict[str, Any] = {
            key: {"ties": search.ties, **{name: list(each) for name, each in search.grid.items()}}
            for key, search in self.searches.items()
        }
        methods |= {key: {"shared_with": source} for key, source in self.shared.items()}
        return {"seeds": list(self.seeds), "methods": methods}


def tuning_from(plain: Mapping[str, Any], seeds: tuple[int, ...]) -> Tuning:
    """Return what the table `tuning` of a study says; the seeds have been read already."""
    methods = plain.get("methods", {})
    if not isinstance(methods, Mapping) or not methods:
        raise StudyError(f"tuning.methods must be tables by key, at least one, got {methods!r}")
    searches, shared = {}, {}
    for key, given in methods.items():
        where = f"tuning.methods.{key}"
        if not isinstance(given, Mapping):
            raise StudyError(f"{where} must be a table of settings to try, got {given!r}")
        if "shared_with" in given:
            shared[key] = _source(given, where)
            continue
        grid = dict(given)
        ties = grid.pop("ties", "first")
        try:
            searches[key] = Search(grid=_flat(grid), ties=ties)
        except InvalidSettingError as error:
            raise StudyError(f"{where}.{error}") from None
    for key, source in shared.items():
        if source not in searches:
            raise StudyError(
                f"tuning.methods.{key}.shared_with must be one of the tuned methods "
                f"{list(searches)}, got {source!r}"
            )
    return Tuning(seeds=seeds, searches=searches, shared=shared)


def _source(given: Mapping[str, Any], where: str) -> str:
    source = given["shared_with"]
    if not isinstance(source, str):
        raise StudyError(f"{where}.shared_with must be the key of a tuned method, got {source!r}")
    for name in given:
        if name != "shared_with":
            raise StudyError(
                f"{where}.{name} cannot be tried: what {source!r} is given is taken (shared_with)"
            )
    return source


def _flat(grid: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a grid in which names with dots stand for tables within tables."""
    flat: dict[str, Any] = {}
    for name, values in grid.items():
        inner = _flat(values, f"{prefix}{name}.") if isinstance(values, Mapping) else None
        flat |= {f"{prefix}{name}": values} if inner is None else inner
    return flat
