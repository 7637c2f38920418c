"""Verdicts follow the numbers: each kind of claim flips with them, and each claim can fail."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.paper.claims import (
    BEYOND,
    DIFFERS,
    FAILS,
    OURS,
    VACUOUS,
    above_bound,
    bounded,
    eigengap,
    exceeds,
    exponent,
    final_rank,
    judged,
    lower,
    near,
    no_worse,
    rank_falls,
    rises,
    seeds_of,
    within,
    write_claims,
)
from halfseen.paper.studies import ORDER, newsgroups, study_named
from halfseen.paper.studies.hard_instance import lower_bounds
from halfseen.paper.studies.scaling import theorem_cost
from halfseen.report.numbers import compare, growth_of, slope_interval
from halfseen.report.report import markdown_text
from halfseen.simulation.results import Point, Results
from made_results import LEVELS, METHODS, WORLD, setting, small_study, wobble, write_results

SMALL = "too small to judge"


def noisy(levels=LEVELS, **changed):
    """Return regrets around a level per method, not the same for two methods of a seed."""
    levels = levels | changed
    return lambda key: levels[key.method] + wobble(key) * (1 if key.method == "tofu" else -1)


@pytest.fixture
def verdict(tmp_path):
    """Return the verdict on made-up results of a claim, a function of these."""

    def found(claim, regret=None, *, study=None, **more):
        results = write_results(tmp_path, study or small_study(), regret or noisy(), **more)
        (verdict,) = judged({OURS: {"so": claim(results)}})
        return verdict

    return found


def below(results, **where):
    return lower(results, "tofu", "zf-oful", **where)


class TestLower:
    @pytest.mark.parametrize(
        ("tofu", "outcome"), [(5.0, "holds"), (9.1, "undecided"), (13.0, "fails")]
    )
    def test_it_flips_with_the_numbers(self, verdict, tofu, outcome):
        found = verdict(below, noisy(tofu=tofu))
        assert (found.outcome, found.place) == (outcome, OURS)
        assert found.fails_if == "somewhere the mean difference is above 0"

    def test_equal_regrets_decide_nothing(self, verdict):
        assert verdict(below, lambda key: 1.0).outcome == "undecided"

    def test_of_several_methods_each_is_compared_with_each(self, verdict):
        claim = lambda results: lower(results, "tofu zf-oful", "zf-oful uniform")  # noqa: E731
        found = verdict(claim, noisy())
        assert found.outcome == "undecided"  # zero-filled OFUL against itself
        assert len(found.findings) == 2 * 2 * 2
        assert "TOFU, uniform, p = 0.2: 5 against 30" in found.numbers

    def test_one_bad_place_fails_and_is_named(self, verdict):
        def regret(key):
            return LEVELS[key.method] + wobble(key) + 10 * (key.p == 0.2 and key.method == "tofu")

        found = verdict(below, regret)
        assert found.outcome == "fails"
        assert "p = 0.2: 15 against 9" in found.numbers
        assert verdict(lambda results: below(results, p=[0.8]), regret).outcome == "holds"

    def test_pairs_are_seeds_not_means(self, verdict):
        # The seeds differ by far more than the methods do.
        found = verdict(below, lambda key: 100.0 * key.seed + LEVELS[key.method] + wobble(key) / 50)
        assert found.outcome == "holds"

    def test_three_seeds_are_judged_and_two_are_not(self, verdict):
        for n_seeds, outcome in ((1, SMALL), (2, SMALL), (3, "holds")):
            found = verdict(below, run=lambda key, n=n_seeds: key.seed < n)
            assert found.outcome == outcome
            assert f"over {n_seeds} seeds" in found.numbers  # shown all the same

    def test_cells_that_were_not_run_are_reported(self, verdict):
        assert verdict(below, run=lambda key: key.method != "tofu").outcome == "not run"
        found = verdict(below, run=lambda key: key.p == 0.8)
        assert found.outcome == "undecided"
        assert "p = 0.2: no common seeds (not run)" in found.numbers

    def test_a_part_of_a_study_is_judged_at_the_points_that_it_has(self, verdict):
        part = small_study().narrowed(observe_probs=[0.8])
        found = verdict(lambda results: below(results, p=[0.8, 0.2]), study=part)
        assert found.outcome == "holds"
        assert found.numbers.endswith("over 4 seeds; not in this run: p = 0.2")
        found = verdict(lambda results: below(results, p=[0.2]), study=part)
        assert (found.outcome, found.numbers) == ("not run", "none of it was run")
        assert verdict(below, study=small_study().narrowed(methods=["tofu"])).outcome == "not run"

    def test_settings_in_which_a_method_does_not_play_are_not_named(self, verdict):
        settings = {"a": setting(probs=[0.8]), "b": setting(methods={"uniform": {}}, probs=[0.2])}
        found = verdict(lambda r: below(r, p=[0.8]), study=small_study(settings))
        assert found.outcome == "holds"
        assert "not in this run" not in found.numbers


MEANS = {
    "lower": below,
    "within": lambda results: within(results, "tofu", "zf-oful", at_least=0.5),
    "rises": lambda results: rises(results, "tofu"),
    "rank": lambda results: final_rank(results, "tofu", at_most=1),
}


@pytest.mark.parametrize("claim", MEANS.values(), ids=MEANS)
def test_two_seeds_are_too_few_for_every_claim_about_means(verdict, claim):
    def regret(key):
        return LEVELS[key.method] * (1 + 0.01 * key.seed) / key.p**0.1

    assert verdict(claim, regret, run=lambda key: key.seed < 2).outcome == SMALL
    assert verdict(claim, regret).outcome != SMALL


def test_nothing_is_judged_at_smoke_scale(tmp_path):
    results = write_results(tmp_path, small_study(), noisy())
    found = judged({OURS: {name: claim(results) for name, claim in MEANS.items()}}, "smoke")
    assert {(v.outcome, v.numbers) for v in found} == {(SMALL, "run at smoke scale")}


def test_limits_of_a_ratio_flip_with_the_numbers(verdict):
    def claim(results):
        return within(results, "tofu", "zf-oful", at_least=0.9, at_most=1.1)

    # The interval of tofu less a limit times zero-filled OFUL is about ±0.9.
    levels = {9.0: "holds", 9.9: "undecided", 11.5: "fails", 8.1: "undecided", 6.5: "fails"}
    for level, outcome in levels.items():
        assert verdict(claim, noisy(tofu=level)).outcome == outcome
    assert verdict(claim, lambda key: 0.0).outcome == "undecided"
    assert verdict(claim, run=lambda key: key.method == "tofu").outcome == "not run"


@pytest.mark.parametrize(("step", "outcome"), [(3.0, "holds"), (0.1, "undecided"), (-3.0, "fails")])
def test_rises_flips_with_the_numbers(verdict, step, outcome):
    def regret(key):
        return 5.0 + (step if key.p == 0.2 else 0.0) + wobble(key) * (1 if key.p == 0.2 else -1)

    assert verdict(MEANS["rises"], regret).outcome == outcome


def test_a_gap_that_widens_is_told_from_one_that_does_not(verdict):
    # Both regrets rise; the gap is 4/p, or 4 at every p.
    widens = {"tofu": lambda p: 5 / p, "zf-oful": lambda p: 9 / p, "uniform": lambda p: 30}
    steady = widens | {"zf-oful": lambda p: 5 / p + 4}
    narrows = widens | {"zf-oful": lambda p: 5 / p + 4 * p}
    for pays, outcome in ((widens, "holds"), (steady, "undecided"), (narrows, "fails")):
        found = verdict(
            lambda results: rises(results, "zf-oful", minus="tofu"),
            lambda key, pays=pays: pays[key.method](key.p) + wobble(key),
        )
        assert found.outcome == outcome


def test_steps_may_be_between_means_over_several_probabilities(verdict):
    """The lead falls from p = 0.3 to 0.2, and is larger at both than at 0.8 and 0.6."""
    leads = {0.8: 1.0, 0.6: 2.0, 0.3: 9.0, 0.2: 7.0}
    study = small_study({"default": setting(probs=tuple(leads))})
    regret = lambda key: (leads[key.p] if key.method == "zf-oful" else 5.0) + wobble(key) / 9  # noqa: E731
    for groups, outcome in ((None, "fails"), ([[0.8, 0.6], [0.3, 0.2]], "holds")):
        claim = lambda r, groups=groups: rises(r, "zf-oful", minus="tofu", groups=groups)  # noqa: E731
        assert verdict(claim, regret, study=study).outcome == outcome


def test_ranks_flip_with_the_numbers(verdict):
    def outcome(rank, claim):
        return verdict(claim, rank=rank).outcome

    def near(results):
        return final_rank(results, "tofu", at_least=-0.5, at_most=0.5)  # the true rank is 2

    assert outcome(lambda key: 2.4, near) == "holds"
    assert outcome(lambda key: 2.6, near) == "fails"
    assert outcome(lambda key: 2.3 + wobble(key), near) == "undecided"
    assert outcome(lambda key: None, near) == "not run"
    for ranks, expected in (((1.0, 1.2), "holds"), ((1.0, 3.0), "undecided"), ((2.8, 3), "fails")):
        rank = lambda key, ranks=ranks: ranks[key.seed % 2]  # noqa: E731
        assert outcome(rank, lambda r: final_rank(r, "tofu", at_most=0)) == expected
    for step, expected in ((2.0, "holds"), (0.1, "undecided"), (-2.0, "fails")):
        # The rank is to fall as fewer entries are seen.
        rank = lambda key, step=step: 5 + (step + wobble(key)) * (key.p == 0.8)  # noqa: E731
        assert outcome(rank, lambda r: rank_falls(r, "tofu")) == expected


@pytest.mark.parametrize(
    ("eigenvalues", "outcome"),
    [
        ([1.5, 1.2, 0.1, 0.05], "holds"),
        ([1.5, 0.5, 0.1, 0.05], "fails"),
        ([1.5, 0.5], "not run"),
        ([], "not run"),
    ],
)
def test_eigengap_flips_with_the_numbers(verdict, eigenvalues, outcome):
    found = verdict(
        lambda r: eigengap(r, "tofu"), diagnostics=lambda key: {"eigenvalues": eigenvalues}
    )
    assert found.outcome == outcome


FOUR = {"tofu": 10.0, "zf-oful": 10.0, "pslb": 50.0, "uniform": 110.0}


def never_worse(results):
    """Compare tofu with the better of zf-oful and pslb on seeds 0 and 1, on the other seeds."""
    best = compare(results, "best", "", ["tofu"], ["zf-oful", "pslb"], choose_seeds=range(2))
    return no_worse(results, best, than="uniform", margin=0.02)


class TestComparisons:
    study = small_study({"default": setting(methods={key: {} for key in FOUR})}, seeds=range(10))

    @pytest.fixture
    def outcome(self, verdict):
        return lambda claim, regret, **more: verdict(claim, regret, study=self.study, **more)

    def noisy(self, tofu, scale=1.0):
        """Return regrets; the standard error of the paired difference is about 0.17 · scale."""

        def regret(key):
            level = FOUR[key.method] if key.method != "tofu" else tofu
            return level + scale * wobble(key) * (1 if key.method == "tofu" else -1)

        return regret

    def test_a_share_of_the_lead_is_allowed_or_what_may_be_chance(self, outcome):
        """The lead over uniform is 100."""
        for level, expected in ((8, "holds"), (11.9, "holds"), (12.1, "fails")):
            found = outcome(never_worse, self.noisy(level, scale=0.1))
            assert found.outcome == expected
            assert "at most +2 allowed" in found.numbers
        assert outcome(never_worse, self.noisy(12.1, scale=20.0)).outcome == "holds"

    def test_the_best_is_picked_on_other_seeds_than_it_is_compared_on(self, outcome):
        """On seeds 0 and 1 pslb is the better one, and on all others it is the worse one."""

        def regret(key):
            lucky = key.method == "pslb" and key.seed < 2
            return 1.0 if lucky else FOUR[key.method] + wobble(key) / 10

        found = outcome(never_worse, regret)
        assert found.outcome == "holds"
        assert "p = 0.8: 10 against 50 of PSLB, nothing hidden, difference −40" in found.numbers
        assert "over 8 seeds" in found.numbers

    def test_a_method_that_failed_on_a_seed_is_not_picked(self, outcome):
        def regret(key):
            failed = key.method == "zf-oful" and key.seed == 0
            return None if failed else self.noisy(8)(key)

        assert "against 50 of PSLB" in outcome(never_worse, regret).numbers

    def test_what_was_not_run_is_reported(self, outcome):
        def found(run):
            return outcome(never_worse, self.noisy(8), run=run).outcome

        assert found(None) == "holds"
        assert found(lambda key: key.method != "tofu") == "not run"
        assert found(lambda key: key.method != "uniform") == "not run"
        assert found(lambda key: key.seed >= 2) == "not run"  # nothing to pick by
        assert found(lambda key: key.seed < 2) == "not run"  # nothing to compare on
        assert found(lambda key: key.seed < 4) == SMALL
        assert found(lambda key: key.p == 0.8) == "undecided"


HORIZONS = small_study(
    {f"T={t}": setting(world=WORLD | {"horizon": t}, probs=[0.5]) for t in (40, 80, 160)}
)


def grows(power, spread=0.01):
    return lambda key: int(key.setting[2:]) ** power * (1 + spread * wobble(key))


@pytest.mark.parametrize(
    ("limit", "power", "outcome"),
    [
        ({"at_least": 0.57, "at_most": 0.77}, 0.6, "holds"),
        ({"at_least": 0.57, "at_most": 0.77}, 0.5, "fails"),
        ({"at_least": 0.57, "at_most": 0.77}, 0.8, "fails"),
        ({"at_most": 0.5}, 0.4, "holds"),
        ({"at_most": 0.5}, 0.6, "fails"),
        ({"at_least": 0.5}, 0.6, "holds"),
        ({"at_least": 0.5}, 0.4, "fails"),
    ],
)
def test_exponents_flip_with_the_numbers(verdict, limit, power, outcome):
    found = verdict(lambda r: exponent(r, "tofu", **limit), grows(power), study=HORIZONS)
    assert found.outcome == outcome
    assert f"exponent {power:.2f}" in found.numbers


def test_a_curve_whose_slope_changes_is_no_power_law(verdict):
    """Its overall slope is .5, from .2 to .8 in its two steps."""
    bent = {"T=40": 1.0, "T=80": 2**0.2, "T=160": 2.0}

    def outcome(**limits):
        regret = lambda key: bent[key.setting] * (1 + 0.01 * wobble(key))  # noqa: E731
        return verdict(lambda r: exponent(r, "tofu", **limits), regret, study=HORIZONS)

    assert outcome(at_least=0.1, at_most=0.9).outcome == "holds"
    assert outcome(at_least=0.4, at_most=0.6).outcome == "fails"
    assert outcome(at_most=0.7).outcome == "fails"
    assert "exponent 0.50" in outcome(at_most=0.7).numbers
    assert "step by step 0.20 [0.20, 0.20], 0.80 [0.80, 0.80]" in outcome(at_most=0.7).numbers


def test_the_interval_of_an_exponent_contains_worlds_if_there_are_several(tmp_path):
    """In one world the slope is .3, in the other .5, each with next to no noise."""
    names = [[f"{world}={t}" for t in (40, 80, 160)] for world in "TU"]
    study = small_study(
        {
            name: setting(world=WORLD | {"horizon": int(name[2:])}, probs=[0.5])
            for each in names
            for name in each
        }
    )
    power = {"T": 0.3, "U": 0.5}
    regret = lambda key: int(key.setting[2:]) ** power[key.setting[0]] * (1 + wobble(key) / 1e4)  # noqa: E731
    results = write_results(tmp_path, study, regret)
    both = growth_of(results, "tofu", worlds=names)
    assert both.exponent.mean == pytest.approx(0.4, abs=1e-3)
    assert both.exponent[1:3] == pytest.approx((0.3, 0.5), abs=1e-3)
    assert [step.mean for step in both.steps] == pytest.approx([0.4, 0.4], abs=1e-3)
    alone = growth_of(results, "tofu", worlds=names[1:])
    assert alone.exponent[:3] == pytest.approx((0.5, 0.5, 0.5), abs=1e-3)


def test_an_exponent_whose_interval_holds_the_value_is_undecided(verdict):
    def found(regret, run=None):
        claim = lambda results: exponent(results, "tofu", at_most=0.5)  # noqa: E731
        return verdict(claim, regret, study=HORIZONS, run=run)

    assert found(lambda key: int(key.setting[2:]) ** (0.5 + wobble(key))).outcome == "undecided"
    assert found(grows(0.4), lambda key: key.setting == "T=40").outcome == "not run"
    assert found(grows(0.4), lambda key: key.seed == 0).outcome == SMALL


def test_growth_is_that_of_the_mean_regret_over_any_number(tmp_path):
    results = write_results(tmp_path, HORIZONS, grows(0.6))
    first = growth_of(results, "tofu")
    assert first == growth_of(results, "tofu")
    assert first.numbers == (40, 80, 160)
    assert first.exponent.mean == pytest.approx(0.6)
    assert first.exponent.low <= first.exponent.mean <= first.exponent.high
    assert growth_of(results, "tofu", "n_arms") is None  # one number
    arms = {f"K={n}": setting(world=WORLD | {"n_arms": n}, probs=[0.5]) for n in (4, 16, 64)}
    regret = lambda key: (1 + 0.01 * key.seed) / int(key.setting[2:]) ** 0.5  # noqa: E731
    results = write_results(tmp_path, small_study(arms), regret)
    assert growth_of(results, "tofu", "n_arms").exponent.mean == pytest.approx(-0.5)
    assert growth_of(results, "tofu", "n_arms", settings=["K=4", "K=64"]).numbers == (4, 64)
    swept = small_study({"default": setting(probs=(0.8, 0.4, 0.2))})
    results = write_results(tmp_path, swept, lambda key: (1 + 0.01 * key.seed) / key.p**2)
    assert growth_of(results, "tofu", "p").exponent.mean == pytest.approx(-2)


def test_a_cost_is_compared_with_the_theorem_also_where_it_is_not_positive(tmp_path):
    """The measured cost grows like a power of the theorem's; noise makes some of it negative."""
    study = replace(study_named("scaling"), seeds=range(32))
    places = study.no_results(tmp_path)

    def verdicts(power):
        def regret(key):
            cost = theorem_cost(places, Point(key.setting, key.p)) / 1e7
            hidden = 0.0 if key.method.endswith("-seen") else cost**power + 0.5 * wobble(key)
            return 10.0 + hidden

        found = judged(study.claims(write_results(tmp_path / "made", study, regret)))
        return [verdict.outcome for verdict in found]

    # K, κ, p and m, without replay and with full history; no outcome contradicts an upper bound.
    assert verdicts(1.0) == ["holds"] * 8
    assert verdicts(2.0)[1:4:2] == ["differs"] * 2
    assert verdicts(0.3)[0] == "differs"  # falls too little as K grows


def test_the_interval_covers_the_slope_about_as_often_as_it_says():
    # 300 samples of 20 seeds; the percentile interval covers a little less than 95 %.
    random, horizons = np.random.default_rng(0), (100, 1000)
    covered = 0
    for _ in range(300):
        noise = 1 + 0.3 * random.standard_normal((20, 2))
        low, high = slope_interval(horizons, np.array([10.0, 10.0**1.5]) * noise)
        covered += low <= 0.5 <= high
    assert 0.88 <= covered / 300 <= 0.99


def test_resamples_without_a_slope_are_not_dropped(verdict):
    """Where the mean of a resample is not positive, the exponent may be anything."""
    steady = np.array([[1.0, 3.0], [1.1, 2.9], [0.9, 3.1], [1.0, 3.0]])
    assert np.isfinite(slope_interval((1, 10), steady)).all()
    assert slope_interval((1, 10), steady - [[1.05, 0.0]] * 4) == (-np.inf, np.inf)

    def regret(key):
        return 1.0 + (wobble(key) - 1.0) * (key.setting == "T=40")

    found = verdict(lambda r: exponent(r, "tofu", at_most=9), regret, study=HORIZONS)
    assert (found.outcome, "exponent – (no finite interval)" in found.numbers) == (
        "undecided",
        True,
    )


# Diagnostics

TOLD = {"n": [1.0, 10.0, 100.0], "error": [4.0, 2.0, 1.0], "bound": [8.0, 4.0, 2.0]}


@pytest.mark.parametrize(
    ("claim", "told", "outcome"),
    [
        (bounded, {}, "holds"),
        (bounded, {"error": [4.0, 5.0, 1.0]}, "fails"),
        (bounded, {"error": []}, "not run"),
        (exceeds, {"error": [1.0, 1.0, 3.0]}, "holds"),
        (exceeds, {}, "fails"),
    ],
)
def test_relations_of_diagnostics_flip_with_the_numbers(verdict, claim, told, outcome):
    found = verdict(
        lambda r: claim(r, "tofu", "error", "bound"), diagnostics=lambda key: TOLD | told
    )
    assert found.outcome == outcome


@pytest.mark.parametrize(
    ("ratio", "outcome"), [(1.0, "holds"), (1.3, "fails"), (1.1, "undecided"), (0.7, "fails")]
)
def test_a_measured_mean_is_compared_with_a_law(verdict, ratio, outcome):
    def told(key):
        return {"wait": [9.0, 20.0 * ratio * (1 + wobble(key) / 10)], "law": [1.0, 20.0]}

    claim = lambda r: near(r, "tofu", "wait", "law", at_least=0.9, at_most=1.1)  # noqa: E731
    assert verdict(claim, diagnostics=told).outcome == outcome
    nothing = verdict(claim, diagnostics=lambda key: {"wait": [1.0], "law": [0.0]})
    assert nothing.outcome == "not run"


@pytest.mark.parametrize(
    ("trivial", "error", "outcome"),
    [(1.0, 1.0, "vacuous"), (3.0, 1.0, "holds"), (3.0, 2.5, "fails"), (9.0, 1.0, "holds")],
)
def test_a_bound_that_is_not_below_the_trivial_one_is_not_judged(verdict, trivial, error, outcome):
    told = TOLD | {"error": [9.0 if trivial < 9 else 4.0, 2.0, error], "trivial": [trivial] * 3}
    found = verdict(
        lambda r: bounded(r, "tofu", "error", "bound", trivial="trivial"),
        diagnostics=lambda key: told,
    )
    assert found.outcome == outcome
    assert ("at 8 others the bound is vacuous" in found.numbers) == (trivial == 3.0)


def test_one_seed_that_breaks_a_bound_fails_it(verdict):
    def told(key):
        return TOLD | {"error": [4.0, 2.0, 2.5]} if key.seed == 3 else TOLD

    found = verdict(lambda r: bounded(r, "tofu", "error", "bound"), diagnostics=told)
    assert found.outcome == "fails"
    assert (
        "within the bound at 11 of 12 positions, which is 0.8 to 2 times the value" in found.numbers
    )


# Lower bounds

HARD = {"kind": "hard-instance", "n_arms": 4, "horizon": 400, "noise_scale": 2.0}


def hard_study(probs=(0.2, 0.1), **world):
    return small_study({"default": setting(world=HARD | world, probs=probs)})


@pytest.mark.parametrize("form", ["explicit", "optimized"])
def test_above_bound_flips_with_the_numbers(verdict, tmp_path, form):
    def claim(results):
        return above_bound(
            results, lambda point: lower_bounds(results, point).get(form), list(METHODS)
        )

    def outcome(paid, run=None):
        regret = lambda key: paid * (1 + 0.01 * wobble(key))  # noqa: E731
        return verdict(claim, regret, study=hard_study(), run=run).outcome

    results = hard_study().no_results(tmp_path)
    bounds = [lower_bounds(results, Point("default", p))[form] for p in (0.2, 0.1)]
    assert outcome(1.1 * max(bounds)) == "holds"
    assert outcome(0.9 * min(bounds)) == "fails"
    assert outcome(0.9 * min(bounds), lambda key: key.seed == 0) == SMALL
    assert outcome(1.1 * max(bounds), lambda key: key.method == "tofu") == "undecided"
    assert outcome(1.0, lambda key: False) == "not run"
    nowhere = verdict(lambda r: above_bound(r, lambda point: None, ["tofu"]))
    assert nowhere.numbers == "the bound applies nowhere (undecided)"


@pytest.mark.parametrize(
    ("noise_scale", "forms"),
    [
        (1.0, {"explicit"}),  # (S B/R)² alone is 1
        (2.0, {"explicit", "optimized"}),  # Kp² is .08, (S B/R)² is .25
        (4.0, {"explicit", "optimized", "context-limited"}),  # .0625
    ],
)
def test_a_form_of_the_bound_is_given_where_its_premise_holds(tmp_path, noise_scale, forms):
    study = hard_study([0.1], noise_scale=noise_scale, n_arms=8)
    assert set(lower_bounds(study.no_results(tmp_path), Point("default", 0.1))) == forms


# The page of all verdicts

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"
WORDS = "zero-filled methods when many entries are hidden (p ≤ 0.4)"


def made(folder, *, scale="paper", of_tofu=10.0):
    worse = {"zf-oful": 30.0, "zf-pslb": 40.0}
    part = replace(study_named("synthetic"), seeds=range(4))
    paid = lambda key: worse.get(key.method, of_tofu) / key.p * (1 + 0.01 * key.seed)  # noqa: E731
    write_results(folder / "synthetic", part, paid, scale=scale)


def line_of(text, words):
    (line,) = [line for line in text.splitlines() if words in line and line.startswith("|")]
    return line


def test_verdicts_are_those_of_the_results_on_disk(tmp_path):
    for of_tofu, outcome in ((10.0, "holds"), (50.0, "fails")):
        made(tmp_path, of_tofu=of_tofu)
        counts = write_claims(tmp_path, tmp_path / "claims.md")
        text = (tmp_path / "claims.md").read_text("utf-8")
        assert f"**{outcome}**" in line_of(text, WORDS)
        assert (WORDS in text.split("##")[0]) == (outcome == "fails")
        lead_grows = of_tofu < 30.0  # as 1/p, and we say that it narrows
        assert ("over ZF-OFUL narrows" in text.split("##")[0]) == lead_grows
        assert "p = 0.4: " in line_of(text, WORDS)
        assert counts["not run"] > 20  # of the paper's, in all other studies


def test_a_small_run_is_not_judged_and_a_missing_one_is_listed(tmp_path):
    made(tmp_path, scale="smoke")
    result = CliRunner().invoke(app, ["claims", str(tmp_path), "-o", str(tmp_path / "all.md")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "all.md").read_text("utf-8")
    assert f"**{SMALL}**" in line_of(text, WORDS)
    assert "**not run**" in line_of(text, "TOFU-FH wins or ties when")
    assert "not run" in result.output


def test_settings_with_other_seeds_are_named_as_a_group_if_they_are_one():
    def told(**seeds):
        rows = [{"setting": name, "seed": seed} for name in seeds for seed in range(seeds[name])]
        return seeds_of(Results(settings={}, per_seed=rows))

    assert told(a=3, b=3, c=3, **{"wait, K = 4": 9, "wait, K = 8": 9}) == ("0–2 (0–8 for wait)")
    assert told(a=3, b=3, c=3, more=9, most=9) == "0–2 (0–8 for more and most)"


def test_the_committed_page_has_every_claim_in_its_list(tmp_path):
    lists = PAGE.read_text("utf-8").split("\n## ")[1:4]
    told = [re.findall(r"^\| (.+?) \|.* \*\*[\w ]+\*\* \|", text, re.M) for text in lists]
    claims = [study_named(name).claims(study_named(name).no_results(tmp_path)) for name in ORDER]
    empty = study_named("newsgroups").no_results(tmp_path)
    claims.append(newsgroups.smaller_gains(empty, empty))
    kinds = [lambda place: place not in (OURS, BEYOND), OURS.__eq__, BEYOND.__eq__]
    for listed, kind in zip(told, kinds, strict=True):
        places = [found for each in claims for place, found in each.items() if kind(place)]
        assert listed == [markdown_text(text) for found in places for text in found]


@pytest.mark.parametrize(("gain", "outcome"), [(2.0, "holds"), (9.0, "fails"), (4.0, "undecided")])
def test_gains_of_two_studies_are_compared_though_their_seeds_differ(tmp_path, gain, outcome):
    """The gain of the other study is 4, and 0.3 more or less from seed to seed."""
    part = {"observe_probs": [0.3, 0.2], "methods": ["zf-oful", "tofu-fh"]}
    found = {}
    for name, n_seeds, level in (("newsgroups", 4, gain), ("mnist", 3, 4.0)):
        study = study_named(name).narrowed(seeds=range(n_seeds), **part)
        regret = lambda key, level=level: (  # noqa: E731
            level + wobble(key) if key.method == "zf-oful" else 0.0
        )
        found[name] = write_results(tmp_path / name, study, regret)
    (verdict,) = judged(newsgroups.smaller_gains(found["newsgroups"], found["mnist"]))
    assert verdict.outcome == outcome
    assert f"p = 0.3: {gain:g} against 4.03" in verdict.numbers
    (verdict,) = judged(newsgroups.smaller_gains(study.no_results(tmp_path), found["mnist"]))
    assert verdict.outcome == "not run"


class AnyResults(Results):
    """Results in which everything is drawn anew for each trial, but for a little noise."""

    trial = 0

    def _drawn(self, *place):
        random = np.random.default_rng([self.trial, *"".join(map(str, place)).encode()])
        return random.lognormal(0, 3, 6) * (1 + 1e-3 * random.standard_normal((14, 6)))

    def regrets(self, point, method):
        return dict(enumerate(self._drawn(point, method)[:, 0].tolist()))

    def final_ranks(self, point, method):
        return self.regrets(point, f"rank of {method}")

    def irreducible(self, point):
        return self.regrets(point, "irreducible")

    def diagnostic(self, point, method, name):
        rows = self._drawn(point, method, name).tolist()
        return {seed: dict(enumerate(row)) for seed, row in enumerate(rows)}


@pytest.mark.parametrize("name", ORDER)
def test_every_claim_can_fail(name, tmp_path):
    """Or its bound is vacuous, or only its order can differ, and the verdict says so."""
    study = study_named(name)
    results = AnyResults(settings=study.places(), folder=tmp_path)
    left = {text for found in study.claims(results).values() for text in found}
    for results.trial in range(200):
        verdicts = judged(study.claims(results))
        left -= {
            verdict.text for verdict in verdicts if verdict.outcome in (FAILS, VACUOUS, DIFFERS)
        }
        if not left:
            break
    assert not left
