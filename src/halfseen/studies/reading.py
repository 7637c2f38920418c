"""From a data file to a study; every mistake is told with its key."""

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from halfseen import checks
from halfseen.errors import StudyError
from halfseen.studies.plain import (
    first_of,
    parse_seeds,
    read_integer,
    read_table,
    read_tables,
    read_text,
    read_texts,
    refuse_other_types,
)
from halfseen.studies.settings import Layers, read_settings, read_tuning
from halfseen.studies.spec import Study

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
    "comparisons",
    "smoke",
)
_SMOKE_KEYS = ("seeds", "points", "world", "observe_prob", "methods", "settings", "tuning")


def package_study(name: str, scale: str = "paper") -> Study:
    """Return a study that ships with the package by the name of its file."""
    file = Path(str(files("halfseen.studies"))) / "files" / f"{name}.toml"
    if not file.exists():
        raise StudyError(f"there is no study {name!r} in the package")
    return read_study(file, scale)


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
    tuning = read_tuning(data, smoke)
    layers = Layers(data, smoke, home, lambda name: package_study(name, scale))
    settings = read_settings(layers, tuning)
    if tuning is not None:
        if scale == "paper":  # the small form may leave out what is tuned
            shared = {name: s for name, s in settings.items() if s.tuning is None}
            tuning.check({name: [*s.methods, *s.unreported] for name, s in shared.items()})
        tuning = tuning.part({key for setting in settings.values() for key in setting.methods})
        settings = {name: s.part(s.methods, tuning) for name, s in settings.items()}
    return Study(
        name=name,
        title=read_text(data, "title", name),
        seeds=parse_seeds(*first_of("seeds", data, smoke, "0:10")),
        settings=settings,
        points=read_integer(*first_of("points", data, smoke, 100), 2),
        notes=tuple(read_texts(data.get("notes", []), "notes")),
        figures=tuple(read_tables(data.get("figures", []), "figures")),
        claims=tuple(read_tables(data.get("claims", []), "claims")),
        comparisons=tuple(read_tables(data.get("comparisons", []), "comparisons")),
        tuning=tuning,
    )
