"""From a data file to a study."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from halfseen import checks
from halfseen.errors import StudyError
from halfseen.studies.mistakes import file_from, refusal, sentence
from halfseen.studies.reader import Reader
from halfseen.studies.spec import Study

SCALES = ("paper", "smoke")
"""A study at full size, and one that shows in seconds that everything works."""


def package_study(name: str, scale: str = "paper") -> Study:
    """Return a study that ships with the package by the name of its file."""
    folder = Path(str(files("halfseen.studies"))) / "files"
    file = folder / f"{name}.toml"
    if not file.exists():
        near = checks.did_you_mean(name, (each.stem for each in folder.iterdir()))
        raise StudyError(f"there is no study {name!r} in the package{near}")
    return read_study(file, scale, check=False)


def read_study(path: Path, scale: str = "paper", *, check: bool = True) -> Study:
    """Return the study of a TOML or JSON file; the parameters are those of `study_from`."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from None
    try:
        data = _parsed(path, text)
        return study_from(data, scale, home=path.parent, source=str(path), check=check)
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
    data: Any,
    scale: str = "paper",
    *,
    home: Path | None = None,
    source: str = "",
    check: bool = False,
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
    check : bool
        Also build every policy, and look for names that the study does not have in its figures,
        claims and comparisons. A stored part of a study has such names.

    Raises
    ------
    StudyError
        With all mistakes, each with its place and what to do.
    """
    checks.one_of("scale", scale, SCALES)
    file, wrong = file_from(data)
    mistakes = [sentence(place, text) for place, text in wrong.items()]
    if file is None:
        raise refusal(mistakes, source)
    reader = Reader(file, data, scale, home, check, wrong, mistakes, package_study)
    study = reader.study()
    if study is None or mistakes:
        raise refusal(mistakes, source)
    return study
