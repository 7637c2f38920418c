"""From a data file to a study; every mistake is told with its key."""

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from halfseen import checks
from halfseen.errors import InvalidSettingError, StudyError
from halfseen.simulation.methods import Method, method_from
from halfseen.studies.plain import (
    read_integer,
    read_probs,
    read_table,
    read_tables,
    read_text,
    read_texts,
    refuse_other_types,
)
from halfseen.studies.spec import Setting, Study
from halfseen.studies.tuning import Tuning, tuning_from
from halfseen.worlds.registry import world_from

SCALES = ("paper", "smoke")
"""A study at full size, and one that shows in seconds that everything works."""

_STUDY_KEYS = (
    "name",
    "title",
    "seeds",
    "points",
    "notes",
    "world",
    "observe_prob",
    "methods",
    "settings",
    "tuning",
    "figures",
    "claims",
    "smoke",
)
_SMOKE_KEYS = ("seeds", "points", "world", "observe_prob", "methods", "settings", "tuning")
_SETTING_KEYS = ("world", "observe_prob", "methods")


def read_study(path: Path, scale: str = "paper") -> Study:
    """Return the study of a TOML or JSON file.

    Raises
    ------
    StudyError
        The message names the file and the key.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from None
    try:
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise StudyError(f"{path} is not valid {kind}: {error}") from None
    try:
        return study_from(data, scale, home=path.parent)
    except StudyError as error:
        raise StudyError(f"{path}: {error}") from None


def study_from(data: Mapping[str, Any], scale: str = "paper", home: Path | None = None) -> Study:
    """Return the study that plain data describe, at a scale.

    Parameters
    ----------
    data : mapping
        As in a study file.
    scale : "paper" or "smoke"
    home : Path, optional
        Folder to which paths of data in the file are relative.
    """
    checks.one_of("scale", scale, SCALES)
    data = read_table(data, "", _STUDY_KEYS)
    refuse_other_types(data, "")
    smoke = read_table(data.get("smoke", {}), "smoke", _SMOKE_KEYS)
    if scale == "paper":
        smoke = {}
    name = read_text(data, "name")
    tuning = _tuning(data, smoke)
    settings = _settings(data, smoke, home, tuning)
    if tuning is not None:
        if scale == "paper":  # the small form may leave out what is tuned
            tuning.check({name: [*s.methods, *s.unreported] for name, s in settings.items()})
        tuning = tuning.part({key for setting in settings.values() for key in setting.methods})
        settings = {name: s.part(s.methods, tuning) for name, s in settings.items()}
    return Study(
        name=name,
        title=read_text(data, "title", name),
        seeds=parse_seeds(*_first("seeds", data, smoke, "0:10")),
        settings=settings,
        points=read_integer(*_first("points", data, smoke, 100), 2),
        notes=tuple(read_texts(data.get("notes", []), "notes")),
        figures=tuple(read_tables(data.get("figures", []), "figures")),
        claims=tuple(read_tables(data.get("claims", []), "claims")),
        tuning=tuning,
    )


def parse_seeds(value: Any, where: str = "seeds") -> tuple[int, ...]:
    """Return seeds from a list, a number, or a text such as "0:20" or "3,5,7".

    >>> parse_seeds("0:3"), parse_seeds("3,5"), parse_seeds([7, 8])
    ((0, 1, 2), (3, 5), (7, 8))
    """
    try:
        if isinstance(value, str) and ":" in value:
            first, _, end = value.partition(":")
            seeds = tuple(range(int(first or 0), int(end)))
        elif isinstance(value, str):
            seeds = tuple(int(part) for part in value.split(","))
        elif isinstance(value, list | tuple | range):
            seeds = tuple(checks.integer("seed", seed, 0) for seed in value)
        else:
            seeds = (checks.integer("seed", value, 0),)
    except ValueError:  # InvalidSettingError is one, too
        seeds = ()
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise StudyError(
            f'{where} must be different integers from 0 on, such as "0:20" or [3, 5], got {value!r}'
        )
    return seeds


def _tuning(data: Mapping[str, Any], smoke: Mapping[str, Any]) -> Tuning | None:
    if "tuning" not in data:
        return None
    given = read_table(data["tuning"], "tuning", ("seeds", "methods"))
    small = read_table(smoke.get("tuning", {}), "smoke.tuning", ("seeds",))
    where = "smoke.tuning.seeds" if "seeds" in small else "tuning.seeds"
    return tuning_from(given, parse_seeds({**given, **small}.get("seeds"), where))


def _settings(
    data: Mapping[str, Any], smoke: Mapping[str, Any], home: Path | None, tuning: Tuning | None
) -> dict[str, Setting]:
    given = data.get("settings", {"default": {}})
    if not isinstance(given, Mapping) or not given:
        raise StudyError(f"settings must be tables by name, at least one, got {given!r}")
    wanted = smoke.get("settings", list(given))
    known = isinstance(wanted, list) and all(name in list(given) for name in wanted)
    if not known or not wanted:
        raise StudyError(f"smoke.settings must be names of settings {list(given)}, got {wanted!r}")
    return {name: _setting(name, given[name], data, smoke, home, tuning) for name in wanted}


def _setting(
    name: str,
    given: Any,
    data: Mapping[str, Any],
    smoke: Mapping[str, Any],
    home: Path | None,
    tuning: Tuning | None,
) -> Setting:
    where = f"settings.{name}"
    own = read_table(given, where, _SETTING_KEYS)
    layers = {"world": data, f"{where}.world": own, "smoke.world": smoke}
    layers = {place: owner.get("world", {}) for place, owner in layers.items()}
    world = _world(layers)
    if home is not None and isinstance(world.get("path"), str):
        world["path"] = str((home / world["path"]).resolve())
    probs, place = _first("observe_prob", data, smoke, [])
    if "observe_prob" in own and "observe_prob" not in smoke:
        probs, place = own["observe_prob"], f"{where}.observe_prob"
    observe_probs = read_probs(probs, place)
    try:
        world_from(world)
        for p in observe_probs:
            world_from({**world, "observe_prob": p})
    except InvalidSettingError as error:
        raise StudyError(f"{_place(layers, error)}.{error}") from None
    methods = _methods(where, data, own, smoke, () if tuning is None else tuning.searches)
    reported = {key: method for key, (method, skip) in methods.items() if not skip}
    if not reported:
        raise StudyError(
            f"methods must name at least one for {where}, such as [methods.tofu], got none"
        )
    return Setting(
        world=world,
        observe_probs=observe_probs,
        methods=reported,
        unreported={key: method for key, (method, skip) in methods.items() if skip},
    )


def _first(
    key: str, data: Mapping[str, Any], smoke: Mapping[str, Any], default: Any
) -> tuple[Any, str]:
    """Return the value of a key and where it stands: in [smoke], in the study, or nowhere."""
    if key in smoke:
        return smoke[key], f"smoke.{key}"
    return data.get(key, default), key


def _place(layers: Mapping[str, Mapping[str, Any]], error: InvalidSettingError) -> str:
    """Return where the setting stands that an error is about: its name is the first word."""
    name = re.split(r"\W", str(error))[0]
    owners = [place for place, layer in layers.items() if name in layer]
    return owners[-1] if owners else "world"


def _world(layers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a world, of which later layers replace those of earlier ones."""
    world: dict[str, Any] = {}
    for place, layer in layers.items():
        if not isinstance(layer, Mapping):
            raise StudyError(f"{place} must be a table, got {layer!r}")
        if layer.get("kind", world.get("kind")) != world.get("kind"):
            world = {}  # another kind of world starts anew
        world |= layer
    return world


def _methods(
    where: str,
    data: Mapping[str, Any],
    own: Mapping[str, Any],
    smoke: Mapping[str, Any],
    tuned: Collection[str],
) -> dict[str, tuple[Method, bool]]:
    """Return methods, and whether each is skipped; of the skipped ones only those to be tuned."""
    shared = _method_tables(data.get("methods", {}), "methods")
    special = _method_tables(own.get("methods", {}), f"{where}.methods")
    small = _method_tables(smoke.get("methods", {}), "smoke.methods")
    methods = {}
    for key in {**shared, **special}:
        plain = {**shared.get(key, {}), **special.get(key, {}), **small.get(key, {})}
        owner = f"{where}.methods.{key}" if key in special else f"methods.{key}"
        skip = plain.pop("skip", False)
        if not isinstance(skip, bool):
            raise StudyError(f"{owner}.skip must be true or false, got {skip!r}")
        if skip and key not in tuned:
            continue
        if key in tuned and "budget_seconds" in plain:
            raise StudyError(
                f"{owner}.budget_seconds cannot be set for a method that is tuned: what is chosen "
                f"would depend on the machine, got {plain['budget_seconds']!r}"
            )
        try:
            methods[key] = method_from(key, plain), skip
        except InvalidSettingError as error:
            raise StudyError(f"{owner}: {error}") from None
    return methods


def _method_tables(value: Any, where: str) -> dict[str, dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(key, str) for key in value):
        return {key: {} for key in value}
    if not isinstance(value, Mapping):
        raise StudyError(f"{where} must be tables by key, or a list of keys, got {value!r}")
    for key, plain in value.items():
        if not isinstance(plain, Mapping):
            raise StudyError(f"{where}.{key} must be a table of settings, got {plain!r}")
    return {key: dict(plain) for key, plain in value.items()}
