"""The settings of a study file: layers of worlds and methods, read key by key."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from halfseen.errors import InvalidSettingError, StudyError
from halfseen.simulation.methods import Method, method_from
from halfseen.studies.plain import first_of, parse_seeds, read_probs, read_table, read_texts
from halfseen.studies.setting import Setting
from halfseen.studies.spec import Study
from halfseen.studies.tuning import Tuning, tuning_from
from halfseen.worlds.registry import world_from

_SETTING_KEYS = ("world", "observe_prob", "methods", "seeds", "tuning")
_TAKEN_KEYS = ("study", "methods")


class Layers(NamedTuple):
    """What settings are made of.

    Attributes
    ----------
    data, smoke : mapping
        The study file, and the table that says how its small form differs.
    home : Path, optional
        Folder to which paths of data are relative.
    study : str -> Study
        A study of the package by name, at the same scale.
    """

    data: Mapping[str, Any]
    smoke: Mapping[str, Any]
    home: Path | None
    study: Callable[[str], Study]


def read_settings(layers: Layers, tuning: Tuning | None) -> dict[str, Setting]:
    """Return the settings of a study by name.

    Raises
    ------
    StudyError
        The message names the key.
    """
    given = layers.data.get("settings", {"default": {}})
    if not isinstance(given, Mapping) or not given:
        raise StudyError(f"settings must be tables by name, at least one, got {given!r}")
    wanted = layers.smoke.get("settings", list(given))
    known = isinstance(wanted, list) and all(name in list(given) for name in wanted)
    if not known or not wanted:
        raise StudyError(f"smoke.settings must be names of settings {list(given)}, got {wanted!r}")
    return {
        name: _taken(name, given[name], layers)
        if isinstance(given[name], Mapping) and "study" in given[name]
        else _setting(name, given[name], layers, tuning)
        for name in wanted
    }


def read_tuning(data: Mapping[str, Any], smoke: Mapping[str, Any]) -> Tuning | None:
    """Return what the table `tuning` of a study, or of a setting, says; None where it has none."""
    if "tuning" not in data:
        return None
    given = read_table(data["tuning"], "tuning", ("seeds", "methods"))
    small = read_table(smoke.get("tuning", {}), "smoke.tuning", ("seeds",))
    where = "smoke.tuning.seeds" if "seeds" in small else "tuning.seeds"
    return tuning_from(given, parse_seeds({**given, **small}.get("seeds"), where))


def _taken(name: str, given: Mapping[str, Any], layers: Layers) -> Setting:
    """Return the setting of another study with some of its methods, its seeds and its tuning.

    Its cells are the very cells of that study, so that none is run twice.
    """
    where = f"settings.{name}"
    own = read_table(given, where, _TAKEN_KEYS)
    if not isinstance(own["study"], str):
        raise StudyError(f"{where}.study must be a text, got {own['study']!r}")
    try:
        study = layers.study(own["study"])
    except StudyError as error:
        raise StudyError(f"{where}.study: {error}") from None
    if len(study.settings) != 1:
        raise StudyError(
            f"{where}.study must have one setting, got {own['study']!r} with {list(study.settings)}"
        )
    (setting,) = study.settings.values()
    keys = read_texts(own.get("methods", list(setting.methods)), f"{where}.methods")
    for key in keys:
        if key not in setting.methods:
            raise StudyError(
                f"{where}.methods must be among those of {study.name}, {list(setting.methods)}, "
                f"got {key!r}"
            )
    return replace(setting, seeds=study.seeds, tuning=study.tuning).part(keys, None)


def _setting(name: str, given: Any, layers: Layers, shared: Tuning | None) -> Setting:
    where, smoke = f"settings.{name}", layers.smoke
    own = read_table(given, where, _SETTING_KEYS)
    world, observe_probs = _swept(where, own, layers)
    try:
        tuning = read_tuning(own, {})
    except StudyError as error:
        raise StudyError(f"{where}.{error}") from None
    in_force = tuning or shared
    tuned = () if in_force is None else in_force.searches
    methods = _methods(where, layers.data, own, smoke, tuned)
    reported = {key: method for key, (method, skip) in methods.items() if not skip}
    if not reported:
        raise StudyError(
            f"methods must name at least one for {where}, such as [methods.tofu], got none"
        )
    seeds = own.get("seeds") if "seeds" not in smoke else None
    setting = Setting(
        world=world,
        observe_probs=observe_probs,
        methods=reported,
        unreported={key: method for key, (method, skip) in methods.items() if skip},
        seeds=None if seeds is None else parse_seeds(seeds, f"{where}.seeds"),
        tuning=tuning,
    )
    if tuning is None:
        return setting
    tuning.check({name: list(methods)})
    return setting.part(setting.methods, None)


def _swept(
    where: str, own: Mapping[str, Any], layers: Layers
) -> tuple[dict[str, Any], tuple[float, ...]]:
    """Return the plain world of a setting, and its observation probabilities."""
    owners = {"world": layers.data, f"{where}.world": own, "smoke.world": layers.smoke}
    worlds = {place: owner.get("world", {}) for place, owner in owners.items()}
    world = _world(worlds)
    if layers.home is not None and isinstance(world.get("path"), str):
        world["path"] = str((layers.home / world["path"]).resolve())
    probs, place = first_of("observe_prob", layers.data, layers.smoke, [])
    if "observe_prob" in own and "observe_prob" not in layers.smoke:
        probs, place = own["observe_prob"], f"{where}.observe_prob"
    observe_probs = read_probs(probs, place)
    try:
        world_from(world)
        for p in observe_probs:
            world_from({**world, "observe_prob": p})
    except InvalidSettingError as error:
        raise StudyError(f"{_place(worlds, error)}.{error}") from None
    return world, observe_probs


def _place(worlds: Mapping[str, Mapping[str, Any]], error: InvalidSettingError) -> str:
    """Return where the setting stands that an error is about: its name is the first word."""
    name = re.split(r"\W", str(error))[0]
    owners = [place for place, layer in worlds.items() if name in layer]
    return owners[-1] if owners else "world"


def _world(worlds: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a world, of which later layers replace those of earlier ones."""
    world: dict[str, Any] = {}
    for place, layer in worlds.items():
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
        skip = _read_skip(plain, owner)
        if skip and key not in tuned:
            continue
        if key in tuned and "skip" in plain:
            raise StudyError(
                f"{owner}.skip must be true, or left out, for a method that is tuned, got "
                f"{plain['skip']!r}"
            )
        try:
            methods[key] = method_from(key, plain), skip
        except InvalidSettingError as error:
            raise StudyError(f"{owner}: {error}") from None
    return methods


def _read_skip(plain: dict[str, Any], owner: str) -> bool:
    """Return whether a method is left out; a reason to skip its cells stays where it is."""
    skip = plain.get("skip", False)
    if isinstance(skip, str) and skip:
        return False
    if not isinstance(skip, bool):
        raise StudyError(
            f"{owner}.skip must be true (leave the method out), false, or a text that says why its "
            f"cells are not run, got {skip!r}"
        )
    plain.pop("skip", None)
    return skip


def _method_tables(value: Any, where: str) -> dict[str, dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(key, str) for key in value):
        return {key: {} for key in value}
    if not isinstance(value, Mapping):
        raise StudyError(f"{where} must be tables by key, or a list of keys, got {value!r}")
    for key, plain in value.items():
        if not isinstance(plain, Mapping):
            raise StudyError(f"{where}.{key} must be a table of settings, got {plain!r}")
    return {key: dict(plain) for key, plain in value.items()}
