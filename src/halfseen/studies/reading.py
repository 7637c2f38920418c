"""From a data file to a study: layers of worlds and methods, and every mistake in them."""

import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from halfseen import checks
from halfseen.errors import InvalidSettingError, StudyError
from halfseen.simulation.methods import Method, method_from
from halfseen.simulation.plugins import load_installed_plugins, load_plugin
from halfseen.studies.schema import (
    SettingTable,
    SmokeTable,
    StudyFile,
    TakenTable,
    file_from,
    refusal,
)
from halfseen.studies.setting import Setting, build_worlds
from halfseen.studies.spec import Study
from halfseen.studies.tuning import Tuning, tuning_from
from halfseen.worlds.base import World
from halfseen.worlds.registry import world_from

SCALES = ("paper", "smoke")
"""A study at full size, and one that shows in seconds that everything works."""


def package_study(name: str, scale: str = "paper") -> Study:
    """Return a study that ships with the package by the name of its file."""
    folder = Path(str(files("halfseen.studies"))) / "files"
    file = folder / f"{name}.toml"
    if not file.exists():
        near = checks.did_you_mean(name, (each.stem for each in folder.iterdir()))
        raise StudyError(f"there is no study {name!r} in the package{near}")
    return read_study(file, scale)


def read_study(path: Path, scale: str = "paper") -> Study:
    """Return the study of a TOML or JSON file.

    Raises
    ------
    StudyError
        The message names the file and all mistakes in it, each with its key.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from None
    try:
        return study_from(_parsed(path, text), scale, home=path.parent, source=str(path))
    except RecursionError:
        raise StudyError(f"{path} is nested too deeply to be a study") from None


def _parsed(path: Path, text: str) -> Any:
    """Return what a text says, which is JSON if its file is called so and TOML otherwise."""
    try:
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise StudyError(f"{path} is not valid {kind}: {error}") from None


def study_from(
    data: Any, scale: str = "paper", *, home: Path | None = None, source: str = ""
) -> Study:
    """Return the study that plain data describe, at a scale.

    Parameters
    ----------
    data : mapping
        As in a study file.
    scale : "paper" or "smoke"
    home : Path, optional
        Folder to which paths of data and plugins in the file are relative.
    source : str
        Where the data come from, for messages.

    Raises
    ------
    StudyError
        With all mistakes, each with its key and what to do.
    """
    checks.one_of("scale", scale, SCALES)
    file, mistakes = file_from(data)
    if file is None:
        raise refusal(mistakes, source)
    layers = Layers(file, file.smoke if scale == "smoke" else SmokeTable(), home, scale, mistakes)
    plugins = _load_plugins(layers, source)
    settings = _settings(layers)
    if layers.mistakes:
        raise refusal(layers.mistakes, source)
    try:
        return _study(layers, settings, plugins)
    except StudyError as error:
        raise refusal([str(error)], source) from None


def _study(layers: "Layers", settings: dict[str, Setting], plugins: tuple[str, ...]) -> Study:
    file, smoke, tuning = layers.file, layers.smoke, _shared_tuning(layers)
    if tuning is not None:
        tuning = tuning.part({key for setting in settings.values() for key in setting.methods})
        settings = {name: each.part(each.methods, tuning) for name, each in settings.items()}
    return Study(
        name=file.name,
        title=file.title or file.name,
        seeds=smoke.seeds or file.seeds,
        settings=settings,
        points=smoke.points or file.points,
        notes=file.notes,
        figures=file.figures,
        claims=file.claims,
        comparisons=file.comparisons,
        tuning=tuning,
        plugins=plugins,
    )


def _load_plugins(layers: "Layers", source: str) -> tuple[str, ...]:
    """Import what a study needs, which may define its policies and worlds."""
    load_installed_plugins()
    loaded = []
    for index, name in enumerate(layers.file.plugins):
        try:
            loaded.append(load_plugin(name, layers.home))
        except StudyError as error:
            layers.mistakes.append(f"plugins[{index}]: {error}")
    if len(loaded) < len(layers.file.plugins):  # other mistakes may only follow from these
        raise refusal(layers.mistakes, source)
    return tuple(loaded)


class Layers(NamedTuple):
    """What settings are made of.

    Attributes
    ----------
    file : StudyFile
    smoke : SmokeTable
        How the small form differs; empty at full size.
    home : Path, optional
        Folder to which paths of data are relative.
    scale : str
    mistakes : list of str
        What was found to be wrong so far.
    """

    file: StudyFile
    smoke: SmokeTable
    home: Path | None
    scale: str
    mistakes: list[str]


def _shared_tuning(layers: Layers) -> Tuning | None:
    """Return what is tuned in all settings that do not say so themselves."""
    small = layers.smoke.tuning
    return tuning_from(layers.file.tuning, None if small is None else small.seeds)


def _settings(layers: Layers) -> dict[str, Setting]:
    """Return the settings of a study by name, without those that have mistakes."""
    shared, found = _shared_tuning(layers), {}
    for name in layers.smoke.settings or layers.file.settings:
        given = layers.file.settings[name]
        if isinstance(given, TakenTable):
            setting = _taken(f"settings.{name}", given, layers)
        else:
            setting = _setting(name, given, layers, shared)
        if setting is not None:
            found[name] = setting
    if shared is not None and layers.scale == "paper" and not layers.mistakes:
        # The small form may leave out what is tuned.
        methods = {name: s.all_methods for name, s in found.items() if s.tuning is None}
        layers.mistakes.extend(shared.mistakes(methods))
    return found


def _taken(where: str, given: TakenTable, layers: Layers) -> Setting | None:
    """Return the setting of another study with some of its methods, its seeds and its tuning.

    Its cells are the very cells of that study, so that none is run twice.
    """
    try:
        study = package_study(given.study, layers.scale)
    except StudyError as error:
        layers.mistakes.append(f"{where}.study: {error}")
        return None
    if len(study.settings) != 1:
        layers.mistakes.append(
            f"{where}.study must have one setting, got {given.study!r} with {list(study.settings)}"
        )
        return None
    (setting,) = study.settings.values()
    keys = list(setting.methods) if given.methods is None else given.methods
    unknown = [key for key in keys if key not in setting.methods]
    for key in unknown:
        layers.mistakes.append(
            f"{where}.methods must be among those of {study.name}, {list(setting.methods)}, "
            f"got {key!r}{checks.did_you_mean(key, setting.methods)}"
        )
    if unknown:
        return None
    return replace(setting, seeds=study.seeds, tuning=study.tuning).part(keys, None)


def _setting(name: str, own: SettingTable, layers: Layers, shared: Tuning | None) -> Setting | None:
    where, smoke, before = f"settings.{name}", layers.smoke, len(layers.mistakes)
    tuning = tuning_from(own.tuning)
    in_force = tuning or shared
    methods = _methods(where, own, layers, () if in_force is None else in_force.searches)
    reported = {key: method for key, (method, skip) in methods.items() if not skip}
    if not reported and len(layers.mistakes) == before:
        layers.mistakes.append(
            f"methods must name at least one for {where}, such as [methods.tofu], got none"
        )
    probs = smoke.observe_prob
    if probs is None:
        probs = layers.file.observe_prob if own.observe_prob is None else own.observe_prob
    world, built = _worlds(where, own, probs, layers)
    if tuning is not None:
        layers.mistakes.extend(f"{where}.{text}" for text in tuning.mistakes({name: [*methods]}))
    if len(layers.mistakes) > before:
        return None
    setting = Setting(
        world=world,
        observe_probs=probs,
        methods=reported,
        unreported={key: method for key, (method, skip) in methods.items() if skip},
        seeds=own.seeds if smoke.seeds is None else None,
        tuning=tuning,
        built=built,
    )
    return setting if tuning is None else setting.part(setting.methods, None)


def _worlds(
    where: str, own: SettingTable, probs: tuple[float, ...], layers: Layers
) -> tuple[dict[str, Any], dict[float | None, World]]:
    """Return the plain world of a setting, and the worlds themselves, if nothing is wrong.

    Later layers replace settings of earlier ones.
    """
    places = {
        "world": layers.file.world,
        f"{where}.world": own.world,
        "smoke.world": layers.smoke.world,
    }
    world: dict[str, Any] = {}
    for layer in places.values():
        if layer.get("kind", world.get("kind")) != world.get("kind"):
            world = {}  # another kind of world starts anew
        world |= layer
    if layers.home is not None and isinstance(world.get("path"), str):
        world["path"] = str((layers.home / world["path"]).resolve())
    try:
        return world, build_worlds(world, probs)
    except InvalidSettingError:
        first = {**world, "observe_prob": probs[0]} if probs else world
        layers.mistakes.extend(_mistakes_in_world(first, places))
        return world, {}


def _mistakes_in_world(
    plain: Mapping[str, Any], places: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return all mistakes in a world, each with the layer that says so.

    A setting that is wrong is left out before the next mistake is looked for.
    """
    left = dict(plain)
    mistakes: list[str] = []
    while True:
        try:
            world_from(left)
            return mistakes
        except InvalidSettingError as error:
            name = next((each for each in left if str(error).startswith(f"{each} ")), None)
            owner = [place for place, layer in places.items() if name in layer]
            if name is not None or not mistakes:
                mistakes.append(f"{owner[-1] if owner else 'world'}.{error}")
            if name is None:
                return mistakes
            del left[name]


def _methods(
    where: str, own: SettingTable, layers: Layers, tuned: Collection[str]
) -> dict[str, tuple[Method, bool]]:
    """Return methods, and whether each is skipped; of the skipped ones only those to be tuned."""
    shared, methods = layers.file.methods, {}
    for key in {**shared, **own.methods}:
        plain = {
            **shared.get(key, {}),
            **own.methods.get(key, {}),
            **layers.smoke.methods.get(key, {}),
        }
        owner = f"{where}.methods.{key}" if key in own.methods else f"methods.{key}"
        try:
            skip = _read_skip(plain, key in tuned)
            if not skip or key in tuned:
                methods[key] = method_from(key, plain), skip
        except InvalidSettingError as error:
            layers.mistakes.append(f"{owner}.{error}")
    return methods


def _read_skip(plain: dict[str, Any], tuned: bool) -> bool:
    """Return whether a method is left out; a reason to skip its cells stays where it is."""
    skip = plain.get("skip", False)
    if isinstance(skip, bool):
        plain.pop("skip", None)
        return skip
    if not isinstance(skip, str) or not skip:
        raise InvalidSettingError(
            "skip must be true (leave the method out), false, or a text that says why its cells "
            f"are not run, got {skip!r}"
        )
    if tuned:
        raise InvalidSettingError(
            f"skip must be true, or left out, for a method that is tuned, got {skip!r}"
        )
    return False
