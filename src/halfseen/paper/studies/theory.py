"""Every bound of the paper against measurements; misspecification (app:bias_control); freezing (app:pslb-comparison). The methods are measures, not policies that compete."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from halfseen.paper.claims import (
    OURS,
    Claims,
    below_bound,
    bounded,
    exceeds,
    exponent,
    final_rank,
    slope,
)
from halfseen.paper.study import Plain, Setting, Small
from halfseen.report.figures import Figure, Line, Panel, diagnostics, growth
from halfseen.simulation.results import Results
from halfseen.theory import (
    Problem,
    power_split,
    rank_adaptive_regret_bound,
    two_phase_regret_bound,
)

TITLE = "Theory: every bound against measurements"
SEEDS = range(10)


RANKS = ["m=1", "m=4", "m=16"]
BOUNDED = {"kind": "low-rank", "latent": "uniform", "loadings": [1.0, 1.0], "noise_scale": 0.1}
LONG = {"dim": 16, "rank": 2, "n_arms": 8, "horizon": 3999, "observe_prob": 0.95}


def _setting(
    measures: str, world: Plain, probs: Sequence[float] = (), **settings: float
) -> Setting:
    """Return a world of bounded arms in which something is measured."""
    methods = {key: {"policy": "measure", "measure": key, **settings} for key in measures.split()}
    return Setting(world=BOUNDED | world, methods=methods, observe_probs=probs)


_OF_REGRESSION = {"dim": 30, "n_arms": 8, "horizon": 400, "observe_prob": 0.5}
_ARM_BOUND = math.sqrt(6)  # of two uniform latents of variance 1
PLAYED: dict[str, Plain] = {
    "algorithm-1-rank-chosen": {
        "policy": "TofuPov",
        "rank": {"rule": "PaperThreshold"},
        "burn_in": 249,
        "replay": "none",
        "ridge": 4 * _ARM_BOUND**2,
        "bonus_scale": 1.0,
        "impute_ridge": 1e-9,
        "arm_bound": _ARM_BOUND,
        "top_eigenvalue": 1.0,
        "last_eigenvalue": 1.0,
        "failure_prob": 0.1,
    },
    "two-phase": {"burn_in_policy": "uniform"},
}
SETTINGS = {
    "estimation": _setting(
        "representation", {"dim": 64, "rank": 2, "n_arms": 250, "horizon": 4000}, (0.8, 0.5)
    ),
    **{
        f"d={dim}": _setting(
            "gram", {"dim": dim, "rank": 2, "n_arms": 20, "horizon": 100, "observe_prob": 0.6}
        )
        for dim in (64, 1024, 16384)
    },
    "catalogue": _setting("algorithm-1", LONG, catalogue=4000000),
    **{
        f"m={rank}": _setting(
            "algorithm-1",
            {"dim": 64, "rank": rank, "n_arms": 20, "horizon": 1999, "observe_prob": 0.8},
        )
        for rank in (1, 4, 16)
    },
    "noisy": _setting("coverage", _OF_REGRESSION | {"rank": 1, "noise_scale": 30.0}, ridge=1.0),
    "biased": _setting("coverage", _OF_REGRESSION | {"rank": 2}, burn_in=3),
    "played": Setting(world=BOUNDED | LONG, methods=PLAYED),
    "main study": _setting(
        "freezing excitation",
        {"dim": 30, "rank": 3, "n_arms": 8, "horizon": 400, "loadings": [0.75, 1.25]},
        [0.3],
    ),
}
SMALL = Small(
    settings=[name for name in SETTINGS if name not in ("d=1024", "d=16384")],
    world={"horizon": 120, "n_arms": 20},
    methods={
        "representation": {"points": 5},
        "gram": {"points": 5},
        "algorithm-1": {"burn_in": 29, "catalogue": 20000, "points": 6},
        "coverage": {"replicates": 40, "points": 5},
        "freezing": {"burn_in": 20},
        "excitation": {"points": 6},
    },
)
NOTES = [
    "Latents are uniform, so that arms are bounded as the theory assumes; with the Gaussian latents of the published studies no bound applies.",
    "Bounds that hold with probability 1 - delta have delta = .1 (coverage: .2). If a lemma is about all arms, the worst of the offered arms is compared.",
    "The run of Algorithm 1 absorbs four million arms before its first round: without them epsilon, and with it every bound on regret, is vacuous for 4000 rounds. Its burn-in is set by hand.",
    "b in the misspecification figure is the largest bias of any offered arm, the smallest b for which the lemma's premise holds.",
    "Freezing: any change of an m-dimensional projection gives the design a step with a negative eigenvalue; without a change it is zero. The run shows how much old noise is projected again, and that the potential bound still holds.",
    "Only d = 16384 is large enough for the condition on p. Imputation is measured at d = 64, where the condition fails and a few arms fall below the floor.",
]


_AXES = {
    "n_arms": "arms seen, n",
    "n_samples": "samples of the epoch",
    "far_horizon": "rounds T",
    "reestimated_round": "round",
    "round": "round",
}
_LINEAR = {"xscale": "linear", "yscale": "linear"}


def _panel(
    results: Results,
    measure: str,
    x: str,
    setting: str | None,
    title: str,
    ylabel: str,
    *lines: Line,
    **scales: Any,
) -> Panel | None:
    where: Plain = {"setting": setting, "title": title, "xlabel": _AXES[x], "ylabel": ylabel}
    return diagnostics(results, measure, x, lines, **where, **scales)


def _representation(
    results: Results, what: str, title: str, ylabel: str, *more: Line
) -> Panel | None:
    """Show an error of the representation and its bound at both probabilities."""
    value = "subspace_distance" if what == "subspace" else f"{what}_error"
    return _panel(
        results,
        "representation",
        "n_arms",
        "estimation",
        title,
        ylabel,
        Line(value, "measured, p = 0.8", p=0.8),
        Line(value, "measured, p = 0.5", "second", p=0.5),
        Line(f"{what}_bound", "bound, p = 0.8", "bound", p=0.8),
        Line(f"{what}_bound", "bound, p = 0.5", "other-bound", p=0.5),
        *more,
    )


def figures(results: Results) -> Iterator[Figure]:
    """Return the figures."""
    nothing, actual = "above, a bound says nothing", "bound at the measured distance, p = 0.8"
    error, panel = partial(_representation, results), partial(_panel, results)
    filled = Line("imputation_bound_actual", actual, "third", p=0.8)
    paid = Line("surrogate_bound_actual", actual, "third", p=0.8)
    far = Line("trivial_subspace", nothing, "reference", p=0.8)
    worst = Line("trivial_surrogate", nothing, "reference", p=0.8)
    yield Figure(
        "theory_representation",
        "Errors of the representation after n arms, and their bounds (worst of 250 new arms in the lower row)",
        [
            error("covariance", "corrected covariance", "spectral error"),
            error("subspace", "subspace", "distance to the true subspace", far),
            error("imputation", "imputation", "error of a filled arm", filled),
            error("surrogate", "surrogate reward", "error of a mean reward", paid, worst),
        ],
    )
    known = [
        Line("smallest", "d = 16384 (the lemma applies)", setting="d=16384"),
        Line("smallest", "d = 1024 (it does not)", "second", setting="d=1024"),
        Line("smallest", "d = 64 (it does not)", "third", setting="d=64"),
        Line("floor", "floor of the lemma", "bound", setting="d=64"),
    ]
    yield Figure(
        "theory_gram",
        "Conditioning of the seen rows of the true basis: smallest eigenvalue of their Gram matrix over p, worst arm, m = 2, p = 0.6",
        [panel("gram", "n_arms", None, "", "smallest eigenvalue / p", *known, yscale="linear")],
    )
    missed = partial(panel, "coverage", "round", yscale="linear")
    share, bound = "share of epochs that missed", Line("failure_prob", "bound", "bound")
    biased = [
        Line("missed_with_bias_part", "radius with its misspecification part", "second"),
        Line("missed_without_bias_part", "radius without it", "fourth"),
        bound,
    ]
    alone = Line("missed_true_subspace", "true subspace", "third")
    yield Figure(
        "theory_regression",
        "Inside an epoch: how often the confidence set misses in any round so far",
        [
            missed("noisy", "noise alone", share, alone, bound),
            missed("biased", "a subspace from 24 arms", share, *biased),
        ],
    )
    bounds = [
        Line("regret", "measured"),
        Line("lemma_bound", "lemmas, round by round", "other-bound"),
        Line("trivial_bound", "trivial bound", "reference"),
    ]
    theorem = [
        Line("far_theorem", "theorem", "bound"),
        Line("far_startup", "its burn-in", "third"),
        Line("far_representation", "its representation part", "second"),
        Line("far_learning", "its regression part", "fourth"),
        Line("far_trivial", "trivial bound", "reference"),
        Line("regret", "measured", x="round"),
    ]
    run = partial(panel, "algorithm-1")
    yield Figure(
        "theory_regret",
        "Regret of Algorithm 1 and its bounds: a run after four million absorbed arms, and the theorem at far larger horizons",
        [
            run("round", "catalogue", "a run", "cumulative regret", *bounds, **_LINEAR),
            run("far_horizon", "catalogue", "the theorem", "regret", *theorem),
        ],
    )
    radius = [
        Line("naive_bound", "naive bound", "other-bound"),
        Line("contracted_bound", "contracted bound", "bound"),
        Line("worst_bias_term", "worst signs", "second"),
        Line("bias_term", "the run's own"),
    ]
    part = "misspecification part of the radius"
    factor: Plain = {"value": "far_naive_factor", "slopes": [0.5], "ylabel": "ratio of the bounds"}
    title = "naive over contracted, T = 10¹²"
    yield Figure(
        "theory_misspecification",
        "Misspecified rewards: the naive and the contracted bound on the estimate, and the ratio of the bounds on regret that follow",
        [
            run("n_samples", "m=1", "m = 1", part, *radius),
            run("n_samples", "m=16", "m = 16", part, *radius),
            growth(results, "algorithm-1", "rank", settings=RANKS, title=title, **factor),
        ],
    )
    frozen = partial(panel, "freezing", "reestimated_round", "main study", **_LINEAR)
    drift = [
        Line("reestimated_drift", "re-estimated", "third"),
        Line("frozen_drift", "frozen", x="frozen_round"),
    ]
    widths = [
        Line("reestimated_squared_widths", "re-estimated", "third"),
        Line("reestimated_potential_sum", "bound, proved for frozen designs only", "bound"),
    ]
    yield Figure(
        "theory_freezing",
        "Why the subspace is frozen: old noise projected again, and the potential, p = 0.3",
        [
            frozen("old noise projected again", "share of the noise sum", *drift),
            frozen("potential of the re-estimated run", "sum of squared widths", *widths),
        ],
    )


def _rank_adaptive_bound(problem: Problem) -> float:
    levels = {"rank_failure_prob": 0.025, "representation_failure_prob": 0.025}
    return rank_adaptive_regret_bound(problem, **levels, oful_failure_prob=0.05).total


def _two_phase_bound(problem: Problem) -> float:
    split = power_split(problem.horizon, 2 / 3)
    return two_phase_regret_bound(problem, split=split, failure_prob=0.1).total


def claims(results: Results) -> Claims:
    """Return what is claimed.

    Lemmas that are algebra (potential, contraction, frozen designs) are tests, not claims: no run
    could make them fail.
    """
    error = partial(bounded, results, "representation", setting="estimation")
    rate = partial(slope, results, "representation", setting="estimation", near=(-0.5, 0.05))
    run = partial(bounded, results, "algorithm-1", setting="catalogue", trivial="trivial_bound")
    missed = partial(bounded, results, "coverage", bound="failure_prob")
    return {
        "lemma:covariance_estimation_error": {
            "The corrected covariance stays within its bound": error(
                "covariance_error", "covariance_bound"
            ),
            "The error of the corrected covariance falls like n^(-1/2) (slope within .05)": rate(
                "covariance_error", "n_arms"
            ),
        },
        "lemma:sub_space_lemma": {
            "The subspace stays within its bound": error(
                "aligned_distance", "subspace_bound", trivial="trivial_subspace"
            ),
            "The distance of the subspace falls like n^(-1/2) (slope within .05)": rate(
                "subspace_distance", "n_arms"
            ),
        },
        "lemma: imputation_error": {
            "Filled arms stay within the bound, with the measured distance in place of ε": error(
                "imputation_error", "imputation_bound_actual"
            ),
        },
        "lemma:surrogate-model": {
            "Surrogate rewards stay within b": error(
                "surrogate_error", "surrogate_bound", trivial="trivial_surrogate"
            ),
            "Surrogate rewards stay within b with the measured distance in place of ε": error(
                "surrogate_error", "surrogate_bound_actual", trivial="trivial_surrogate"
            ),
        },
        "lemma:true_observed_gram_conditioning": {
            "Where p satisfies its condition (d = 16384), the seen rows of no arm fall below 3p/4": bounded(
                results, "gram", "floor", "smallest", setting="d=16384"
            ),
        },
        "thm:confidence_set_m_t_main": {
            "With noise alone the confidence set misses no more often than δ": missed(
                value="missed_true_subspace", setting="noisy"
            ),
            "With a poor subspace the confidence set also misses no more often than δ if the radius includes its misspecification part": missed(
                value="missed_with_bias_part", setting="biased"
            ),
        },
        "lemma:epoch_regret": {
            "Regret stays within the bounds of the lemmas": run("regret", "lemma_bound"),
        },
        "thm:main_regret": {
            "Regret stays within the theorem's bound": run("regret", "theorem_bound"),
        },
        "thm:unknown_rank": {
            "Once 2ρ separates the spectrum, the rank that Algorithm 1 chooses is the true one": final_rank(
                results, "algorithm-1-rank-chosen", at_least=-0.5, at_most=0.5
            ),
            "Regret with a chosen rank stays within the theorem's bound": below_bound(
                results, "algorithm-1-rank-chosen", _rank_adaptive_bound
            ),
            "The rank is found before imputation is stable: the spectrum separates after fewer arms": exceeds(
                results, "representation", "imputation_stable", "rank_found", setting="estimation"
            ),
        },
        "app:two_phase_comparison": {
            "Regret of a single estimate after T^(2/3) rounds stays within its bound": below_bound(
                results, "two-phase", _two_phase_bound
            ),
        },
        "app:bias_control": {
            "The naive bound on regret is larger by a factor of order m^(1/2) (exponent within .05)": exponent(
                results,
                "algorithm-1",
                "rank",
                settings=RANKS,
                value="far_naive_factor",
                at_least=0.45,
                at_most=0.55,
            ),
        },
        "app:pslb-comparison": {
            "Offered arms that excite all directions do not imply that chosen arms do: if every slate is {e1, e2}, OFUL excites the second direction less": exceeds(
                results, "excitation", "example_offered", "example_oful", setting="main study"
            ),
        },
        OURS: {
            "Where p violates its condition (d = 64), the seen rows of some arm fall below 3p/4": exceeds(
                results, "gram", "floor", "smallest", setting="d=64"
            ),
            "Without the misspecification part of its radius the confidence set misses more often than δ": exceeds(
                results, "coverage", "missed_without_bias_part", "failure_prob", setting="biased"
            ),
            "The theorem's bound is below the trivial one at a horizon of 10^12 rounds": exceeds(
                results, "algorithm-1", "far_trivial", "far_theorem", setting="catalogue"
            ),
            "The potential bound also holds for a subspace re-estimated in every round, although its proof does not apply": bounded(
                results,
                "freezing",
                "reestimated_squared_widths",
                "reestimated_potential_sum",
                setting="main study",
            ),
        },
    }
