"""Panels and claims of measured numbers: what is drawn, and that verdicts follow the numbers."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from halfseen.errors import StudyError
from halfseen.reports.claims import verdicts_on
from halfseen.reports.data import Results
from halfseen.reports.figures import PANELS, figures_of, write_figures
from halfseen.reports.panels import Scene
from halfseen.reports.panels_measured import ROLE_LOOKS, draw_measured, measured_curves
from halfseen.simulation.cells import Result, run_cell
from halfseen.simulation.tables import Tables
from halfseen.studies.builtin import builtin_study
from halfseen.studies.figures import ROLES, MeasuredPanel
from halfseen.studies.reading import study_from

PANEL = {
    "kind": "measured",
    "title": "errors",
    "setting": "small",
    "method": "rep",
    "x": "n",
    "xlabel": "arms",
    "ylabel": "error",
    "lines": [
        {"value": "error", "label": "measured"},
        {"value": "bound", "label": "bound", "role": "bound"},
    ],
}


def study_with(panel=None, claims=()):
    measure = {"policy": "measure", "measure": "representation"}
    return study_from(
        {
            "name": "made-up",
            "seeds": "0:2",
            "world": {"kind": "low-rank", "latent": "uniform", "horizon": 5},
            "settings": {
                "small": {"methods": {"rep": measure}, "observe_prob": [0.8, 0.5]},
                "other": {"methods": {"rep": measure}, "observe_prob": [0.8]},
            },
            "figures": [{"label": "made", "panels": [PANEL if panel is None else panel]}],
            "claims": [{"text": "so it is", **claim} for claim in claims],
        }
    )


def results_of(study, told, folder):
    """Return results in which every seed s of every cell told `told(s)`."""
    finished = [
        (cell, Result(status="ok", seconds=0.0, diagnostics=told(cell.key.seed)))
        for cell in study.cells()
    ]
    Tables.of(finished).write(folder, {})
    return Results.load(folder)


def plain_told(seed):
    return {"n": [1.0, 10.0, 100.0], "error": [4.0 + seed, 2.0, 1.0], "bound": [8.0, 4.0, 2.0]}


# Panels


def test_measured_is_a_kind_of_panel_and_every_role_has_a_look():
    assert "measured" in PANELS
    assert tuple(ROLE_LOOKS) == ROLES
    looks = {(look.color, look.dashes) for look in ROLE_LOOKS.values()}
    assert len(looks) == len(ROLES)


def test_a_line_has_means_over_seeds_and_standard_errors(tmp_path):
    study = study_with()
    results = results_of(study, plain_told, tmp_path)
    panel = figures_of(study)[0].panels[0]
    error, bound = measured_curves(Scene(study, results), panel)
    assert error.x.tolist() == [1.0, 10.0, 100.0]
    assert error.mean.tolist() == [4.5, 2.0, 1.0]
    assert error.error.tolist() == [0.5, 0.0, 0.0]
    assert bound.mean.tolist() == [8.0, 4.0, 2.0]


def test_a_line_may_have_its_own_setting_method_probability_and_axis():
    lines = [{"value": "error", "setting": "other", "p": 0.8, "x": "m", "method": "rep"}, "bound"]
    panel = figures_of(study_with({**PANEL, "lines": lines}))[0].panels[0]
    own, shared = panel.lines
    assert (own.setting, own.p, own.x, own.method) == ("other", 0.8, "m", "rep")
    assert (shared.setting, shared.p, shared.x, shared.role) == ("small", None, "n", "measured")


def test_what_was_not_measured_is_left_out(tmp_path):
    study = study_with({**PANEL, "lines": ["error", "nothing"]})
    results = results_of(study, plain_told, tmp_path)
    found = measured_curves(Scene(study, results), figures_of(study)[0].panels[0])
    assert [curve.look.label for curve in found] == ["error"]
    nothing = study_with({**PANEL, "lines": ["nothing"]})
    (drawn,) = write_figures(nothing, results, tmp_path)
    assert drawn.png is None
    assert "nothing of it was run" in drawn.note


def test_a_panel_draws_every_line_with_its_label_on_the_wanted_scales(tmp_path):
    study = study_with({**PANEL, "xscale": "log", "yscale": "symlog"})
    results = results_of(study, plain_told, tmp_path)
    panel, axes = figures_of(study)[0].panels[0], Figure().subplots()
    scene = Scene(study, results)
    draw_measured(axes, scene, panel, measured_curves(scene, panel))
    assert axes.get_legend_handles_labels()[1] == ["measured", "bound"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "symlog")
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("arms", "error", "errors")
    assert axes.lines[0].get_ydata().tolist() == [4.5, 2.0, 1.0]
    assert len(axes.collections) == 1  # a band for what differs between seeds, none for the bound


def test_a_figure_of_measured_numbers_is_written_as_png_and_svg(tmp_path):
    study = study_with()
    (drawn,) = write_figures(study, results_of(study, plain_told, tmp_path))
    assert drawn.png.name == "made.png"
    assert drawn.png.with_suffix(".svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lines": []}, r"figures\[0\]\.panels\[0\]\.lines must have at least one entry"),
        ({"lines": [{"label": "a"}]}, r"panels\[0\]\.lines\[0\]\.value must be given"),
        ({"lines": [3]}, r"panels\[0\]\.lines\[0\] must be a table, got 3"),
        ({"lines": [{"value": "a", "rol": "b"}]}, r"lines\[0\]\.rol is not a key here"),
        ({"lines": [{"value": "a", "role": "b"}]}, r"lines\[0\]\.role must be one of"),
        ({"yscale": "cubic"}, r"panels\[0\]\.yscale must be one of.*got 'cubic'"),
        ({"xlabel": 3}, r"panels\[0\]\.xlabel must be a text, got 3"),
        ({"logg": True}, r"panels\[0\]\.logg is not a key here"),
    ],
)
def test_mistakes_in_a_panel_are_reported_with_their_place(change, message):
    with pytest.raises(StudyError, match=message):
        study_with({**PANEL, **change})


# Claims

HERE = {"setting": "small", "p": 0.8, "method": "rep"}
WITHIN = {"kind": "measured", "relation": "at most"}
ABOVE = {"kind": "measured", "relation": "at least"}
EXCEEDS = {"kind": "measured", "relation": "above", "at_end": True}
ZERO = {"kind": "measured", "relation": "equal to"}


def verdict(claim, told, folder):
    study = study_with(claims=[{**HERE, **claim}])
    (found,) = verdicts_on(study, results_of(study, told, folder))
    return found


def one_seed_of(told, **changes):
    """Return what `told` tells, but with changes in seed 1 alone."""
    return lambda seed: {**told(seed), **(changes if seed == 1 else {})}


def test_a_value_at_its_bound_is_within_it_and_one_beyond_fails(tmp_path):
    claim = {**WITHIN, "value": "error", "to": "bound"}
    found = verdict(claim, plain_told, tmp_path)
    assert found.outcome == "holds"
    assert (
        "at most bound at all 6 positions, which is 1.6 to 2 times the value, 2 times"
        in found.numbers
    )
    at_it = one_seed_of(plain_told, error=[8.0, 4.0, 2.0])
    assert verdict(claim, at_it, tmp_path).outcome == "holds"
    found = verdict(claim, one_seed_of(plain_told, error=[5.0, 4.01, 1.0]), tmp_path)
    assert found.outcome == "fails"
    assert "at most bound at 5 of 6 positions, throughout in 1 of 2 seeds" in found.numbers


def test_a_value_below_its_floor_anywhere_fails(tmp_path):
    claim = {**ABOVE, "value": "bound", "to": "error"}
    assert verdict(claim, plain_told, tmp_path).outcome == "holds"
    lower = one_seed_of(plain_told, bound=[8.0, 1.5, 2.0])
    found = verdict(claim, lower, tmp_path)
    assert found.outcome == "fails"
    assert "at least error at 5 of 6 positions, throughout in 1 of 2 seeds" in found.numbers


def test_exceeding_is_judged_at_the_last_position_of_every_seed(tmp_path):
    claim = {**EXCEEDS, "value": "bound", "to": "error"}
    first_below = one_seed_of(plain_told, bound=[0.0, 0.0, 1.1])
    assert verdict(claim, first_below, tmp_path).outcome == "holds"
    found = verdict(claim, one_seed_of(plain_told, bound=[8.0, 4.0, 1.0]), tmp_path)
    assert (found.outcome, "above it in 1 of 2 seeds" in found.numbers) == ("fails", True)


@pytest.mark.parametrize(("power", "outcome"), [(0.5, "holds"), (0.45, "holds"), (0.3, "fails")])
def test_a_power_law_falls_like_its_power(power, outcome, tmp_path):
    claim = {"kind": "exponent", "value": "e", "x": "n", "near": -0.5, "tolerance": 0.06}

    def told(seed):
        n = [10.0, 100.0, 1000.0]
        return {"n": n, "e": [(1 + seed) * x**-power for x in n]}

    found = verdict(claim, told, tmp_path)
    assert found.outcome == outcome
    assert f"slope −{power:g}" in found.numbers


def test_what_reaches_zero_has_no_slope(tmp_path):
    claim = {"kind": "exponent", "value": "e", "x": "n", "near": -0.5, "tolerance": 9}
    told = {"n": [1.0, 10.0], "e": [1.0, 0.0]}
    assert verdict(claim, lambda seed: told, tmp_path).outcome == "fails"


def test_signs_are_judged_in_every_seed(tmp_path):
    def told(seed):
        return {"e": [-1.0, -2.0, 0.5, -3.0], "z": [0.0, 1e-12, -1e-12, 0.0]}

    often = {"kind": "measured", "relation": "below", "value": "e", "share": 0.75}
    assert verdict(often, told, tmp_path).outcome == "holds"
    assert verdict({**often, "share": 0.8}, told, tmp_path).outcome == "fails"
    assert verdict(often, one_seed_of(told, e=[-1.0, 2.0, 0.5, -3.0]), tmp_path).outcome == "fails"
    assert verdict({**ZERO, "value": "z"}, told, tmp_path).outcome == "holds"
    assert verdict({**ZERO, "value": "e"}, told, tmp_path).outcome == "fails"
    never = {**ABOVE, "value": "z"}
    assert verdict(never, told, tmp_path).outcome == "holds"
    below = one_seed_of(told, z=[0.0, -1e-6, 0.0, 0.0])
    assert verdict(never, below, tmp_path).outcome == "fails"


@pytest.mark.parametrize(
    "claim", [{"value": "nothing"}, {"value": "error", "to": "nothing"}], ids=str
)
def test_what_was_not_measured_was_not_run(claim, tmp_path):
    assert verdict({**WITHIN, **claim}, plain_told, tmp_path).outcome == "not run"


def test_mistakes_in_a_claim_are_reported_with_their_place():
    claim = {**HERE, "kind": "measured", "value": "error", "relation": "under"}
    with pytest.raises(StudyError, match=r"claims\[0\]\.relation must be one of 'at most'"):
        study_with(claims=[claim])


# The study


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    study, folder = builtin_study("theory", "smoke"), tmp_path_factory.mktemp("theory")
    Tables.of([(cell, run_cell(cell)) for cell in study.cells()]).write(folder, {})
    return study, Results.load(folder)


def measured_panels(study):
    """Yield the panels of diagnostics over diagnostics, with their figures."""
    for figure in figures_of(study):
        yield from ((figure, panel) for panel in figure.panels if isinstance(panel, MeasuredPanel))


def test_every_name_in_the_figures_and_claims_of_the_theory_study_is_measured(smoke):
    study, results = smoke
    scene = Scene(study, results)
    for figure, panel in measured_panels(study):
        there = [curve.look.label for curve in measured_curves(scene, panel)]
        run = [line.label for line in panel.lines if line.setting in study.settings]
        assert there == run, (figure.label, panel.title)
    not_run = {found.text for found in verdicts_on(study, results) if found.outcome == "not run"}
    assert not_run == {claim.text for claim in study.claims if claim.setting == ("d=16384",)}


def test_the_deterministic_claims_of_the_theory_study_hold_at_any_scale(smoke):
    # Slopes and rates need the full size; what the lemmas say for certain does not.
    outcomes = {found.text: found.outcome for found in verdicts_on(*smoke)}
    for text in (
        "The potential of an epoch stays within its bound",
        "Squared widths sum to at most twice the potential",
        "The worst misspecification found stays within the contracted bound",
        "With a frozen subspace, no step has a negative eigenvalue",
        "With a frozen subspace the noise sum has no such part",
    ):
        assert outcomes[text] == "holds", text


def test_numbers_that_change_turn_the_verdicts_of_the_theory_study(smoke):
    study, results = smoke
    before = {found.text: found.outcome for found in verdicts_on(study, results)}
    frame = results.diagnostics
    for name, value in (("subspace_bound", 1e-9), ("frozen_retrospective", 0.1), ("regret", 1e9)):
        frame.loc[frame["name"] == name, "value"] = value
    after = {found.text: found.outcome for found in verdicts_on(study, results)}
    turned = {text for text, outcome in after.items() if outcome != before[text]}
    assert turned == {
        "The subspace stays within its bound",
        "With a frozen subspace the noise sum has no such part",
        "Regret stays within the bounds of the lemmas",
        "Regret stays within the theorem",
    }
    assert {after[text] for text in turned} == {"fails"}


def test_means_of_lines_are_finite(smoke):
    study, results = smoke
    for _, panel in measured_panels(study):
        for line in measured_curves(Scene(study, results), panel):
            assert np.isfinite(line.mean).all()
            assert math.isfinite(line.error.sum())
