"""Figures draw what was run, leave out what was not, and repeat byte by byte."""

import itertools
import re
from pathlib import Path
from typing import get_args

import matplotlib.image
import pytest
from made_results import small_study, wobble, write_results

from halfseen.core.theory import expected_wait
from halfseen.errors import StudyError
from halfseen.reports.figures import PANELS, figure_of, figures_of, grid_of, write_figures
from halfseen.reports.panels import Scene
from halfseen.reports.table import FinalTable
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.figures import AnyPanel

LEVELS = {"tofu": 5.0, "zf-oful": 9.0, "uniform": 30.0}
HARD = {"kind": "hard-instance", "n_arms": 4, "horizon": 40, "noise_scale": 2.0}
TOLD = {"epoch_starts": [10, 20], "eigenvalues": [1.5, 1.2, 0.1, 0.05], "threshold": 0.2}
HORIZONS = {f"T={t}": {"world": {"horizon": t}} for t in (40, 80, 160)}


def regret(key):
    return LEVELS[key.method] / (key.p or 1.0) + wobble(key)


def figure_with(panels, **more):
    return {"figures": [{"label": "fig:it", "caption": "It", "panels": panels, **more}]}


def drawn(folder, panels, run=None, **changes):
    study = small_study(**figure_with(panels), **changes)
    results = write_results(folder, study, regret, diagnostics=lambda key: TOLD, run=run)
    (spec,) = figures_of(study)
    return figure_of(Scene(study, results), spec)


def line(axes, label):
    (found,) = [one for one in axes.get_lines() if one.get_label() == label]
    return found


KINDS = {
    "rounds": ({"p": 0.2}, {}),
    "sweep": ({"log": True}, {}),
    "bars": ({"p": 0.8, "ranks": ["tofu"]}, {}),
    "rounds rank": ({"value": "rank"}, {}),
    "spectrum": ({"methods": ["tofu"]}, {}),
    "sweep horizon": ({"over": "horizon"}, {"settings": HORIZONS, "observe_prob": 0.5}),
    "sweep bounds": ({"bounds": True}, {"world": HARD, "observe_prob": [0.5, 0.1]}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_panel_makes_files(tmp_path, kind):
    panel, changes = KINDS[kind]
    study = small_study(**figure_with([{"kind": kind.split()[0], **panel}]), **changes)
    results = write_results(tmp_path, study, regret, diagnostics=lambda key: TOLD)
    (figure,) = write_figures(study, results, tmp_path / "drawn")
    assert (figure.png.name, figure.note) == ("it.png", "")
    assert (tmp_path / "drawn" / "it.svg").stat().st_size > 1000
    pixels = matplotlib.image.imread(figure.png)
    assert pixels[..., :3].std() > 0.03
    assert min(pixels.shape[:2]) > 300


def test_files_of_a_figure_repeat_to_the_byte(tmp_path):
    panels = [{"kind": kind, **KINDS[kind][0]} for kind in ("rounds", "bars")]
    study = small_study(**figure_with(panels))
    results = write_results(tmp_path, study, regret, diagnostics=lambda key: TOLD)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        write_figures(study, results, folder)
    for name in ("it.svg", "it.png"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_every_kind_is_tested_and_drawn():
    drawn = {get_args(each.model_fields["kind"].annotation)[0] for each in get_args(AnyPanel)}
    assert drawn == set(PANELS)
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    keys = {key for each in get_args(AnyPanel) for key in each.model_fields}
    assert {key for key in keys if not re.search(rf"`{key}( = [^`]*)?`", page)} == set()
    assert {kind.split()[0] for kind in KINDS} <= drawn


def test_a_curve_shows_the_means_of_the_run(tmp_path):
    figure, _ = drawn(tmp_path, [{"kind": "rounds", "p": 0.2}, {"kind": "sweep"}])
    over_time, sweep = figure.axes
    assert line(over_time, "TOFU").get_ydata()[-1] == pytest.approx(25.0)
    assert line(over_time, "TOFU").get_xdata()[-1] == 40
    (bars,) = [box for box in sweep.containers if box.get_label() == "TOFU"]
    assert bars[0].get_ydata().tolist() == pytest.approx([25.0, 6.25])
    left, right = sweep.get_xlim()
    assert left > right


def test_burn_in_rounds_have_no_rank(tmp_path):
    figure, _ = drawn(tmp_path, [{"kind": "rounds", "value": "rank", "methods": ["tofu"]}])
    curve = line(figure.axes[0], "TOFU")
    assert curve.get_xdata().min() >= 10
    assert set(curve.get_ydata()) == {2.0}
    assert line(figure.axes[0], "true rank").get_ydata() == [2, 2]


def test_a_rank_without_epochs_begins_where_it_leaves_the_full_one(tmp_path):
    study = small_study(**figure_with([{"kind": "rounds", "value": "rank", "methods": ["tofu"]}]))
    results = write_results(tmp_path, study, regret)
    (spec,) = figures_of(study)
    figure, _ = figure_of(Scene(study, results), spec)
    assert set(line(figure.axes[0], "TOFU").get_ydata()) == {2.0}


def test_a_gap_is_marked_after_the_true_rank(tmp_path):
    figure, _ = drawn(tmp_path, [{"kind": "spectrum", "methods": ["tofu"]}])
    (axes,) = figure.axes
    assert line(axes, "true rank").get_xdata()[0] == 2.5
    assert line(axes, "threshold").get_ydata()[0] == pytest.approx(0.2)
    assert any("gap 1.10" in text.get_text() for text in axes.texts)


def test_bars_carry_ranks(tmp_path):
    figure, _ = drawn(tmp_path, [{"kind": "bars", "ranks": ["tofu"], "p": 0.8}])
    assert [text.get_text() for text in figure.axes[0].texts] == ["rank\n2.0"]


def test_growth_tells_slopes_with_intervals(tmp_path):
    figure, _ = drawn(
        tmp_path, [{"kind": "sweep", "over": "horizon"}], settings=HORIZONS, observe_prob=0.5
    )
    told = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert told[0].startswith("0.00 [")
    assert "TOFU" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert {text.get_text() for text in figure.axes[0].texts} == {"$T^{1/2}$", "$T^{2/3}$"}


def test_each_method_may_have_another_one_subtracted(tmp_path):
    panel = {"kind": "sweep", "over": "p", "powers": True, "slopes": [-2]}
    pairs = {"methods": ["zf-oful", "uniform"], "minus": ["tofu", "zf-oful"]}
    figure, _ = drawn(tmp_path, [panel | pairs])
    # (9 − 5)/p and (30 − 9)/p, with the same noise in each seed.
    for label, gap in (("zero-filled OFUL", 4.0), ("uniform", 21.0)):
        drawn_line = figure.axes[0].get_legend_handles_labels()
        curve = dict(zip(drawn_line[1], drawn_line[0], strict=True))[label][0]
        assert curve.get_ydata() == pytest.approx([gap / 0.2, gap / 0.8])
    assert [text.get_text() for text in figure.axes[0].texts] == ["$p^{-2}$"]


def test_as_many_methods_are_subtracted_as_there_are():
    panel = {"kind": "sweep", "over": "horizon", "methods": ["tofu"], "minus": ["tofu", "uniform"]}
    with pytest.raises(StudyError, match=r"minus must be one method, or one for each"):
        small_study(**figure_with([panel]))


def test_rows_are_filled_by_columns_and_a_last_panel_stands_in_the_middle(tmp_path):
    panels = [{"kind": "rounds", "p": 0.8}, {"kind": "rounds", "p": 0.2}, {"kind": "sweep"}]
    study = small_study(**figure_with(panels, columns=2))
    results = write_results(tmp_path, study, regret)
    figure, _ = figure_of(Scene(study, results), figures_of(study)[0])
    figure.canvas.draw()
    left, right, below = (axes.get_position() for axes in figure.axes)
    assert left.y0 == pytest.approx(right.y0)
    assert below.y1 < left.y0
    assert left.x0 < below.x0 < right.x0


def test_panels_say_where_their_scale_differs(tmp_path):
    panels = [{"kind": "rounds", "p": 0.8}, {"kind": "rounds", "p": 0.2}]
    figure, _ = drawn(tmp_path, panels)
    assert [axes.get_title() for axes in figure.axes] == ["p = 0.8", "p = 0.2 (axis × 4)"]
    alike, _ = drawn(tmp_path / "alike", [panels[0], panels[0]])
    assert [axes.get_title() for axes in alike.axes] == ["p = 0.8", "p = 0.8"]
    logarithmic, _ = drawn(tmp_path / "log", [panel | {"log": True} for panel in panels])
    assert [axes.get_title() for axes in logarithmic.axes] == ["p = 0.8", "p = 0.2"]


@pytest.mark.parametrize(
    ("probs", "groups"),
    [
        ({"a": [0.8]}, [("", ["a, p = 0.8"])]),
        ({"a": [0.8, 0.4]}, [("", ["p = 0.8", "p = 0.4"])]),
        (
            {"a": [0.8], "b": [0.8, 0.4], "c": [0.4]},
            [("", ["a, p = 0.8", "c, p = 0.4"]), ("b", ["p = 0.8", "p = 0.4"])],
        ),
        (
            {"a": [0.8, 0.4], "b": [0.4]},
            [("a", ["p = 0.8", "p = 0.4"]), ("b", ["p = 0.4"])],
        ),
    ],
)
def test_a_table_holds_all_settings_with_one_point(tmp_path, probs, groups):
    study = small_study(settings={name: {"observe_prob": each} for name, each in probs.items()})
    results = write_results(tmp_path, study, regret)
    table = FinalTable.of(results.summary, study)
    found = table.point_groups()
    assert [(group.caption, group.heads) for group in found] == groups
    assert sorted(point for group in found for point in group.points) == sorted(table.points)


def test_what_the_construction_implies_is_drawn_beside_what_was_measured(tmp_path):
    worlds = {f"K = {n}": {"world": {"n_arms": n}} for n in (4, 8)}
    panel = {"kind": "sweep", "over": "n_arms", "expected": "wait"}
    changes = {"world": HARD, "observe_prob": [0.1], "settings": worlds}
    figure, _ = drawn(tmp_path, [panel], **changes)
    implied = line(figure.axes[0], "implied by the construction")
    waits = [expected_wait(n_arms=n, observe_prob=0.1, horizon=HARD["horizon"]) for n in (4, 8)]
    assert implied.get_xdata().tolist() == [4, 8]
    assert implied.get_ydata().tolist() == pytest.approx(waits)


@pytest.mark.parametrize("methods", [["tofu", "ra-tofu"], ["ra-tofu", "tofu"]])
def test_a_solid_line_under_another_one_is_wider(tmp_path, methods):
    study = small_study(methods=methods, **figure_with([{"kind": "rounds", "p": 0.8}]))
    for apart, widths in ((0.0, (True, False)), (5.0, (False, False))):
        level = {"tofu": 5.0, "ra-tofu": 5.0 + apart}
        results = write_results(tmp_path / str(apart), study, lambda key: level[key.method])  # noqa: B023
        figure, _ = figure_of(Scene(study, results), figures_of(study)[0])
        lines = [line(figure.axes[0], label) for label in ("TOFU", "RA-TOFU")]
        assert tuple(each.get_linewidth() > 3 for each in lines) == widths
        assert (lines[0].get_zorder() < lines[1].get_zorder()) == widths[0]


def test_points_without_an_optimized_bound_are_marked(tmp_path):
    changes = {"world": HARD, "observe_prob": [0.5, 0.1]}
    figure, _ = drawn(tmp_path, [{"kind": "sweep", "bounds": True}], **changes)
    marked = line(figure.axes[0], "Kp² + (S B/R)² above 1/2: no optimized bound")
    assert marked.get_xdata().tolist() == [0.5]  # Kp² alone is 1


def test_a_bound_is_below_the_regrets(tmp_path):
    changes = {"world": HARD, "observe_prob": [0.5, 0.1]}
    figure, _ = drawn(tmp_path, [{"kind": "sweep", "bounds": True}], **changes)
    explicit = line(figure.axes[0], "lower bound, explicit")
    optimized = line(figure.axes[0], "lower bound, optimized")
    assert len(explicit.get_xdata()) == 2
    assert optimized.get_xdata().tolist() == [0.1]
    assert max(explicit.get_ydata()) < 5


def test_the_legend_names_everything_once(tmp_path):
    panels = [{"kind": "rounds", "p": 0.2}, {"kind": "sweep"}, {"kind": "rounds", "value": "rank"}]
    figure, _ = drawn(tmp_path, panels)
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["TOFU", "zero-filled OFUL", "uniform", "true rank"]


def test_the_legend_and_the_titles_do_not_overlap_the_axes(tmp_path):
    panels = [{"kind": "rounds", "p": p} for p in (0.8, 0.2)] + [{"kind": "sweep"}] * 2
    figure, _ = drawn(tmp_path, panels)
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes] + [figure.legends[0].get_window_extent()]
    for one, other in itertools.combinations(boxes, 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(wide, high) < 2


def test_a_partial_run_draws_what_there_is(tmp_path):
    panels = [{"kind": "rounds", "p": 0.8}, {"kind": "rounds", "p": 0.2}]
    figure, note = drawn(tmp_path, panels, run=lambda key: key.p == 0.8 and key.method == "zf-oful")
    assert len(figure.axes) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["zero-filled OFUL"]
    assert note == "1 of 2 panels were not run"


def test_a_figure_of_nothing_is_left_out_and_its_old_files_go(tmp_path):
    study = small_study(**figure_with([{"kind": "sweep", "methods": ["tofu"]}]))
    write_figures(study, write_results(tmp_path, study, regret))
    assert (tmp_path / "it.png").exists()
    results = write_results(tmp_path, study, regret, run=lambda key: key.method != "tofu")
    (figure,) = write_figures(study, results)
    assert (figure.png, figure.note) == (None, "nothing of it was run")
    assert not list(tmp_path.glob("it.*"))


def test_failed_cells_do_not_stop_a_figure(tmp_path):
    study = small_study(**figure_with([{"kind": "bars"}, {"kind": "sweep"}]))
    results = write_results(
        tmp_path, study, lambda key: None if key.method == "tofu" and key.seed else regret(key)
    )
    (figure,) = write_figures(study, results)
    assert figure.png.exists()


def test_a_world_without_probability_is_drawn(tmp_path):
    plain = {"kind": "rounds"}
    figure, _ = drawn(tmp_path, [plain, {"kind": "bars"}], observe_prob=[])
    assert len(figure.axes) == 2


def test_a_study_without_figures_gets_some():
    labels = [spec.label for spec in figures_of(small_study())]
    assert labels == ["final_regret", "regret_over_time"]
    (only,) = figures_of(small_study(observe_prob=0.5))
    assert [(panel.kind, panel.p) for panel in only.panels] == [("rounds", 0.5)]
    many = figures_of(small_study(observe_prob=[0.9, 0.8, 0.7, 0.6, 0.5]))
    assert len(many[1].panels) == 4


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("scale", ["paper", "smoke"])
def test_the_figures_of_the_package_can_be_read(name, scale):
    study = builtin_study(name, scale)
    assert len(figures_of(study)) >= 1


PANEL = r"figures\[0\]\.panels\[0\]"


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ({"panels": [{"kind": "pie"}]}, PANEL + r"\.kind must be one of .*got 'pie'"),
        ({"panels": [{"kind": "sweep", "p": 0.5}]}, PANEL + r"\.p must be left out"),
        ({"panels": [{"kind": "sweep", "colour": 1}]}, PANEL + r"\.colour is not a key here"),
        ({"panels": [{"kind": "sweep", "log": 1}]}, PANEL + r"\.log must be true or false, got 1"),
        (
            {"panels": [{"kind": "bars", "p": "x"}]},
            PANEL + r"\.p must be a probability in \(0, 1\], got 'x'",
        ),
        ({"panels": [{"kind": "bars", "p": [0.5]}]}, PANEL + r"\.p must be a probability in"),
        ({"panels": [{"kind": "sweep", "setting": 3}]}, PANEL + r"\.setting must be a text, got 3"),
        ({"panels": [{"kind": "sweep", "methods": []}]}, PANEL + r"\.methods must be a text or"),
        ({"panels": [3]}, PANEL + r" must be a table, got 3"),
        ({"panels": []}, r"figures\[0\]\.panels must have at least one entry"),
        ({}, r"figures\[0\]\.panels must be given"),
        ({"label": "../x", "panels": [{"kind": "sweep"}]}, r"figures\[0\]\.label must be letters"),
        ({"width": 3}, r"figures\[0\]\.width is not a key here"),
    ],
)
def test_a_bad_figure_is_reported_with_its_key(figure, message):
    with pytest.raises(StudyError, match=message):
        small_study(figures=[{"label": "fig:it", **figure}])


def test_two_figures_cannot_share_a_file():
    panels = [{"kind": "sweep"}]
    both = [{"label": "fig:it", "panels": panels}, {"label": "it", "panels": panels}]
    with pytest.raises(StudyError, match=r"figures\[1\]\.label must differ .*got 'it'"):
        small_study(figures=both)


def test_panels_fill_rows():
    assert grid_of(5) == (2, 3)
