"""Every bound of the paper against measurements; misspecification (app:bias_control); freezing (app:pslb-comparison). The methods are measures, not policies that compete."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from halfseen.paper.claims import Claims, exponent, measured, slope
from halfseen.paper.study import Plain, Setting, Small
from halfseen.report.figures import Figure, Line, Panel, diagnostics, growth
from halfseen.simulation.results import Results

TITLE = "Theory: every bound against measurements"
SEEDS = range(10)


def _setting(
    measure: str, probs: Sequence[float], *more: str, world: Plain, **settings: float
) -> Setting:
    """Return a world of bounded arms in which something is measured."""
    plain = {"kind": "low-rank", "latent": "uniform", "loadings": [1.0, 1.0], "noise_scale": 0.1}
    methods = {key: {"policy": "measure", "measure": key, **settings} for key in (measure, *more)}
    return Setting(world=plain | world, methods=methods, observe_probs=probs)


def _runs(rank: int) -> Setting:
    world = {"dim": 64, "rank": rank, "n_arms": 20, "horizon": 1999, "observe_prob": 0.8}
    return _setting("algorithm-1", (), world=world)


def _gram(dim: int) -> Setting:
    world = {"dim": dim, "rank": 2, "n_arms": 20, "horizon": 100, "observe_prob": 0.6}
    return _setting("gram", (), world=world)


def _coverage(world: Plain, **settings: float) -> Setting:
    common = {"dim": 30, "n_arms": 8, "horizon": 400, "observe_prob": 0.5}
    return _setting("coverage", (), world={**common, **world}, **settings)


RANKS = ["m=1", "m=4", "m=16"]
SETTINGS = {
    "estimation": _setting(
        "representation", (0.8, 0.5), world={"dim": 64, "rank": 2, "n_arms": 250, "horizon": 4000}
    ),
    **{f"d={dim}": _gram(dim) for dim in (64, 1024, 16384)},
    "catalogue": _setting(
        "algorithm-1",
        (),
        world={"dim": 16, "rank": 2, "n_arms": 8, "horizon": 3999, "observe_prob": 0.95},
        catalogue=4000000,
    ),
    **{f"m={rank}": _runs(rank) for rank in (1, 4, 16)},
    "noisy": _coverage({"rank": 1, "noise_scale": 30.0}, ridge=1.0),
    "biased": _coverage({"rank": 2}, burn_in=3),
    "main study": _setting(
        "freezing",
        [0.3],
        "excitation",
        world={"dim": 30, "rank": 3, "n_arms": 8, "horizon": 400, "loadings": [0.75, 1.25]},
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
    "Freezing: any change of an m-dimensional projection gives the design a step with a negative eigenvalue; without a change it is zero. The run shows how large these terms are, and that the potential bound still holds.",
    "Only d = 16384 is large enough for the condition on p. Imputation is measured at d = 64, where the condition fails and a few arms fall below the floor.",
]


def _representation(
    results: Results, what: str, *more: Line, title: str, ylabel: str
) -> Panel | None:
    """Show an error of the representation and its bound at both probabilities."""
    measured_name = "subspace_distance" if what == "subspace" else f"{what}_error"
    lines = [
        Line(measured_name, "measured, p = 0.8", p=0.8),
        Line(measured_name, "measured, p = 0.5", "second", p=0.5),
        Line(f"{what}_bound", "bound, p = 0.8", "bound", p=0.8),
        Line(f"{what}_bound", "bound, p = 0.5", "other-bound", p=0.5),
        *more,
    ]
    return _over(results, "representation", "n_arms", lines, "estimation", title, ylabel)


_AXES = {
    "n_arms": "arms seen, n",
    "n_samples": "samples of the epoch",
    "far_horizon": "rounds T",
    "reestimated_round": "round",
    "round": "round",
}


def _over(
    results: Results,
    measure: str,
    x: str,
    lines: Sequence[Line],
    setting: str | None,
    title: str,
    ylabel: str,
    xlabel: str = "",
    **scales: Any,
) -> Panel | None:
    return diagnostics(
        results,
        measure,
        x,
        lines,
        setting=setting,
        title=title,
        xlabel=xlabel or _AXES[x],
        ylabel=ylabel,
        **scales,
    )


def figures(results: Results) -> Iterator[Figure]:
    """Return the figures."""
    nothing, actual = "above, a bound says nothing", "bound at the measured distance, p = 0.8"
    yield Figure(
        "theory_representation",
        "Errors of the representation after n arms, and their bounds (worst of 250 new arms in the lower row)",
        [
            _representation(
                results, "covariance", title="corrected covariance", ylabel="spectral error"
            ),
            _representation(
                results,
                "subspace",
                Line("trivial_subspace", nothing, "reference", p=0.8),
                title="subspace",
                ylabel="distance to the true subspace",
            ),
            _representation(
                results,
                "imputation",
                Line("imputation_bound_actual", actual, "third", p=0.8),
                title="imputation",
                ylabel="error of a filled arm",
            ),
            _representation(
                results,
                "surrogate",
                Line("surrogate_bound_actual", actual, "third", p=0.8),
                Line("trivial_surrogate", nothing, "reference", p=0.8),
                title="surrogate reward",
                ylabel="error of a mean reward",
            ),
        ],
    )
    known = [
        Line("smallest", "d = 16384 (the lemma applies)", setting="d=16384"),
        Line("smallest", "d = 1024 (it does not)", "second", setting="d=1024"),
        Line("smallest", "d = 64 (it does not)", "third", setting="d=64"),
        Line("floor", "floor of the lemma", "bound", setting="d=64"),
    ]
    estimated = [
        Line("gram_smallest", "estimated, p = 0.8", "fourth", p=0.8),
        Line("gram_smallest", "estimated, p = 0.5", "other-bound", p=0.5),
        Line("gram_floor", "floor of the lemma", "bound", p=0.8),
    ]
    over, ylabel = partial(_over, results, yscale="linear"), "smallest eigenvalue / p"
    yield Figure(
        "theory_gram",
        "Conditioning of the seen rows of a basis: smallest eigenvalue of their Gram matrix over p, worst arm, m = 2",
        [
            over("gram", "n_arms", known, None, "true basis, p = 0.6", ylabel),
            over(
                "representation",
                "n_arms",
                estimated,
                "estimation",
                "estimated basis, d = 64",
                ylabel,
            ),
        ],
    )
    run = partial(_over, results, "algorithm-1")
    missed = partial(
        _over, results, "coverage", "round", xlabel="round of the epoch", yscale="linear"
    )
    share, bound = "share of epochs that missed", Line("failure_prob", "bound", "bound")
    potential = [Line("potential", "measured"), Line("potential_bound", "bound", "bound")]
    widths = [Line("squared_widths", "measured"), Line("squared_widths_bound", "bound", "bound")]
    alone = [Line("missed_true_subspace", "true subspace", "third"), bound]
    biased = [
        Line("missed_with_bias_part", "radius with its misspecification part", "second"),
        Line("missed_without_bias_part", "radius without it", "fourth"),
        bound,
    ]
    yield Figure(
        "theory_regression",
        "Inside an epoch: potential and widths of a run of Algorithm 1, and how often the confidence set misses in any round so far",
        [
            run("n_samples", potential, "catalogue", "potential", "log-determinant ratio"),
            run("n_samples", widths, "catalogue", "squared widths", "sum of squared widths"),
            missed(alone, "noisy", "noise alone", share),
            missed(biased, "biased", "a subspace from 24 arms", share),
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
    linear = {"xscale": "linear", "yscale": "linear"}
    yield Figure(
        "theory_regret",
        "Regret of Algorithm 1 and its bounds: a run after four million absorbed arms, and the theorem at far larger horizons",
        [
            run("round", bounds, "catalogue", "a run", "cumulative regret", **linear),
            run("far_horizon", theorem, "catalogue", "the theorem", "regret"),
        ],
    )
    radius = [
        Line("naive_bound", "naive bound", "other-bound"),
        Line("contracted_bound", "contracted bound", "bound"),
        Line("worst_bias_term", "worst signs", "second"),
        Line("bias_term", "the run's own"),
    ]
    ratios = [
        Line("naive_over_contracted", f"ratio, m = {m}", role, setting=f"m={m}")
        for m, role in ((16, "third"), (4, "fourth"), (1, "reference"))
    ]
    regrets = [
        Line("far_naive_representation", "naive bound", "other-bound"),
        Line("far_representation", "contracted bound", "bound"),
    ]
    part, of_bound = "misspecification part of the radius", "representation part of the bound"
    yield Figure(
        "theory_misspecification",
        "Misspecified rewards, the naive and the contracted bound: on the estimate in the first row, on regret in the second",
        [
            run("n_samples", radius, "m=1", "m = 1", part),
            run("n_samples", radius, "m=16", "m = 16", part),
            run(
                "n_samples",
                ratios,
                None,
                "naive over contracted",
                "ratio of the bounds",
                yscale="linear",
            ),
            run("far_horizon", regrets, "m=1", "regret bound, m = 1", of_bound),
            run("far_horizon", regrets, "m=16", "regret bound, m = 16", of_bound),
            growth(
                results,
                "algorithm-1",
                "rank",
                settings=RANKS,
                value="far_naive_factor",
                ylabel="ratio of the regret bounds",
                slopes=[0.5],
                title="naive over contracted, T = 10¹²",
            ),
        ],
    )
    example = [
        Line("example_offered", "offered arms", "bound"),
        Line("example_oful", "chosen by OFUL", "second"),
        Line("example_fixed", "always the first", "fourth"),
    ]
    world = [
        Line("world_offered", "offered arms", "bound"),
        Line("world_chosen", "chosen by OFUL", "second"),
    ]
    ylabel = "smallest eigenvalue, per round"
    yield Figure(
        "theory_excitation",
        "Chosen arms need not excite all directions that offered arms excite",
        [
            over("excitation", "round", example, "main study", "every slate is {e1, e2}", ylabel),
            over(
                "excitation",
                "round",
                world,
                "main study",
                "the main study's arms, subspace known",
                ylabel,
            ),
        ],
    )
    frozen = partial(_over, results, "freezing", "reestimated_round", setting="main study")
    yield Figure(
        "theory_freezing",
        "Why the subspace is frozen: one step of the projected noise sum and of the projected design, p = 0.3",
        [
            frozen(
                lines=[
                    Line("reestimated_martingale", "new noise", "second"),
                    Line("reestimated_retrospective", "old noise projected again", "fourth"),
                ],
                title="noise: re-estimated every round",
                ylabel="length of one step",
                xscale="linear",
            ),
            frozen(
                lines=_both("drift"),
                title="all old noise projected again",
                ylabel="share of the noise sum",
                **linear,
            ),
            frozen(
                lines=_both("smallest_increment"),
                title="design: smallest eigenvalue of a step",
                ylabel="eigenvalue",
                **linear,
            ),
            frozen(
                lines=[
                    Line("reestimated_squared_widths", "re-estimated", "third"),
                    Line(
                        "reestimated_potential_sum",
                        "bound, proved for frozen designs only",
                        "bound",
                    ),
                ],
                title="potential of the re-estimated run",
                ylabel="sum of squared widths",
                **linear,
            ),
        ],
    )


def _both(what: str) -> list[Line]:
    return [
        Line(f"reestimated_{what}", "re-estimated", "third"),
        Line(f"frozen_{what}", "frozen", x="frozen_round"),
    ]


def claims(results: Results) -> Claims:
    """Return what is claimed."""
    return {
        "The corrected covariance stays within its bound": measured(
            results,
            "representation",
            "covariance_error",
            "at most",
            "covariance_bound",
            setting="estimation",
        ),
        "Its error falls like n^(-1/2)": slope(
            results,
            "representation",
            "covariance_error",
            "n_arms",
            near=(-0.5, 0.05),
            setting="estimation",
        ),
        "The subspace stays within its bound": measured(
            results,
            "representation",
            "aligned_distance",
            "at most",
            "subspace_bound",
            setting="estimation",
        ),
        "Its distance falls like n^(-1/2)": slope(
            results,
            "representation",
            "subspace_distance",
            "n_arms",
            near=(-0.5, 0.05),
            setting="estimation",
        ),
        "Filled arms stay within the imputation bound": measured(
            results,
            "representation",
            "imputation_error",
            "at most",
            "imputation_bound",
            setting="estimation",
        ),
        "Filled arms stay within that bound with the measured distance in place of epsilon": measured(
            results,
            "representation",
            "imputation_error",
            "at most",
            "imputation_bound_actual",
            setting="estimation",
        ),
        "Surrogate rewards stay within b": measured(
            results,
            "representation",
            "surrogate_error",
            "at most",
            "surrogate_bound",
            setting="estimation",
        ),
        "Surrogate rewards stay within b with the measured distance in place of epsilon": measured(
            results,
            "representation",
            "surrogate_error",
            "at most",
            "surrogate_bound_actual",
            setting="estimation",
        ),
        "The rank is found long before imputation is stable: t_rank of the theorem is below its t_b at every horizon": measured(
            results, "algorithm-1", "far_burn_in", "above", "far_rank_length"
        ),
        "So it is in the runs: the spectrum separates after fewer arms than stable imputation needs": measured(
            results,
            "representation",
            "imputation_stable",
            "above",
            "rank_found",
            at_end=True,
            setting="estimation",
        ),
        "At d = 16384 p satisfies its condition": measured(
            results, "gram", "needed_observe_prob", "at most", "observe_prob", setting="d=16384"
        ),
        "At d = 16384 no arm's seen rows fall below 3p/4": measured(
            results, "gram", "smallest", "at least", "floor", setting="d=16384"
        ),
        "At d = 64, where p does not satisfy its condition, some arms do": measured(
            results, "gram", "floor", "above", "smallest", at_end=True, setting="d=64"
        ),
        "At d = 64 and p = .5 the floor p/2 of an estimated basis does not hold, either": measured(
            results,
            "representation",
            "gram_floor",
            "above",
            "gram_smallest",
            at_end=True,
            setting="estimation",
            p=[0.5],
        ),
        "The potential of an epoch stays within its bound": measured(
            results, "algorithm-1", "potential", "at most", "potential_bound", setting="catalogue"
        ),
        "Squared widths sum to at most twice the potential": measured(
            results,
            "algorithm-1",
            "squared_widths",
            "at most",
            "squared_widths_bound",
            setting="catalogue",
        ),
        "With noise alone the confidence set misses no more often than stated": measured(
            results, "coverage", "missed_true_subspace", "at most", "failure_prob", setting="noisy"
        ),
        "With a poor subspace it also misses no more often, if the radius has its misspecification part": measured(
            results,
            "coverage",
            "missed_with_bias_part",
            "at most",
            "failure_prob",
            setting="biased",
        ),
        "Without that part of the radius it misses more often": measured(
            results,
            "coverage",
            "missed_without_bias_part",
            "above",
            "failure_prob",
            at_end=True,
            setting="biased",
        ),
        "Regret stays within the bounds of the lemmas": measured(
            results, "algorithm-1", "regret", "at most", "lemma_bound", setting="catalogue"
        ),
        "With four million arms known, the bounds of the lemmas are below the trivial bound": measured(
            results,
            "algorithm-1",
            "trivial_bound",
            "above",
            "lemma_bound",
            at_end=True,
            setting="catalogue",
        ),
        "Regret stays within the theorem": measured(
            results, "algorithm-1", "regret", "at most", "theorem_bound", setting="catalogue"
        ),
        "At this horizon the theorem's bound is above the trivial bound": measured(
            results,
            "algorithm-1",
            "theorem_bound",
            "above",
            "trivial_bound",
            at_end=True,
            setting="catalogue",
        ),
        "At a horizon of 10^12 rounds it is below the trivial bound": measured(
            results,
            "algorithm-1",
            "far_trivial",
            "above",
            "far_theorem",
            at_end=True,
            setting="catalogue",
        ),
        "The worst misspecification found stays within the contracted bound": measured(
            results, "algorithm-1", "worst_bias_term", "at most", "contracted_bound"
        ),
        "The naive bound is larger at the end of an epoch": measured(
            results, "algorithm-1", "naive_bound", "above", "contracted_bound", at_end=True
        ),
        "So is the regret bound that follows from it": measured(
            results,
            "algorithm-1",
            "far_naive_representation",
            "above",
            "far_representation",
            at_end=True,
        ),
        "It is larger by a factor of order m^(1/2), so that it is of order m^(3/2) where the contracted one is of order m (exponent near 1/2, up to .05)": exponent(
            results,
            "algorithm-1",
            "rank",
            near=(0.5, 0.05),
            settings=RANKS,
            value="far_naive_factor",
        ),
        "If every slate is {e1, e2}, offered arms excite both directions, and the rule that always chooses e1 does not": measured(
            results,
            "excitation",
            "example_offered",
            "above",
            "example_fixed",
            at_end=True,
            setting="main study",
        ),
        "There OFUL, too, excites the second direction less than linearly": measured(
            results,
            "excitation",
            "example_offered",
            "above",
            "example_oful",
            at_end=True,
            setting="main study",
        ),
        "With a subspace re-estimated every round, every step of the design has a negative eigenvalue": measured(
            results, "freezing", "reestimated_smallest_increment", "below", setting="main study"
        ),
        "With a frozen subspace, no step has a negative eigenvalue": measured(
            results, "freezing", "frozen_smallest_increment", "at least", setting="main study"
        ),
        "In the re-estimated run, the noise sum contains old noise projected again": measured(
            results,
            "freezing",
            "reestimated_drift",
            "above",
            "frozen_drift",
            at_end=True,
            setting="main study",
        ),
        "With a frozen subspace the noise sum has no such part": measured(
            results, "freezing", "frozen_retrospective", "equal to", setting="main study"
        ),
        "The potential bound still holds for the re-estimated run, although its proof does not apply": measured(
            results,
            "freezing",
            "reestimated_squared_widths",
            "at most",
            "reestimated_potential_sum",
            setting="main study",
        ),
    }
