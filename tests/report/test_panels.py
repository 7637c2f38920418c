"""Figures draw what was run, leave out what was not, and repeat byte by byte."""

import itertools
from functools import partial

import matplotlib.image
import pytest

from halfseen.paper.studies import hard_instance
from halfseen.report import figures
from halfseen.report.figures import (
    Figure,
    Line,
    by_setting,
    default_figures,
    diagnostics,
    differences,
    excess,
    growth,
    rank_over_rounds,
    regret_of_candidates,
    regret_over_p,
    regret_over_rounds,
    save_figure,
)
from halfseen.report.numbers import FinalTable, compare
from halfseen.report.report import Report
from halfseen.simulation.results import csv_bytes
from halfseen.simulation.tune import CALIBRATION
from halfseen.theory import expected_wait
from made_results import LEVELS, METHODS, WORLD, regret, setting, small_study, wobble, write_results

ALL = list(METHODS)
HARD = {"kind": "hard-instance", "n_arms": 4, "horizon": 40, "noise_scale": 2.0}
TOLD = {
    "epoch_starts": [10, 20],
    "eigenvalues": [1.5, 1.2, 0.1, 0.05],
    "threshold": 0.2,
    "n": [1.0, 10.0, 100.0],
}
HORIZONS = small_study(
    {f"T={t}": setting(world=WORLD | {"horizon": t}, probs=[0.5]) for t in (40, 80, 160)}
)
HARDER = small_study({"default": setting(world=HARD, probs=(0.5, 0.1))})


@pytest.fixture
def results(tmp_path):
    """Return made-up results of a study."""

    def made(study=None, **more):
        told = {"regret": regret, "diagnostics": told_by, **more}
        return write_results(tmp_path, study or small_study(), **told)

    return made


def told_by(key):
    return TOLD | {"error": [4.0 + key.seed, 2.0, 1.0], "bound": [8.0, 4.0, 2.0]}


def drawn(*panels):
    return figures.drawn(Figure("fig:it", "It", panels))


def line(axes, label):
    (found,) = [one for one in axes.get_lines() if one.get_label() == label]
    return found


PANELS = {
    "regret": lambda r: regret_over_rounds(r, ALL, p=0.2),
    "rank": lambda r: rank_over_rounds(r, ["tofu"]),
    "p": lambda r: regret_over_p(r, ALL, log=True),
    "powers": lambda r: growth(r, ALL, "p"),
    "by setting": lambda r: by_setting(r, ALL, p=0.8, ranks=["tofu"]),
    "differences": lambda r: differences(compare(r, "a", "b", ["tofu"], ["zf-oful"])),
    "diagnostics": lambda r: diagnostics(
        r, "tofu", "n", [Line("error", "it")], xlabel="x", ylabel="y", title="z"
    ),
}


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_every_kind_of_panel_makes_files_that_repeat_to_the_byte(results, tmp_path, panel):
    found = results()
    for folder in ("first", "second"):
        png = save_figure(drawn(panel(found)), tmp_path / folder, "it")
    pixels = matplotlib.image.imread(png)
    assert pixels[..., :3].std() > 0.03
    assert min(pixels.shape[:2]) > 200
    for name in ("it.svg", "it.png", "it.pdf"):
        first, second = (tmp_path / folder / name for folder in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_a_panel_of_nothing_is_left_out(tmp_path, panel):
    assert panel(small_study().no_results(tmp_path)) is None
    assert drawn(panel(small_study().no_results(tmp_path))) is None


def test_a_curve_shows_the_means_of_the_run(results):
    found = results()
    over_time, sweep = drawn(regret_over_rounds(found, ALL, p=0.2), regret_over_p(found, ALL)).axes
    assert line(over_time, "TOFU").get_ydata()[-1] == pytest.approx(25.0)
    assert line(over_time, "TOFU").get_xdata()[-1] == 40
    (points,) = [box for box in sweep.containers if box.get_label() == "TOFU"]
    assert points[0].get_ydata().tolist() == pytest.approx([25.0, 6.25])
    left, right = sweep.get_xlim()
    assert left > right


@pytest.mark.parametrize("told", [told_by, lambda key: {}], ids=["epochs", "ranks alone"])
def test_burn_in_rounds_have_no_rank(results, told):
    axes = drawn(rank_over_rounds(results(diagnostics=told), ["tofu"])).axes[0]
    curve = line(axes, "TOFU")
    assert curve.get_xdata().min() >= 10
    assert set(curve.get_ydata()) == {2.0}
    assert line(axes, "true rank").get_ydata() == [2, 2]


def test_ranks_stand_above_regrets(results):
    axes = drawn(PANELS["by setting"](results())).axes[0]
    assert [text.get_text() for text in axes.texts] == ["rank\n2.0"]


def test_diagnostics_have_means_over_seeds_and_bands(results):
    lines = [Line("error", "measured"), Line("bound", "bound", "bound"), Line("nothing", "none")]
    axes = drawn(
        diagnostics(results(), "tofu", "n", lines, xlabel="arms", ylabel="error", title="t")
    ).axes[0]
    assert axes.get_legend_handles_labels()[1] == ["measured", "bound"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("arms", "error", "t")
    assert axes.lines[0].get_xdata().tolist() == [1.0, 10.0, 100.0]
    assert axes.lines[0].get_ydata().tolist() == [5.5, 2.0, 1.0]
    assert len(axes.collections) == 1  # a band for what differs between seeds, none for the bound


def test_growth_tells_slopes_with_intervals(results):
    panel = growth(results(HORIZONS), ALL, slopes=[1 / 2, 2 / 3])
    figure = drawn(panel)
    told = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert told[0].startswith("0.00 [")
    assert "TOFU" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert {text.get_text() for text in figure.axes[0].texts} == {"$T^{1/2}$", "$T^{2/3}$"}


def test_an_excess_may_be_below_zero_and_a_cost_is_scaled_to_the_first_method(results):
    methods = {"zf-oful": "tofu", "tofu": "zf-oful"}
    how = {"cost": lambda point: 1 / point.p**2, "label": "theory"}
    axes = drawn(excess(results(), methods, "p", **how)).axes[0]
    handles, labels = axes.get_legend_handles_labels()
    curves = dict(zip(labels, handles, strict=True))
    # (9 − 5)/p, with the same noise in each seed.
    assert curves["ZF-OFUL"][0].get_ydata() == pytest.approx([20.0, 5.0])
    assert curves["TOFU"][0].get_ydata() == pytest.approx([-20.0, -5.0])
    cost = curves["theory"].get_ydata()
    assert (cost.sum(), cost[0] / cost[1]) == (pytest.approx(25.0), pytest.approx(16.0))


def test_candidates_are_drawn_from_the_validation_seeds(results, tmp_path):
    found = results()
    rows = [
        {"setting": "default", "p": 0.8, "method": "tofu", "candidate": f'{{"rank": {rank}}}'}
        | {"study": "small", "seed": seed, "final_regret": 10.0 * rank + seed, "selected": 0}
        for rank in (1, 4)
        for seed in (0, 2)
    ]
    (tmp_path / "calibration.csv").write_bytes(csv_bytes(CALIBRATION, rows))
    axes = drawn(regret_of_candidates(found, ["tofu"], "rank")).axes[0]
    curve = axes.containers[0][0]
    assert curve.get_xdata().tolist() == [1.0, 4.0]
    assert curve.get_ydata().tolist() == [11.0, 41.0]
    assert regret_of_candidates(found, ["tofu"], "rank", p=0.2) is None


@pytest.mark.parametrize(
    ("n_panels", "rows"), [(1, [1]), (2, [2]), (3, [3]), (4, [2, 2]), (5, [3, 2]), (7, [3, 3, 1])]
)
def test_rows_fill_the_width(results, n_panels, rows):
    figure = drawn(*[regret_over_p(results(), ALL)] * n_panels)
    figure.draw_without_rendering()
    left, right = {}, {}
    for axes in figure.axes:
        place = axes.get_position()
        row = round(place.y0, 2)
        left.setdefault(row, []).append(place.x0)
        right[row] = max(place.x1, right.get(row, 0.0))
    assert [len(each) for each in left.values()] == rows
    assert all(end > 0.9 for end in right.values())


def test_axes_of_one_name_share_their_range_or_say_it(results):
    panel = partial(regret_over_rounds, results(), ALL)
    far = drawn(panel(p=0.8), panel(p=0.2))
    assert [axes.get_title() for axes in far.axes] == [
        "p\xa0=\xa00.8 (axis 0–40)",
        "p\xa0=\xa00.2 (axis 0–158)",
    ]
    near = drawn(panel(p=0.8), panel(p=0.8))
    assert [axes.get_title() for axes in near.axes] == ["p\xa0=\xa00.8"] * 2
    assert near.axes[0].get_ylim() == near.axes[1].get_ylim()


def test_regrets_that_hardly_differ_are_told_apart(results):
    close = lambda key: 100.0 + LEVELS[key.method] / 10 + wobble(key)  # noqa: E731
    found = results(regret=close)
    (sweep,) = drawn(regret_over_p(found, ALL)).axes
    assert sweep.get_ylim()[0] > 90


def test_no_difference_is_shown_in_percent_of_nothing(results):
    found = results(regret=lambda key: 5.0 * (key.method == "tofu"))
    assert differences(compare(found, "a", "b", ["tofu"], ["zf-oful"])) is None


def test_a_long_title_is_broken(results):
    long = "a title that is longer than its panel and is therefore broken into lines"
    panels = [growth(results(), ALL, "p", title=long)] * 3
    figure = drawn(*panels)
    figure.draw_without_rendering()
    for axes in figure.axes:
        box = axes.title.get_window_extent()
        assert box.x0 > 0
        assert box.x1 < figure.bbox.width


@pytest.mark.parametrize(
    ("probs", "groups"),
    [
        ({"a": [0.8]}, [("", ["a, p = 0.8"])]),
        ({"a": [0.8, 0.4]}, [("", ["p = 0.8", "p = 0.4"])]),
        (
            {"a": [0.8], "b": [0.8, 0.4], "c": [0.4]},
            [("", ["a, p = 0.8", "c, p = 0.4"]), ("b", ["p = 0.8", "p = 0.4"])],
        ),
        ({"a": [0.8, 0.4], "b": [0.4]}, [("a", ["p = 0.8", "p = 0.4"]), ("b", ["p = 0.4"])]),
    ],
)
def test_a_table_holds_all_settings_with_one_point(results, probs, groups):
    study = small_study({name: setting(probs=each) for name, each in probs.items()})
    table = FinalTable.of(results(study))
    found = table.point_groups()
    assert [(group.caption, group.heads) for group in found] == groups
    assert sorted(point for group in found for point in group.points) == sorted(table.points)


def test_bounds_of_the_hard_family_are_below_its_regrets_and_show_where_they_apply(results):
    found = results(HARDER)
    after = hard_instance._draw_bounds(found, "default")
    axes = drawn(regret_over_p(found, ALL, setting="default", log=True, after=after)).axes[0]
    explicit = line(axes, "lower bound, explicit")
    assert len(explicit.get_xdata()) == 2
    assert line(axes, "lower bound, optimized").get_xdata().tolist() == [0.1]  # Kp² is 1 at .5
    assert max(explicit.get_ydata()) < 5
    (region,) = axes.patches
    assert region.get_label() == hard_instance._INSIDE
    assert region.get_x() + region.get_width() == pytest.approx(0.25)  # 4p² + 1/4 = 1/2


def test_what_the_construction_implies_is_drawn_beside_what_was_measured(results):
    worlds = {f"K={n}": setting(world=HARD | {"n_arms": n}, probs=[0.1]) for n in (4, 8)}
    found = results(small_study(worlds))
    expected = partial(hard_instance._expected_wait, found)
    implied = line(drawn(growth(found, ALL, "n_arms", expected=expected)).axes[0], figures.EXPECTED)
    waits = [expected_wait(n_arms=n, observe_prob=0.1, horizon=40) for n in (4, 8)]
    assert implied.get_xdata().tolist() == [4, 8]
    assert implied.get_ydata().tolist() == pytest.approx(waits)


def test_the_legend_names_everything_once_and_overlaps_nothing(results):
    found = results()
    panels = [regret_over_rounds(found, ALL, p=p) for p in (0.8, 0.2)]
    figure = drawn(*panels, regret_over_p(found, ALL), rank_over_rounds(found, ["tofu"]))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["TOFU", "ZF-OFUL", "uniform", "true rank"]
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes] + [figure.legends[0].get_window_extent()]
    for one, other in itertools.combinations(boxes, 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(wide, high) < 2


def test_a_partial_run_draws_what_there_is_and_old_files_go(results, tmp_path):
    def report(run):
        found = results(run=run)
        panels = [regret_over_rounds(found, ["zf-oful"], p=p) for p in (0.8, 0.2)]
        made = Report(results=found, specs=[Figure("fig:it", "It", panels)])
        made.write()
        return [figure.name for figure in made.figures]

    assert report(lambda key: key.p == 0.8) == ["it"]
    assert report(lambda key: key.method != "zf-oful") == []
    assert not list(tmp_path.glob("it.*"))


def test_failed_cells_do_not_stop_a_figure(results):
    broken = lambda key: None if key.method == "tofu" and key.seed else regret(key)  # noqa: E731
    found = results(regret=broken)
    assert len(drawn(by_setting(found, ALL), regret_over_p(found, ALL)).axes) == 2


def test_any_run_gets_figures(results):
    labels = [each.label for each in default_figures(results())]
    assert labels == ["final_regret", "regret_over_time"]
    (only,) = default_figures(results(small_study({"default": setting(probs=[0.5])})))
    assert len(only.panels) == 1
    many = results(small_study({"default": setting(probs=(0.9, 0.8, 0.7, 0.6, 0.5))}))
    assert len(default_figures(many)[1].panels) == 4
    assert "the first 4 of " in default_figures(many)[1].caption
    assert "first" not in only.caption
    own = results(small_study({"default": setting(probs=())}), regret=lambda key: 3.0)
    assert len(drawn(*default_figures(own)[0].panels).axes) == 1
