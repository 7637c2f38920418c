"""Verdicts follow the numbers: each flips when they change."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from made_results import small_study, wobble, write_results

from halfseen.errors import StudyError
from halfseen.reports.claims import JUDGES, as_frame, verdicts_on
from halfseen.reports.data import Point
from halfseen.reports.figures import PANELS
from halfseen.reports.growth import Quantity, growth_of, slope_interval
from halfseen.reports.truth import lower_bounds
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.claims import AnyClaim

SMALL = "too small to judge"
LOWER = {"kind": "lower", "method": "tofu", "than": "zf-oful"}
SWEPT = {"tofu": 5.0, "zf-oful": 9.0, "uniform": 30.0}


def verdict(folder, claim, regret, **more):
    changes = {
        key: more.pop(key)
        for key in ("methods", "world", "settings", "observe_prob")
        if key in more
    }
    study = small_study(claims=[{"text": "so it is said", **claim}], **changes)
    results = write_results(folder, study, regret, **more)
    (found,) = verdicts_on(study, results)
    return found


def noisy(levels):
    """Return regrets around a level per method, not the same for two methods of a seed."""
    return lambda key: levels[key.method] + wobble(key) * (1 if key.method == "tofu" else -1)


class TestLower:
    def outcome(self, folder, tofu, **claim):
        return verdict(folder, {**LOWER, **claim}, noisy({**SWEPT, "tofu": tofu})).outcome

    def test_it_flips_with_the_numbers(self, tmp_path):
        assert self.outcome(tmp_path, 5.0) == "holds"
        assert self.outcome(tmp_path, 9.1) == "undecided"
        assert self.outcome(tmp_path, 13.0) == "fails"

    def test_no_higher_lets_a_tie_pass(self, tmp_path):
        assert self.outcome(tmp_path, 9.1, or_equal=True) == "holds"
        assert self.outcome(tmp_path, 13.0, or_equal=True) == "fails"

    def test_one_bad_place_fails_and_is_named(self, tmp_path):
        def regret(key):
            return SWEPT[key.method] + wobble(key) + (10 * (key.p == 0.2 and key.method == "tofu"))

        found = verdict(tmp_path, LOWER, regret)
        assert found.outcome == "fails"
        assert "p = 0.2: 15 against 9" in found.numbers
        assert verdict(tmp_path, {**LOWER, "p": 0.8}, regret).outcome == "holds"

    def test_pairs_are_seeds_not_means(self, tmp_path):
        # The seeds differ by far more than the methods do.
        found = verdict(
            tmp_path, LOWER, lambda key: 100.0 * key.seed + SWEPT[key.method] + wobble(key) / 50
        )
        assert found.outcome == "holds"

    def test_three_seeds_are_judged_and_two_are_not(self, tmp_path):
        for n_seeds, outcome in ((1, SMALL), (2, SMALL), (3, "holds")):
            found = verdict(tmp_path, LOWER, noisy(SWEPT), run=lambda key, n=n_seeds: key.seed < n)
            assert found.outcome == outcome
            assert f"over {n_seeds} seeds" in found.numbers  # shown all the same

    def test_cells_that_were_not_run_are_reported(self, tmp_path):
        found = verdict(tmp_path, LOWER, noisy(SWEPT), run=lambda key: key.method != "tofu")
        assert found.outcome == "not run"
        found = verdict(tmp_path, LOWER, noisy(SWEPT), run=lambda key: key.p == 0.8)
        assert found.outcome == "undecided"
        assert "p = 0.2: no common seeds (not run)" in found.numbers

    def test_failed_cells_leave_their_pair_out(self, tmp_path):
        def regret(key):
            broken = key.method == "tofu" and key.seed == 3
            return None if broken else noisy(SWEPT)(key)

        assert "over 3 seeds" in verdict(tmp_path, LOWER, regret).numbers


MEANS = [
    {"kind": "lower", "method": "tofu", "than": "zf-oful"},
    {"kind": "regret", "method": "tofu", "at_most": 9},
    {"kind": "regret", "method": "tofu", "relative_to": "zf-oful", "at_least": 0.5},
    {"kind": "rises", "method": "tofu"},
    {"kind": "rank", "method": "tofu", "tolerance": 1},
]


@pytest.mark.parametrize("claim", MEANS, ids=lambda claim: "-".join(claim))
def test_two_seeds_are_too_few_for_every_claim_about_means(tmp_path, claim):
    def regret(key):
        return SWEPT[key.method] * (1 + 0.01 * key.seed) / key.p**0.1

    assert verdict(tmp_path, claim, regret, run=lambda key: key.seed < 2).outcome == SMALL
    assert verdict(tmp_path, claim, regret).outcome != SMALL


def test_nothing_is_judged_at_smoke_scale(tmp_path):
    study = small_study(claims=[{"text": claim["kind"], **claim} for claim in MEANS])
    results = write_results(tmp_path, study, noisy(SWEPT))
    results.manifest["scale"] = "smoke"
    found = verdicts_on(study, results)
    assert {(v.outcome, v.numbers) for v in found} == {(SMALL, "run at smoke scale")}


class TestNarrowed:
    """A part of a study is judged at the points that it has."""

    def verdicts(self, folder, claim, **part):
        study = small_study(claims=[{"text": "so", **claim}]).narrowed(**part)
        (found,) = verdicts_on(study, write_results(folder, study, noisy(SWEPT)))
        return found

    def test_other_probabilities_are_left_out_and_named(self, tmp_path):
        found = self.verdicts(tmp_path, {**LOWER, "p": [0.8, 0.2]}, observe_probs=[0.8])
        assert found.outcome == "holds"
        assert found.numbers.endswith("over 4 seeds; not in this run: p = 0.2")
        found = self.verdicts(tmp_path, {**LOWER, "p": [0.2]}, observe_probs=[0.8])
        assert (found.outcome, found.numbers) == ("not run", "nothing of it was run")

    def test_settings_in_which_the_method_does_not_play_are_not_named(self, tmp_path):
        settings = {
            "a": {"observe_prob": [0.8], "methods": ["tofu", "zf-oful"]},
            "b": {"observe_prob": [0.2], "methods": ["uniform"]},
        }
        claim = {**LOWER, "p": [0.8]}
        found = verdict(tmp_path, claim, noisy(SWEPT), methods={}, settings=settings)
        assert found.outcome == "holds"
        assert "not in this run" not in found.numbers

    def test_levels_stay_with_their_points(self, tmp_path):
        claim = {"kind": "regret", "method": "tofu", "p": [0.8, 0.2], "at_most": [1, 9]}
        assert self.verdicts(tmp_path, claim, observe_probs=[0.2]).outcome == "holds"
        assert self.verdicts(tmp_path, claim, observe_probs=[0.8]).outcome == "fails"

    def test_without_its_method_a_claim_is_not_run(self, tmp_path):
        assert self.verdicts(tmp_path, LOWER, methods=["tofu"]).outcome == "not run"

    def test_other_seeds_are_judged_where_they_are_enough(self, tmp_path):
        assert self.verdicts(tmp_path, LOWER, seeds=range(4, 8)).outcome == "holds"
        assert self.verdicts(tmp_path, LOWER, seeds=(4, 5)).outcome == SMALL


def test_a_ratio_of_regrets_flips_with_the_numbers(tmp_path):
    limits = {"at_least": 0.9, "at_most": 1.1}
    claim = {"kind": "regret", "method": "tofu", "relative_to": "zf-oful", **limits}
    for level, outcome in ((9.8, "holds"), (10.1, "fails"), (8.2, "holds"), (7.9, "fails")):
        assert verdict(tmp_path, claim, noisy({**SWEPT, "tofu": level})).outcome == outcome
    assert verdict(tmp_path, claim, lambda key: 0.0).outcome == "undecided"
    absent = verdict(tmp_path, claim, noisy(SWEPT), run=lambda key: key.method == "tofu")
    assert absent.outcome == "not run"


def test_rises_flips_with_the_numbers(tmp_path):
    claim = {"kind": "rises", "method": "tofu"}

    def outcome(step, **more):
        def regret(key):
            return 5.0 + (step if key.p == 0.2 else 0.0) + wobble(key) * (1 if key.p == 0.2 else -1)

        return verdict(tmp_path, claim, regret, **more).outcome

    assert outcome(3.0) == "holds"
    assert outcome(0.1) == "undecided"
    assert outcome(-3.0) == "fails"
    assert outcome(3.0, run=lambda key: key.method != "tofu") == "not run"


@pytest.mark.parametrize(
    ("ranks", "outcome"), [((1.0, 1.2), "holds"), ((1.0, 3.0), "undecided"), ((2.8, 3.0), "fails")]
)
def test_a_rank_below_the_true_one_flips_with_the_numbers(tmp_path, ranks, outcome):
    claim = {"kind": "rank", "method": "tofu", "relation": "below"}  # the true rank is 2
    rank = lambda key: ranks[key.seed % 2]  # noqa: E731
    assert verdict(tmp_path, claim, noisy(SWEPT), rank=rank).outcome == outcome


def test_rank_flips_with_the_numbers(tmp_path):
    claim = {"kind": "rank", "method": "tofu", "tolerance": 0.5}

    def outcome(rank, **more):
        return verdict(tmp_path, claim, noisy(SWEPT), rank=lambda key: rank, **more).outcome

    assert outcome(2.5) == "holds"
    assert outcome(2.6) == "fails"
    assert outcome(None) == "not run"


def test_eigengap_flips_with_the_numbers(tmp_path):
    claim = {"kind": "rank", "source": "eigengap", "method": "tofu"}

    def outcome(eigenvalues):
        told = {"eigenvalues": eigenvalues}
        return verdict(tmp_path, claim, noisy(SWEPT), diagnostics=lambda key: told).outcome

    assert outcome([1.5, 1.2, 0.1, 0.05]) == "holds"
    assert outcome([1.5, 0.5, 0.1, 0.05]) == "fails"
    assert outcome([1.5, 0.5]) == "undecided"
    assert outcome([]) == "not run"


BEST = {"name": "best", "methods": "tofu", "against": ["zf-oful", "pslb"], "choose_seeds": "0:2"}
COMPARED = {"kind": "compared", "comparison": "best", "lead_over": "uniform"}
FOUR = {"tofu": 10.0, "zf-oful": 10.0, "pslb": 50.0, "uniform": 110.0}


class TestCompared:
    """tofu against the better of zf-oful and pslb on seeds 0 and 1, on the other seeds."""

    def verdict(self, folder, regret, *, run=None, part=None, **claim):
        study = small_study(
            seeds="0:10",
            comparisons=[BEST],
            methods=list(FOUR),
            claims=[{"text": "so", **COMPARED, **claim}],
        )
        if part:
            study = study.narrowed(**part)
        (found,) = verdicts_on(study, write_results(folder, study, regret, run=run))
        return found

    def noisy(self, tofu, scale=1.0):
        """Return regrets; the standard error of the paired difference is about 0.17 · scale."""

        def regret(key):
            level = FOUR[key.method] if key.method != "tofu" else tofu
            return level + scale * wobble(key) * (1 if key.method == "tofu" else -1)

        return regret

    def test_it_flips_with_the_numbers(self, tmp_path):
        outcomes = [self.verdict(tmp_path, self.noisy(level)).outcome for level in (8, 10.1, 11)]
        assert outcomes == ["holds", "holds", "fails"]

    def test_a_share_of_the_lead_is_allowed(self, tmp_path):
        """The lead over uniform is 100."""
        for level, outcome in ((11.9, "holds"), (12.1, "fails")):
            found = self.verdict(tmp_path, self.noisy(level, scale=0.1), margin=0.02)
            assert found.outcome == outcome
            assert "at most +2 allowed" in found.numbers

    def test_two_standard_errors_are_allowed_if_they_are_more(self, tmp_path):
        found = self.verdict(tmp_path, self.noisy(12.1, scale=20.0), margin=0.02)
        assert found.outcome == "holds"

    def test_the_best_is_picked_on_other_seeds_than_it_is_compared_on(self, tmp_path):
        """On seeds 0 and 1 pslb is the better one, and on all others it is the worse one."""

        def regret(key):
            lucky = key.method == "pslb" and key.seed < 2
            return 1.0 if lucky else FOUR[key.method] + wobble(key) / 10

        found = self.verdict(tmp_path, regret)
        assert found.outcome == "holds"
        assert "p = 0.8: 10 against 50 of PSLB, nothing hidden, difference −40" in found.numbers
        assert "over 8 seeds" in found.numbers

    def test_one_bad_place_fails_and_is_named(self, tmp_path):
        def regret(key):
            return self.noisy(30 if key.p == 0.2 else 8)(key)

        found = self.verdict(tmp_path, regret)
        assert found.outcome == "fails"
        assert found.numbers.endswith("(fails)")
        assert "p = 0.2: 30 against 10" in found.numbers
        assert self.verdict(tmp_path, regret, p=0.8).outcome == "holds"

    def test_the_average_flips_with_the_numbers(self, tmp_path):
        """At p = 0.8 the method gains 10; at p = 0.2 it loses as given."""
        for loss, outcome in ((5, "holds"), (10, "undecided"), (15, "fails")):

            def regret(key, loss=loss):
                return self.noisy(10 + loss if key.p == 0.2 else 0.0)(key)

            found = self.verdict(tmp_path, regret, average=True)
            assert found.outcome == outcome
            assert "in % of the regret of uniform, over 2 points" in found.numbers

    def test_the_average_counts_shares_and_not_regrets(self, tmp_path):
        """A loss of 10 of 1100 is less than a gain of 5 of 110."""

        def regret(key):
            large = key.p == 0.2
            level = {"tofu": 110.0 if large else 5.0, "zf-oful": 100.0 if large else 10.0}
            other = 1100.0 if large else 110.0
            return level.get(key.method, other) + wobble(key) / 10

        assert self.verdict(tmp_path, regret, average=True).outcome == "holds"

    def test_an_average_needs_a_regret_to_compare_with(self, tmp_path):
        found = self.verdict(tmp_path, lambda key: 0.0, average=True)
        assert (found.outcome, found.numbers) == (
            "undecided",
            "the regret of uniform is 0 (undecided)",
        )

    @pytest.mark.parametrize("average", [False, True])
    def test_what_was_not_run_is_reported(self, tmp_path, average):
        def outcome(run=None, **more):
            claim = {"run": run, "average": average, **more}
            return self.verdict(tmp_path, self.noisy(8), **claim).outcome

        assert outcome() == "holds"
        for missing in ("tofu", "uniform"):
            assert outcome(lambda key, missing=missing: key.method != missing) == "not run"
        assert outcome(lambda key: key.seed >= 2) == "not run"  # nothing to pick by
        assert outcome(lambda key: key.seed < 2) == "not run"  # nothing to compare on
        assert outcome(lambda key: key.seed < 4) == SMALL
        assert outcome(lambda key: key.p == 0.8) == "undecided"
        assert outcome(part={"observe_probs": [0.8]}) == "holds"

    def test_a_method_that_failed_on_a_seed_is_not_picked(self, tmp_path):
        def regret(key):
            failed = key.method == "zf-oful" and key.seed == 0
            return None if failed else self.noisy(8)(key)

        assert "against 50 of PSLB" in self.verdict(tmp_path, regret).numbers


HORIZONS = {f"T={t}": {"world": {"horizon": t}} for t in (40, 80, 160)}


def grows(power, spread=0.01):
    def regret(key):
        return int(key.setting[2:]) ** power * (1 + spread * wobble(key))

    return regret


@pytest.mark.parametrize(
    ("claim", "power", "outcome"),
    [
        ({"near": 0.6667, "tolerance": 0.1}, 0.6, "holds"),
        ({"near": 0.6667, "tolerance": 0.1}, 0.5, "fails"),
        ({"near": 0.6667, "tolerance": 0.1}, 0.8, "fails"),
        ({"at_most": 0.5}, 0.4, "holds"),
        ({"at_most": 0.5}, 0.6, "fails"),
    ],
)
def test_exponents_flip_with_the_numbers(tmp_path, claim, power, outcome):
    found = verdict(
        tmp_path,
        {"kind": "exponent", **claim, "method": "tofu"},
        grows(power),
        settings=HORIZONS,
        observe_prob=0.5,
    )
    assert found.outcome == outcome
    assert f"exponent {power:.2f}" in found.numbers


def test_an_exponent_whose_interval_holds_the_value_is_undecided(tmp_path):
    def regret(key):
        return int(key.setting[2:]) ** (0.5 + wobble(key))

    claim = {"kind": "exponent", "at_most": 0.5, "method": "tofu"}
    more = {"settings": HORIZONS, "observe_prob": 0.5}
    assert verdict(tmp_path, claim, regret, **more).outcome == "undecided"
    one = verdict(tmp_path, claim, grows(0.4), run=lambda key: key.setting == "T=40", **more)
    assert one.outcome == "not run"
    part = verdict(tmp_path, claim, grows(0.4), run=lambda key: key.setting != "T=40", **more)
    assert part.outcome == "undecided"
    assert "1 more horizons (not run)" in part.numbers
    single = verdict(tmp_path, claim, grows(0.4), run=lambda key: key.seed == 0, **more)
    assert single.outcome == SMALL


def test_a_slope_is_that_of_the_mean_regret_and_repeats(tmp_path):
    study = small_study(settings=HORIZONS, observe_prob=0.5)
    results = write_results(tmp_path, study, grows(0.6))
    first, second = (growth_of(study, results, Quantity("tofu")) for _ in range(2))
    assert first == second
    assert first.numbers == (40, 80, 160)
    assert first.slope == pytest.approx(0.6)
    assert first.low <= first.slope <= first.high


ARMS = {f"K={n}": {"world": {"n_arms": n}} for n in (4, 16, 64)}


def test_an_excess_over_another_method_grows_with_a_number_of_the_world(tmp_path):
    study = small_study(settings=ARMS, observe_prob=0.5)
    # 30 + 8/√K and 30: the whole barely falls, the excess like K^(-1/2).
    n_arms = {name: table["world"]["n_arms"] for name, table in ARMS.items()}

    def regret(key):
        noise = 1 + 0.01 * key.seed
        return 30 * noise + (8 * noise / n_arms[key.setting] ** 0.5 if key.method == "tofu" else 0)

    results = write_results(tmp_path, study, regret)
    excess = growth_of(study, results, Quantity("tofu", minus="zf-oful"), "n_arms")
    assert excess.numbers == (4, 16, 64)
    assert excess.slope == pytest.approx(-0.5)
    assert growth_of(study, results, Quantity("tofu"), "n_arms").slope > -0.1
    some = growth_of(study, results, Quantity("tofu"), "n_arms", settings=("K=4", "K=64"))
    assert some.numbers == (4, 64)


def test_of_settings_with_the_same_number_the_first_counts(tmp_path):
    study = small_study(settings=HORIZONS, observe_prob=0.5)
    results = write_results(tmp_path, study, grows(0.6))
    assert growth_of(study, results, Quantity("tofu"), "n_arms") is None


def test_a_power_of_p_is_that_of_one_setting(tmp_path):
    study = small_study(observe_prob=[0.8, 0.4, 0.2])
    results = write_results(tmp_path, study, lambda key: (1 + 0.01 * key.seed) / key.p**2)
    assert growth_of(study, results, Quantity("tofu"), "p").slope == pytest.approx(-2)


def test_the_interval_covers_the_slope_about_as_often_as_it_says():
    # 300 samples of 20 seeds; the percentile interval covers a little less than 95 %.
    random, horizons = np.random.default_rng(0), (100, 1000)
    covered = 0
    for _ in range(300):
        noise = 1 + 0.3 * random.standard_normal((20, 2))
        low, high = slope_interval(horizons, np.array([10.0, 10.0**1.5]) * noise)
        covered += low <= 0.5 <= high
    assert 0.88 <= covered / 300 <= 0.99


HARD = {"kind": "hard-instance", "n_arms": 4, "horizon": 400, "noise_scale": 2.0}


def test_a_gap_that_widens_is_told_from_one_that_does_not(tmp_path):
    claim = {"kind": "rises", "method": "zf-oful", "minus": "tofu"}
    # Both regrets rise; the gap is 4/p, or 4 at every p.
    widens = {"tofu": lambda p: 5 / p, "zf-oful": lambda p: 9 / p, "uniform": lambda p: 30}
    steady = widens | {"zf-oful": lambda p: 5 / p + 4}
    narrows = widens | {"zf-oful": lambda p: 5 / p + 4 * p}
    for pays, outcome in ((widens, "holds"), (steady, "undecided"), (narrows, "fails")):
        found = verdict(tmp_path, claim, lambda key: pays[key.method](key.p) + wobble(key))  # noqa: B023
        assert found.outcome == outcome
    assert (
        verdict(tmp_path, claim, lambda key: widens[key.method](key.p)).numbers.count("5 → 20") == 1
    )


@pytest.mark.parametrize("bound", ["explicit", "optimized"])
def test_above_bound_flips_with_the_numbers(tmp_path, bound):
    claim = {"kind": "above-bound", "bound": bound}

    def outcome(regret, **more):
        found = verdict(
            tmp_path,
            claim,
            lambda key: regret * (1 + 0.01 * wobble(key)),
            world=HARD,
            observe_prob=[0.2, 0.1],
            **more,
        )
        return found.outcome

    study = small_study(world=HARD, observe_prob=[0.2, 0.1])
    bounds = [lower_bounds(study, Point("default", p))[bound] for p in (0.2, 0.1)]
    assert outcome(1.1 * max(bounds)) == "holds"
    assert outcome(0.9 * min(bounds)) == "fails"
    assert outcome(0.9 * min(bounds), run=lambda key: key.seed == 0) == SMALL
    assert outcome(1.1 * max(bounds), run=lambda key: key.method == "tofu") == "undecided"
    assert outcome(1.0, run=lambda key: False) == "not run"


def test_a_regret_may_be_claimed_to_be_within_a_factor_of_the_bound(tmp_path):
    study = small_study(world=HARD, observe_prob=[0.1])
    bound = lower_bounds(study, Point("default", 0.1))["hidden"]
    claim = {"kind": "above-bound", "bound": "hidden", "methods": ["tofu"], "within": 5}

    def found(factor):
        # Other methods pay nothing, and are not asked.
        paid = factor * bound
        pays = lambda key: paid * (1 + 0.01 * wobble(key)) if key.method == "tofu" else 0.0  # noqa: E731
        return verdict(tmp_path, claim, pays, world=HARD, observe_prob=[0.1])

    assert found(4.0).outcome == "holds"
    assert "times the bound" in found(4.0).numbers
    assert found(6.0).outcome == "fails"
    assert found(0.5).outcome == "fails"


@pytest.mark.parametrize(
    ("noise_scale", "forms"),
    [
        (1.0, {"explicit", "hidden"}),  # (S B/R)² alone is 1
        (2.0, {"explicit", "hidden", "optimized"}),  # Kp² is .08, (S B/R)² is .25
        (4.0, {"explicit", "hidden", "optimized", "context-limited"}),  # .0625
    ],
)
def test_a_form_of_the_bound_is_given_where_its_premise_holds(noise_scale, forms):
    world = HARD | {"noise_scale": noise_scale, "n_arms": 8}
    study = small_study(world=world, observe_prob=[0.1])
    assert set(lower_bounds(study, Point("default", 0.1))) == forms


def test_the_lower_bound_applies_to_the_hard_family_only(tmp_path):
    claim = {"kind": "above-bound", "bound": "explicit"}
    found = verdict(tmp_path, claim, noisy(SWEPT))
    assert (found.outcome, found.numbers) == ("undecided", "the bound applies nowhere (undecided)")


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"kind": "higher"}, r"claims\[0\]\.kind must be one of 'lower'.*got 'higher'"),
        ({}, r"claims\[0\]\.kind must be given"),
        ({"kind": "lower", "than": "a"}, r"claims\[0\]\.method must be given"),
        ({**LOWER, "to": "b"}, r"claims\[0\]\.to is not a key here"),
        ({**LOWER, "thn": "b"}, r"claims\[0\]\.thn is not a key here: did you mean 'than'\?"),
        ({"kind": "regret", "method": "tofu"}, r"claims\[0\]\.at_most must be given, or at_least"),
        ({"kind": "regret", "method": "tofu", "at_most": []}, r"at_most must be a number in"),
        ({"kind": "exponent", "method": "tofu"}, r"\.at_most must be given, or at_least, or near"),
        (
            {"kind": "exponent", "method": "tofu", "at_most": 1, "p": [0.5, 0.2]},
            r"\.p must be left out, or be one probability",
        ),
        (
            {
                "kind": "exponent",
                "method": "tofu",
                "at_most": 1,
                "over": "p",
                "setting": ["a", "b"],
            },
            r"\.setting must be one setting, over whose probabilities",
        ),
        (
            {"kind": "exponent", "method": "tofu", "at_most": 1, "value": "a", "minus": "tofu"},
            r"\.minus must be left out: only a regret has an excess",
        ),
        (
            {"kind": "exponent", "method": "tofu", "near": 1, "x": "a"},
            r"(?s)claims\[0\]\.value must be given: .*claims\[0\]\.tolerance must be given: ",
        ),
        ({**LOWER, "p": 1.2}, r"claims\[0\]\.p must be a probability in \(0, 1\] or .*got 1\.2"),
        ({**LOWER, "setting": 3}, r"claims\[0\]\.setting must be a text or a list of them, got 3"),
        (
            {"kind": "rank", "method": "tofu", "tolerance": -1},
            r"claims\[0\]\.tolerance must be a number in \[0, inf\), got -1",
        ),
        (
            {"kind": "compared", "comparison": "none", "lead_over": "uniform"},
            r"claims\[0\]\.comparison must be one of those of the study, which has none",
        ),
        (
            {"kind": "compared", "comparison": "a", "lead_over": "u", "margin": 1, "average": True},
            r"claims\[0\]\.margin must be left out",
        ),
        ({"kind": "above-bound", "bound": "other"}, r"claims\[0\]\.bound must be one of"),
    ],
)
def test_a_bad_claim_is_reported_with_its_key(claim, message):
    with pytest.raises(StudyError, match=message):
        small_study(claims=[{"text": "so", **claim}])


def test_a_claim_needs_its_words():
    with pytest.raises(StudyError, match=r"claims\[0\]\.text must be given"):
        small_study(claims=[LOWER])


KINDS = {get_args(each.model_fields["kind"].annotation)[0]: each for each in get_args(AnyClaim)}


def test_every_kind_of_claim_is_used_by_a_study_of_the_package():
    used = {claim.kind for name in ORDER for claim in builtin_study(name).claims}
    assert set(JUDGES) == used == set(KINDS)


def test_every_kind_of_claim_and_panel_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    assert {kind for kind in (*JUDGES, *PANELS) if f"`{kind}`" not in text} == set()
    for model in KINDS.values():
        assert {key for key in model.model_fields if f"`{key}`" not in text} == set()


def test_verdicts_make_a_table(tmp_path):
    frame = as_frame([verdict(tmp_path, LOWER, noisy(SWEPT))])
    assert frame.columns.tolist() == ["text", "kind", "verdict", "numbers"]
    assert frame["verdict"].tolist() == ["holds"]
