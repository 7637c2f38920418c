"""What a study says about its figures, read and checked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halfseen.errors import StudyError
from halfseen.report.data import points_of
from halfseen.report.keys import Keys
from halfseen.report.truth import share_label
from halfseen.studies.spec import Study

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
"""Keys of a panel of measured numbers, in addition to kind, methods and title."""

SCALES = ("log", "linear", "symlog")
ROLES = ("measured", "second", "third", "fourth", "bound", "other-bound", "reference")
"""How a line is drawn: up to four measured things, up to two bounds, something to compare with."""

_LINE_KEYS = ("value", "label", "role", "x", "setting", "p", "method")


SPLIT_KEYS = ("setting", "total", "parts")
"""Keys of a panel that splits regret, in addition to kind, methods and title."""

_PART_KEYS = ("label", "plus", "minus")


PANEL_KEYS: Mapping[str, tuple[str, ...]] = {
    "trajectories": ("setting", "p", "log"),
    "sweep": ("setting", "log"),
    "bars": ("p", "ranks", "log"),
    "ranks": ("setting", "p"),
    "spectrum": ("setting", "p"),
    "growth": ("p",),
    "bound": ("setting",),
    "validation": ("setting", "p", "over"),
    "measured": MEASURED_KEYS,
    "differences": ("comparison", "setting", "p", "log", "relative"),
    "split": SPLIT_KEYS,
}
"""The kinds of panels, and their keys in addition to kind, methods and title."""

_SHARED = ("kind", "methods", "title")
_FIGURE_KEYS = ("label", "caption", "methods", "panels")
_MOST_DEFAULT_PANELS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSpec:
    """One line: a diagnostic of a measure over another one.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSpec:
    """A part of a regret: regrets of some methods less those of others, seed by seed."""

    label: str
    plus: tuple[str, ...]
    minus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSpec:
    """Into which parts the regret of a method is split; together they are that regret."""

    total: str
    parts: tuple[PartSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSpec:
    """What one panel shows.

    Attributes
    ----------
    kind : str
    methods : tuple of str
        In the order in which they are drawn.
    setting : str
        The first one of the study where the panel does not say.
    p : float, optional
        None where the panel does not say: the first one of the setting, or all.
    log : bool
        Whether regret is on a logarithmic axis.
    ranks : tuple of str
        Methods on whose bars the mean final rank is written.
    over : str
        The setting along the axis of a panel of validation seeds.
    title : str
        Empty for one made from the data.
    measured : MeasuredSpec, optional
        The lines of a panel of measured numbers.
    comparison : str
        The name of the comparison whose differences are drawn; its settings are all drawn where
        `setting` is empty.
    relative : bool
        Whether differences are shares of the other method's regret.
    split : SplitSpec, optional
        Into which parts regret is split.
    """

    kind: str
    methods: tuple[str, ...]
    setting: str
    p: float | None = None
    log: bool = False
    ranks: tuple[str, ...] = ()
    over: str = "rank"
    title: str = ""
    measured: MeasuredSpec | None = None
    comparison: str = ""
    relative: bool = False
    split: SplitSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSpec:
    """What one figure shows.

    Attributes
    ----------
    label : str
        That of the paper where it has this figure.
    caption : str
    panels : tuple of PanelSpec
    """

    label: str
    caption: str
    panels: tuple[PanelSpec, ...]

    @property
    def name(self) -> str:
        """Of its files, without ending."""
        return self.label.removeprefix("fig:")


def figure_specs(study: Study) -> tuple[FigureSpec, ...]:
    """Return the figures of a study, or some that suit it where it names none.

    Raises
    ------
    StudyError
        The message names the key, such as figures[0].panels[1].kind.
    """
    if not study.figures:
        return _default_figures(study)
    figures = tuple(
        _figure(plain, f"figures[{index}]", study) for index, plain in enumerate(study.figures)
    )
    names = [figure.name for figure in figures]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise StudyError(f"figures[{index}].label must differ from all before, got {name!r}")
    return figures


def _figure(plain: Any, where: str, study: Study) -> FigureSpec:
    keys = Keys(plain, where, _FIGURE_KEYS)
    label = keys.text("label")
    if not all(c.isalnum() or c in "-_." for c in label.removeprefix("fig:")):
        raise keys.error("label", "letters, digits, '-', '_' and '.': it names a file", label)
    methods = keys.texts("methods") or study.methods
    panels = tuple(
        _panel(panel, f"{where}.panels[{index}]", methods, study)
        for index, panel in enumerate(keys.tables("panels"))
    )
    return FigureSpec(label=label, caption=keys.text("caption", ""), panels=panels)


def _panel(plain: Any, where: str, methods: tuple[str, ...], study: Study) -> PanelSpec:
    everything = tuple(dict.fromkeys(key for keys in PANEL_KEYS.values() for key in keys))
    kind = Keys(plain, where, (*_SHARED, *everything)).one_of("kind", tuple(PANEL_KEYS))
    known = (*_SHARED, *PANEL_KEYS[kind])
    keys = Keys(plain, where, known)
    first = "" if kind == "differences" else next(iter(study.settings), "")
    return PanelSpec(
        kind=kind,
        methods=keys.texts("methods") or methods,
        setting=keys.text("setting", first),
        p=keys.prob("p"),
        log=keys.flag("log"),
        ranks=keys.texts("ranks") or (),
        over=keys.text("over", "rank"),
        title=keys.text("title", ""),
        measured=_measured(plain, where, known) if kind == "measured" else None,
        comparison=_comparison(keys, study) if kind == "differences" else "",
        relative=keys.flag("relative"),
        split=_split(plain, where, known) if kind == "split" else None,
    )


def _measured(plain: Mapping[str, Any], where: str, known: tuple[str, ...]) -> MeasuredSpec:
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


def _split(plain: Mapping[str, Any], where: str, known: tuple[str, ...]) -> SplitSpec:
    """Return what a panel says.

    Raises
    ------
    StudyError
        The message names the key; the parts do not sum up to the total.
    """
    keys = Keys(plain, where, known)
    total, parts = keys.text("total"), []
    balance = Counter({total: -1})
    for index, part in enumerate(keys.tables("parts")):
        inner = Keys(part, f"{where}.parts[{index}]", _PART_KEYS)
        plus, minus = inner.texts("plus") or (), inner.texts("minus") or ()
        parts.append(PartSpec(label=inner.text("label"), plus=plus, minus=minus))
        balance.update(plus)
        balance.subtract(minus)
    if any(balance.values()):
        left = {method: count for method, count in balance.items() if count}
        raise keys.error("parts", f"parts that sum up to {total!r}, with nothing left over", left)
    return SplitSpec(total=total, parts=tuple(parts))


def _comparison(keys: Keys, study: Study) -> str:
    names = tuple(str(plain.get("name")) for plain in study.comparisons)
    return keys.one_of("comparison", names)


def _default_figures(study: Study) -> tuple[FigureSpec, ...]:
    methods, figures = study.methods, []
    swept = [name for name, setting in study.settings.items() if len(setting.worlds()) > 1]
    if swept:
        sweeps = [
            PanelSpec(kind="sweep", methods=methods, setting=name)
            for name in swept[:_MOST_DEFAULT_PANELS]
        ]
        caption = f"Final regret against the {share_label(study)}"
        figures.append(FigureSpec(label="final_regret", caption=caption, panels=tuple(sweeps)))
    over_time = [
        PanelSpec(kind="trajectories", methods=methods, setting=point.setting, p=point.p)
        for point in points_of(study)[:_MOST_DEFAULT_PANELS]
    ]
    caption = "Regret over time"
    figures.append(FigureSpec(label="regret_over_time", caption=caption, panels=tuple(over_time)))
    return tuple(figures)
