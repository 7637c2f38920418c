"""What a study says about panels of measured numbers and their bounds, read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halfseen.report.keys import Keys

MEASURED_KEYS = (
    "setting",
    "p",
    "method",
    "x",
    "lines",
    "xlabel",
    "ylabel",
    "xscale",
    "yscale",
)
"""What a panel of measured numbers may say beside kind, methods and title."""

SCALES = ("log", "linear", "symlog")
ROLES = ("measured", "second", "third", "fourth", "bound", "other-bound", "reference")
"""How a line is drawn: up to four measured things, up to two bounds, something to compare with."""

_LINE_KEYS = ("value", "label", "role", "x", "setting", "p", "method")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSpec:
    """One line: what a measure told under a name, over what it told under another.

    Attributes
    ----------
    value, x : str
        Names of two lists in the diagnostics.
    label : str
    role : str
        One of `ROLES`.
    setting, method : str
    p : float, optional
        None for the only one of its setting.
    """

    value: str
    x: str
    label: str
    role: str
    setting: str
    method: str
    p: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpec:
    """What a panel of measured numbers shows.

    Attributes
    ----------
    lines : tuple of LineSpec
    xlabel, ylabel : str
    xscale, yscale : "log", "linear" or "symlog"
    """

    lines: tuple[LineSpec, ...]
    xlabel: str
    ylabel: str
    xscale: str = "log"
    yscale: str = "log"


def measured_spec(plain: Mapping[str, Any], where: str, known: tuple[str, ...]) -> MeasuredSpec:
    """Return what a panel says; a line that names no setting, method, p or x has the panel's.

    Parameters
    ----------
    plain : mapping
        The panel in the study file.
    where : str
        Its place there.
    known : tuple of str
        All keys it may have.

    Raises
    ------
    StudyError
        The message names the key.
    """
    keys = Keys(plain, where, known)
    lines = tuple(
        _line({**_shared(plain), **_table(line)}, f"{where}.lines[{index}]")
        for index, line in enumerate(keys.tables("lines"))
    )
    return MeasuredSpec(
        lines=lines,
        xlabel=keys.text("xlabel"),
        ylabel=keys.text("ylabel"),
        xscale=_scale(keys, plain, "xscale"),
        yscale=_scale(keys, plain, "yscale"),
    )


def _shared(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {key: plain[key] for key in ("setting", "p", "method", "x") if key in plain}


def _table(line: Any) -> Mapping[str, Any]:
    """Return a line as a table; a bare text is the name of its values."""
    return line if isinstance(line, Mapping) else {"value": line}


def _line(plain: Mapping[str, Any], where: str) -> LineSpec:
    keys = Keys(plain, where, _LINE_KEYS)
    value = keys.text("value")
    return LineSpec(
        value=value,
        x=keys.text("x"),
        label=keys.text("label", value.replace("_", " ")),
        role=keys.one_of("role", ROLES) if "role" in plain else "measured",
        setting=keys.text("setting", "default"),
        method=keys.text("method"),
        p=keys.prob("p"),
    )


def _scale(keys: Keys, plain: Mapping[str, Any], key: str) -> str:
    return keys.one_of(key, SCALES) if key in plain else "log"
