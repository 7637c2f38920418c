"""Makes a study from the tables of a file: layers of worlds and methods, and mistakes in them."""

import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from halfseen import checks
from halfseen.errors import InvalidSettingError, StudyError
from halfseen.simulation.methods import Method, method_from
from halfseen.simulation.plugins import load_installed_plugins, load_plugin
from halfseen.studies.fields import Place
from halfseen.studies.mistakes import described, located, mistakes_in_world, sentence
from halfseen.studies.names import method_keys, unknown_names
from halfseen.studies.schema import SettingTable, SmokeTable, StudyFile, TakenTable
from halfseen.studies.setting import Setting, Tuning, build_worlds, tuning_from
from halfseen.studies.spec import Study
from halfseen.worlds.base import World

_Layers = Mapping[Place, StudyFile | SettingTable | SmokeTable]


@dataclass
class Reader:
    """Makes a study from a file and collects all mistakes.

    Attributes
    ----------
    file : StudyFile
        Without what is wrong in `data`.
    data : mapping
        All that the file says.
    wrong : collection of Place
        What is wrong in `data`; mistakes that may follow from it are not reported.
    mistakes : list of str
    package_study : callable
        Returns a study of the package by name and scale.
    """

    file: StudyFile
    data: Mapping[str, Any]
    scale: str
    home: Path | None
    check: bool
    wrong: Collection[Place]
    mistakes: list[str]
    package_study: Callable[[str, str], Study]

    @property
    def smoke(self) -> SmokeTable:
        """How the small form differs; empty at full size."""
        return self.file.smoke if self.scale == "smoke" else SmokeTable()

    @cached_property
    def shared(self) -> Tuning | None:
        """What is tuned in all settings without tuning of their own."""
        small = self.smoke.tuning
        return tuning_from(self.file.tuning, None if small is None else small.seeds)

    def study(self) -> Study | None:
        """Return the study as far as it can be made, or None."""
        plugins = self._plugins()
        if plugins is None:  # other mistakes may follow from this one
            return None
        settings = self._settings()
        methods = [key for setting in settings.values() for key in setting.methods]
        found = unknown_names(self.data, self._names(settings) if self.check else {})
        self.mistakes += [sentence(place, text) for place, text in found.items()]
        tuning = self.shared
        if tuning is not None:
            tuning = tuning.part(methods)
            settings = {name: each.part(each.methods, tuning) for name, each in settings.items()}
        file = self.file
        try:
            return Study(
                name=file.name,
                title=file.title or file.name,
                seeds=self.smoke.seeds or file.seeds,
                settings=settings,
                points=self.smoke.points or file.points,
                notes=file.notes,
                figures=file.figures,
                claims=file.claims,
                comparisons=file.comparisons,
                tuning=tuning,
                plugins=plugins,
            )
        except StudyError as error:
            self.mistakes.append(str(error))
            return None

    def _plugins(self) -> tuple[str, ...] | None:
        """Import what may define policies and worlds; None where something cannot be imported."""
        load_installed_plugins()
        loaded = []
        for index, name in enumerate(self.file.plugins):
            try:
                loaded.append(load_plugin(name, self.home))
            except StudyError as error:
                self.mistakes.append(f"plugins[{index}]: {error}")
        return tuple(loaded) if len(loaded) == len(self.file.plugins) else None

    def _settings(self) -> dict[str, Setting]:
        """Return the settings by name, without those whose worlds cannot be built."""
        found: dict[str, Setting] = {}
        if "settings" in self.data and "settings" not in self.file.model_fields_set:
            return found  # all of them are wrong
        for name in self.smoke.settings or self.file.settings:
            given = self.file.settings.get(name)
            setting = None
            if isinstance(given, TakenTable):
                setting = self._taken(f"settings.{name}", given)
            elif given is not None:
                setting = self._setting(name, given)
            if setting is not None:
                found[name] = setting
        self._check_tuning()
        return found

    def _check_tuning(self) -> None:
        """Report methods that are tuned but not there."""
        keys = method_keys(self.data)
        for name, given in self.file.settings.items():
            if isinstance(given, TakenTable):
                keys.pop(name)
            elif (tuning := tuning_from(given.tuning)) is not None:
                found = tuning.mistakes({name: keys.pop(name)})
                self.mistakes += [f"settings.{name}.{text}" for text in found]
        if self.shared is not None:
            self.mistakes += self.shared.mistakes(keys)

    def _names(self, settings: Mapping[str, Setting]) -> dict[str, list[str]]:
        """Return the names that figures, claims and comparisons may use, where all are known."""
        own = method_keys(self.data)
        keys = [*own.values(), *(setting.methods for setting in settings.values())]
        names = {"setting": list(own), "method": list(dict.fromkeys(itertools.chain(*keys)))}
        for name, given in self.file.settings.items():
            if name not in settings and isinstance(given, TakenTable) and given.methods is None:
                del names["method"]  # those of a study that was not read are not known
                break
        return names

    def _wrong(self, *tables: Place) -> bool:
        """Tell whether something is wrong in one of these tables."""
        return any(place[: len(table)] == table for place in self.wrong for table in tables)

    def _taken(self, where: str, given: TakenTable) -> Setting | None:
        """Return the setting of another study with some of its methods, its seeds and its tuning.

        Its cells are the very cells of that study, so that none is run twice.
        """
        try:
            study = self.package_study(given.study, self.scale)
        except StudyError as error:
            self.mistakes.append(f"{where}.study: {error}")
            return None
        if len(study.settings) != 1:
            found = f"got {given.study!r} with {list(study.settings)}"
            self.mistakes.append(f"{where}.study must have one setting, {found}")
            return None
        (setting,) = study.settings.values()
        keys = list(setting.methods) if given.methods is None else given.methods
        unknown = [key for key in keys if key not in setting.methods]
        self.mistakes += [
            f"{where}.methods must be among those of {study.name}, {list(setting.methods)}, "
            f"got {key!r}{checks.did_you_mean(key, setting.methods)}"
            for key in unknown
        ]
        if unknown:
            return None
        return replace(setting, seeds=study.seeds, tuning=study.tuning).part(keys, None)

    def _setting(self, name: str, own: SettingTable) -> Setting | None:
        layers: _Layers = {(): self.file, ("settings", name): own, ("smoke",): self.smoke}
        tuning = tuning_from(own.tuning)
        in_force = tuning or self.shared
        methods = self._methods(layers, name, () if in_force is None else in_force.searches)
        probs = self.smoke.observe_prob
        if probs is None:
            probs = self.file.observe_prob if own.observe_prob is None else own.observe_prob
        world, built = self._worlds(layers, probs)
        if not built:
            return None
        setting = Setting(
            world=world,
            observe_probs=probs,
            methods={key: method for key, (method, skip) in methods.items() if not skip},
            unreported={key: method for key, (method, skip) in methods.items() if skip},
            seeds=own.seeds if self.smoke.seeds is None else None,
            tuning=tuning,
            built=built,
        )
        if self.check:
            self._build_policies(setting, name, own)
        return setting if tuning is None else setting.part(setting.methods, None)

    def _build_policies(self, setting: Setting, name: str, own: SettingTable) -> None:
        """Report all that fails when worlds are realized and policies are built."""
        seeds = setting.seeds or self.smoke.seeds or self.file.seeds
        for what, error in setting.mistakes(seeds[0], self.shared):
            table, _, key = what.partition(".")
            given = key in own.methods if table == "methods" else bool(getattr(own, table))
            self.mistakes.append(located(f"settings.{name}.{what}" if given else what, error))

    def _worlds(
        self, layers: _Layers, probs: tuple[float, ...]
    ) -> tuple[dict[str, Any], dict[float | None, World]]:
        """Return the plain world of a setting, and the worlds themselves, if nothing is wrong."""
        places = {(*place, "world"): table.world for place, table in layers.items()}
        world: dict[str, Any] = {}
        for layer in places.values():
            if layer.get("kind", world.get("kind")) != world.get("kind"):
                world = {}  # another kind of world starts anew
            world |= layer
        if self.home is not None and isinstance(world.get("path"), str):
            world["path"] = str((self.home / world["path"]).resolve())
        incomplete = self._wrong(*places)
        try:
            built = build_worlds(world, probs)
        except InvalidSettingError:
            for plain in [{**world, "observe_prob": p} for p in probs] or [world]:
                self.mistakes += mistakes_in_world(dict(plain), places, incomplete)
            return world, {}
        return world, {} if incomplete else built

    def _methods(
        self, layers: _Layers, setting: str, tuned: Collection[str]
    ) -> dict[str, tuple[Method, bool]]:
        """Return methods, and whether each is skipped but tuned."""
        before, methods = len(self.mistakes), {}
        for key in {**self.file.methods, **layers["settings", setting].methods}:
            places = {
                (*place, "methods", key): table.methods[key]
                for place, table in layers.items()
                if key in table.methods
            }
            found = self._method(key, places, key in tuned)
            if found is not None:
                methods[key] = found
        right = len(self.mistakes) == before and not self._wrong(
            *((*at, "methods") for at in layers)
        )
        if right and all(skip for _, skip in methods.values()):
            self.mistakes.append(
                f"methods must name at least one for settings.{setting}, such as [methods.tofu], "
                "got none"
            )
        return methods

    def _method(
        self, key: str, places: Mapping[Place, Mapping[str, Any]], tuned: bool
    ) -> tuple[Method, bool] | None:
        """Return a method, and whether it is skipped; None where it is not needed or wrong."""
        plain = {name: value for layer in places.values() for name, value in layer.items()}
        try:
            skip = _read_skip(plain, tuned)
            method = method_from(key, plain) if tuned or not skip else None
        except InvalidSettingError as error:
            self.mistakes.append(described(places, error.name, error))
            return None
        wrong = method.mistakes() if method is not None and self.check else {}
        self.mistakes += [described(places, name, error) for name, error in wrong.items()]
        return None if method is None or wrong or self._wrong(*places) else (method, skip)


def _read_skip(plain: dict[str, Any], tuned: bool) -> bool:
    """Return whether a method is left out; a reason to skip its cells stays where it is."""
    skip = plain.get("skip", False)
    if isinstance(skip, bool):
        plain.pop("skip", None)
        return skip
    if not isinstance(skip, str) or not skip:
        raise InvalidSettingError(
            "must be true (leave the method out), false, or a text that says why its cells are not "
            f"run, got {skip!r}",
            name="skip",
        )
    if tuned:
        raise InvalidSettingError(
            f"must be true, or left out, for a method that is tuned, got {skip!r}", name="skip"
        )
    return False
