"""The figures of a study with all that their panels leave out, and figures for one without any."""

from typing import Any

from halfseen.reports.data import points_of
from halfseen.reports.truth import share_label
from halfseen.studies.figures import (
    AnyPanel,
    DifferencesPanel,
    Figure,
    MeasuredPanel,
    RoundsPanel,
    SweepPanel,
)
from halfseen.studies.spec import Study

_MOST_DEFAULT_PANELS = 4


def figures_of(study: Study) -> tuple[Figure, ...]:
    """Return the figures of a study, or some that suit it where it names none.

    Panels have the methods of their figure, or all of the study, and the first setting.
    """
    figures = study.figures or _default_figures(study)
    return tuple(
        figure.model_copy(
            update={"panels": tuple(_filled(panel, figure, study) for panel in figure.panels)}
        )
        for figure in figures
    )


def _filled(panel: AnyPanel, figure: Figure, study: Study) -> AnyPanel:
    update: dict[str, Any] = {"methods": panel.methods or figure.methods or study.methods}
    first = next(iter(study.settings), "")
    if getattr(panel, "setting", "") is None and not isinstance(panel, DifferencesPanel):
        update["setting"] = first
    if isinstance(panel, MeasuredPanel):
        lines = panel.model_copy(update=update).filled_lines()
        update["lines"] = lines
    return panel.model_copy(update=update)


def _default_figures(study: Study) -> tuple[Figure, ...]:
    figures = []
    swept = [name for name, setting in study.settings.items() if len(setting.worlds()) > 1]
    if swept:
        sweeps = [SweepPanel(kind="sweep", setting=name) for name in swept[:_MOST_DEFAULT_PANELS]]
        caption = f"Final regret against the {share_label(study)}"
        figures.append(Figure(label="final_regret", caption=caption, panels=tuple(sweeps)))
    over_time = tuple(
        RoundsPanel(kind="rounds", setting=point.setting, p=point.p)
        for point in points_of(study)[:_MOST_DEFAULT_PANELS]
    )
    return (
        *figures,
        Figure(label="regret_over_time", caption="Regret over time", panels=over_time),
    )
