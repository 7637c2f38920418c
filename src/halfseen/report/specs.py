"""What a study says about its figures, read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halfseen.errors import StudyError
from halfseen.report.data import points_of
from halfseen.report.keys import Keys
from halfseen.report.measured_specs import MEASURED_KEYS, MeasuredSpec, measured_spec
from halfseen.report.split_specs import SPLIT_KEYS, SplitSpec, split_spec
from halfseen.report.truth import share_label
from halfseen.studies.spec import Study

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
"""The kinds of panels, and what each may say beside kind, methods and title."""

_SHARED = ("kind", "methods", "title")
_FIGURE_KEYS = ("label", "caption", "methods", "panels")
_MOST_DEFAULT_PANELS = 4


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
        measured=measured_spec(plain, where, known) if kind == "measured" else None,
        comparison=_comparison(keys, study) if kind == "differences" else "",
        relative=keys.flag("relative"),
        split=split_spec(plain, where, known) if kind == "split" else None,
    )


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
