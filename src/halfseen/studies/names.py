"""Names in a study file: which there are, and which are used but not there."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from halfseen import checks
from halfseen.studies.fields import Place, as_table

_NAMES = {"setting": "setting", "settings": "setting", "comparison": "comparison"} | dict.fromkeys(
    (
        *("method", "methods", "than", "relative_to", "against", "lead_over"),
        *("total", "plus", "minus", "ranks"),
    ),
    "method",
)
"""Keys of figures, claims and comparisons whose values are names, and what they name."""


def method_keys(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the keys of all methods by setting, also of those with mistakes."""
    settings = as_table(data.get("settings", {"default": {}}))
    shared, found = data.get("methods"), {}
    for name, given in settings.items():
        both = (as_table(each) or _list(each) for each in (shared, as_table(given).get("methods")))
        keys = (key for table in both for key in table if isinstance(key, str))
        found[name] = list(dict.fromkeys(keys))
    return found


def unknown_names(
    data: Mapping[str, Any], known: Mapping[str, Collection[str]]
) -> dict[Place, str]:
    """Return the places of names that repeat, or that name what a study does not have.

    Parameters
    ----------
    data : mapping
        All that the file says.
    known : mapping
        The names of each "method" and "setting", where these are checked. A part of a study keeps
        the figures and claims of the whole, so that it may name others.
    """
    compared = [as_table(each).get("name") for each in _list(data.get("comparisons"))]
    names: dict[str, Collection[Any]] = {"comparison": compared, **known}
    found = _repeated(data, "figures", "label") | _repeated(data, "comparisons", "name")
    for part in ("figures", "claims", "comparisons"):
        for place, kind, name in _mentioned(data.get(part), (part,)):
            if kind in names and name not in names[kind]:
                found[place] = _not_among(names[kind], name)
    settings = method_keys(data).keys()
    for name in _list(as_table(data.get("smoke")).get("settings")):
        if isinstance(name, str) and name not in settings:
            found["smoke", "settings"] = _not_among(settings, name)
    return found


def _mentioned(value: Any, place: Place) -> Iterator[tuple[Place, str, str]]:
    """Yield names in plain data with their places and what they name."""
    if isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _mentioned(item, (*place, at))
    for key, item in as_table(value).items():
        inner = (*place, key)
        if key in _NAMES and isinstance(item, str):
            yield inner, _NAMES[key], item
        elif key in _NAMES and isinstance(item, list | tuple):
            names = ((at, name) for at, name in enumerate(item) if isinstance(name, str))
            yield from (((*inner, at), _NAMES[key], name) for at, name in names)
        else:
            yield from _mentioned(item, inner)


def _not_among(known: Collection[Any], name: str) -> str:
    words = ", ".join(repr(each) for each in known) or "those of the study, which has none"
    return f"must be one of {words}, got {name!r}{checks.did_you_mean(name, map(str, known))}"


def _repeated(data: Mapping[str, Any], table: str, key: str) -> dict[Place, str]:
    names = [as_table(each).get(key) for each in _list(data.get(table))]
    files = [name.removeprefix("fig:") if isinstance(name, str) else None for name in names]
    return {
        (table, at, key): f"must differ from all before, because it names a file, got {name!r}"
        for at, name in enumerate(files)
        if name is not None and name in files[:at]
    }


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [] if value is None else [value]
