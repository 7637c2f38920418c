"""Every bound of the paper against measurements. Most methods are measures, not policies that compete."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

from halfseen import theory
from halfseen.paper import claims as claim
from halfseen.paper.claims import OURS, Claims
from halfseen.paper.study import Plain, Setting, Small
from halfseen.report.figures import Figure, Line, Panel, diagnostics
from halfseen.simulation.results import Results

TITLE = "Theory: every bound against measurements"
SEEDS = range(10)
BOUNDED = {"kind": "low-rank", "latent": "uniform", "loadings": [1.0, 1.0], "noise_scale": 0.1}


def _setting(measure: str, world: Plain, probs: Sequence[float] = (), **settings: float) -> Setting:
    """Return a world of bounded arms in which something is measured."""
    methods = {measure: {"policy": "measure", "measure": measure, **settings}}
    return Setting(world=BOUNDED | world, methods=methods, observe_probs=probs)


_OF_REGRESSION = {"dim": 30, "n_arms": 8, "horizon": 400, "observe_prob": 0.5}
_ARM_BOUND = math.sqrt(6)  # of two uniform latents of variance 1
_ALGORITHM_1: Plain = {
    "policy": "TofuPov",
    "burn_in": 249,
    "replay": "none",
    "ridge": 4 * _ARM_BOUND**2,
    "bonus_scale": 1.0,
    "impute_ridge": 1e-9,
    "arm_bound": _ARM_BOUND,
    "top_eigenvalue": 1.0,
    "last_eigenvalue": 1.0,
    "failure_prob": 0.1,
}
PLAYED: dict[str, Plain] = {
    "algorithm-1": _ALGORITHM_1,
    "algorithm-1-rank-chosen": _ALGORITHM_1 | {"rank": {"rule": "PaperThreshold"}},
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
        for dim in (64, 16384)
    },
    "noisy": _setting("coverage", _OF_REGRESSION | {"rank": 1, "noise_scale": 30.0}, ridge=1.0),
    "biased": _setting("coverage", _OF_REGRESSION | {"rank": 2}, burn_in=3),
    "played": Setting(
        world=BOUNDED | {"dim": 16, "rank": 2, "n_arms": 8, "horizon": 3999, "observe_prob": 0.95},
        methods=PLAYED,
    ),
    "main study": _setting(
        "excitation", {"dim": 30, "rank": 3, "n_arms": 8, "horizon": 400}, [0.3]
    ),
}
SMALL = Small(
    settings=[name for name in SETTINGS if name != "d=16384"], world={"horizon": 120, "n_arms": 20}
)
NOTES = [
    "Latents are uniform, so that arms are bounded as the theory assumes; with the Gaussian latents of the published studies no bound applies.",
    "Bounds that hold with probability 1 - delta have delta = .1 (coverage: .2). If a lemma is about all arms, the worst of the offered arms is compared.",
    "Algorithm 1 has the constants of the theorem, except for its burn-in, which is set by hand: that of the theorem is longer than any run.",
    "Only d = 16384 is large enough for the condition on p. Imputation is measured at d = 64, where the condition fails and a few arms fall below the floor.",
]


def _representation(
    results: Results, what: str, title: str, ylabel: str, *more: Line
) -> Panel | None:
    """Show an error of the representation and its bound at both probabilities."""
    value = "subspace_distance" if what == "subspace" else f"{what}_error"
    lines = [
        Line(value, "measured, p = 0.8", p=0.8),
        Line(value, "measured, p = 0.5", "second", p=0.5),
        Line(f"{what}_bound", "bound, p = 0.8", "bound", p=0.8),
        Line(f"{what}_bound", "bound, p = 0.5", "other-bound", p=0.5),
        *more,
    ]
    return diagnostics(
        results,
        "representation",
        "n_arms",
        lines,
        xlabel="arms seen, n",
        ylabel=ylabel,
        title=title,
        setting="estimation",
    )


def figures(results: Results) -> Iterator[Figure]:
    nothing, actual = "above, a bound says nothing", "bound at the measured distance, p = 0.8"
    error = partial(_representation, results)
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


def _main_bound(problem: theory.Problem) -> float:
    return theory.main_regret_bound(problem, failure_prob=0.1).total


def _rank_adaptive_bound(problem: theory.Problem) -> float:
    levels = {"rank_failure_prob": 0.025, "representation_failure_prob": 0.025}
    return theory.rank_adaptive_regret_bound(problem, **levels, oful_failure_prob=0.05).total


def _two_phase_bound(problem: theory.Problem) -> float:
    split = theory.power_split(problem.horizon, 2 / 3)
    return theory.two_phase_regret_bound(problem, split=split, failure_prob=0.1).total


def claims(results: Results) -> Claims:
    # Lemmas that are algebra (potential, contraction) are tests, not claims: no run could make them
    # fail.
    error = partial(claim.bounded, results, "representation", setting="estimation")
    missed = partial(claim.bounded, results, "coverage", bound="failure_prob")
    return {
        "lemma:covariance_estimation_error": {
            "The corrected covariance stays within its bound": error(
                "covariance_error", "covariance_bound"
            )
        },
        "lemma:sub_space_lemma": {
            "The subspace stays within its bound": error(
                "aligned_distance", "subspace_bound", trivial="trivial_subspace"
            )
        },
        "lemma: imputation_error": {
            "Filled arms stay within the bound, with the measured distance in place of ε": error(
                "imputation_error", "imputation_bound_actual"
            )
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
            "Where p satisfies its condition (d = 16384), the seen rows of no arm fall below 3p/4": claim.bounded(
                results, "gram", "floor", "smallest", setting="d=16384"
            )
        },
        "thm:confidence_set_m_t_main": {
            "With noise alone the confidence set misses no more often than δ": missed(
                value="missed_true_subspace", setting="noisy"
            ),
            "With a poor subspace the confidence set also misses no more often than δ if the radius includes its misspecification part": missed(
                value="missed_with_bias_part", setting="biased"
            ),
        },
        "thm:main_regret": {
            "Regret stays within the theorem's bound": claim.below_bound(
                results, "algorithm-1", _main_bound
            )
        },
        "thm:unknown_rank": {
            "Once 2ρ separates the spectrum, the rank that Algorithm 1 chooses is the true one": claim.final_rank(
                results, "algorithm-1-rank-chosen", at_least=-0.5, at_most=0.5
            ),
            "Regret with a chosen rank stays within the theorem's bound": claim.below_bound(
                results, "algorithm-1-rank-chosen", _rank_adaptive_bound
            ),
            "The rank is found before imputation is stable: the spectrum separates after fewer arms": claim.exceeds(
                results, "representation", "imputation_stable", "rank_found", setting="estimation"
            ),
        },
        "app:two_phase_comparison": {
            "Regret of a single estimate after T^(2/3) rounds stays within its bound": claim.below_bound(
                results, "two-phase", _two_phase_bound
            )
        },
        "app:pslb-comparison": {
            "Offered arms that excite all directions do not imply that chosen arms do: if every slate is {e1, e2}, OFUL excites the second direction less": claim.exceeds(
                results, "excitation", "example_offered", "example_oful", setting="main study"
            )
        },
        OURS: {
            "Where p violates its condition (d = 64), the seen rows of some arm fall below 3p/4": claim.exceeds(
                results, "gram", "floor", "smallest", setting="d=64"
            ),
            "Without the misspecification part of its radius the confidence set misses more often than δ": claim.exceeds(
                results, "coverage", "missed_without_bias_part", "failure_prob", setting="biased"
            ),
        },
    }
