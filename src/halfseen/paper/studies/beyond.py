"""Beyond the paper: what each part of latent UCB is worth, and how it fares in other worlds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from halfseen.paper.claims import BEYOND, Claims, lower, within
from halfseen.paper.studies import synthetic
from halfseen.paper.study import Plain, Setting, Small, standard
from halfseen.report.figures import Figure, differences
from halfseen.report.look import label_of
from halfseen.report.numbers import Comparison, compare
from halfseen.simulation.results import Results

TITLE = "Beyond the paper: parts of latent UCB, and other worlds"
SEEDS = range(20)
PROBS = (0.6, 0.3)
METHODS = standard("latent-ucb tofu-fh zf-oful clbbf oracle-masked")


def _changed(**changes: Any) -> Plain:
    return {"method": "latent-ucb", **changes}


ABLATION: dict[str, Plain] = {
    "latent-ucb-no-filled": _changed(groups=["latent", "mask", "item"]),
    "latent-ucb-no-mask": _changed(groups=["latent", "filled", "item"]),
    "latent-ucb-no-item": _changed(groups=["latent", "filled", "mask"]),
    "latent-ucb-growth-2": _changed(growth=2.0),
    "latent-ucb-rank-told": _changed(facts=["rank"]),
    "latent-ucb-through-origin": _changed(through_origin=True),
    "latent-ucb-thompson": _changed(exploration="thompson"),
    "latent-ucb-greedy": _changed(exploration="greedy"),
}
_PAIRWISE = {
    **standard("latent-ucb zf-oful clbbf oracle-masked"),
    "tofu-fh-pairwise": {"method": "tofu-fh", "observe_prob": "unknown"},
}
# The subspace from an estimator that follows the arms, in place of the corrected covariance.
SEQUENTIAL: dict[str, Plain] = {
    f"{method}-{rule.lower()}": {"method": method, "subspace": {"rule": rule}}
    for method in ("tofu", "tofu-fh")
    for rule in ("Grouse", "Oja", "Petrels")
}
_NO_TOFU = standard("latent-ucb zf-oful clbbf oracle-masked")


def _else(
    methods: Mapping[str, Plain] = METHODS, probs: Sequence[float] = PROBS, **world: Any
) -> Setting:
    return Setting(world=synthetic.WORLD | world, methods=methods, observe_probs=probs)


ELSEWHERE = {
    "perturbed": _else(perturbation=0.1),
    "heavy-tails": _else(latent="student"),
    "per-feature": _else(
        _PAIRWISE, (0.5, 0.3), masks={"law": "per-feature", "low": 0.1, "high": 0.9}
    ),
    "blocks": _else(_PAIRWISE, masks={"law": "blocks", "size": 5}),
    "change": _else(standard("latent-ucb tofu-fh zf-oful clbbf"), change_round=201),
    "rank-1": _else(rank=1),
    "rank-8": _else(rank=8),
    "rank-15": _else(rank=15),
    "noise-small": _else(noise_scale=0.01),
    "noise-large": _else(noise_scale=1.0),
    "two-arms": _else(n_arms=2),
    "many-arms": _else(n_arms=200),
    "large-features": _else(
        METHODS | {"oracle-masked": {"entry_noise": 1e-4, "ridge": 1e4, "theta_bound": 0.01}},
        feature_scale=100.0,
    ),
    "small-features": _else(
        METHODS | {"oracle-masked": {"entry_noise": 1e-12, "ridge": 1e-4, "theta_bound": 100.0}},
        feature_scale=0.01,
    ),
    "little-seen": _else(probs=(0.15, 0.1)),
    "full-rank": _else(_NO_TOFU, rank=30),
    "full-rank-tail": _else(_NO_TOFU, rank=30, decay=1.0, theta="tail"),
}
FOLLOWED = standard("tofu tofu-fh oracle-masked") | SEQUENTIAL
SETTINGS = {
    "ablation": _else(METHODS | ABLATION, (0.6, 0.3, 0.2)),
    "sequential": _else(FOLLOWED, (0.6, 0.3, 0.2)),
    "sequential, perturbed": _else(FOLLOWED, (0.6, 0.3, 0.2), perturbation=0.1),
    **ELSEWHERE,
}
SMALL = Small(
    observe_probs=[0.3],
    world={"horizon": 50},
    settings=["ablation", "sequential", "blocks", "full-rank-tail"],
)
NOTES = [
    "Latent UCB is not from the paper, and its regret theorem does not cover it. It has its default settings unless its label says otherwise.",
    "In the ablation one part of latent UCB is changed at a time. Its model of the rewards has four parts: latent coordinates, filled arms, masks, and effects of items that come back. In these worlds no item comes back.",
    "In the robustness table TOFU with full history is given the true rank and the observation probability. If features have different probabilities or are masked in blocks, it counts pairs seen together instead (`pairs counted`). The oracle is given the scale of the features.",
    "CLBBF (arXiv 1703.01347) stands for OFUL on the expected features given the seen entries: here under a Gaussian with the means and correlations of all offered arms, fitted anew whenever the rounds have grown by half. It has no low rank, no scales, no masks and no items: what latent UCB gains over it is what these add.",
    "In the comparison of subspace estimators, GROUSE, Oja's rule and PETRELS have the defaults of `halfseen.tofu`, chosen on other worlds and seeds. They see each arm once, in the order of the rounds.",
    "Probabilities per feature lie between 0.1 and 0.9 and average to p. Blocks are 5 neighbouring features. The subspace changes after round 200 of 400; no oracle is told.",
]


def ablation(results: Results) -> Comparison:
    """Compare latent UCB with one part changed with itself."""
    caption = "Latent UCB with one part changed at a time"
    return compare(
        results, "ablation", caption, list(ABLATION), ["latent-ucb"], settings=["ablation"]
    )


def robustness(results: Results) -> Comparison:
    """Compare latent UCB with the best other method in other worlds."""
    caption = "Latent UCB with default settings against TOFU with full history given the true rank; on full-rank arms against zero-filled OFUL"
    others = ["tofu-fh", "tofu-fh-pairwise", "zf-oful"]
    return compare(results, "robustness", caption, ["latent-ucb"], others, settings=list(ELSEWHERE))


def sequential(results: Results, against: str) -> Comparison:
    """Compare TOFU with a sequential estimator of the subspace with TOFU itself."""
    caption = f"{label_of(against)} with another estimator of the subspace, against itself"
    methods = [key for key, plain in SEQUENTIAL.items() if plain["method"] == against]
    settings = ["sequential", "sequential, perturbed"]
    return compare(results, f"{against}-sequential", caption, methods, [against], settings=settings)


def comparisons(results: Results) -> list[Comparison]:
    followed = [sequential(results, method) for method in ("tofu", "tofu-fh")]
    return [ablation(results), robustness(results), *followed]


def figures(results: Results) -> Iterator[Figure]:
    yield Figure(
        "beyond_ablation",
        "Latent UCB with one part changed, against itself: mean differences with 95 % intervals",
        [differences(ablation(results), p=p, title=f"p = {p:g}") for p in (0.6, 0.3, 0.2)],
    )
    yield Figure(
        "beyond_sequential",
        "TOFU with a sequential estimator of the subspace, against itself: mean differences with 95 % intervals",
        [
            differences(sequential(results, method), p=p, title=f"{label_of(method)}, p = {p:g}")
            for method in ("tofu", "tofu-fh")
            for p in (0.3, 0.2)
        ],
    )
    yield Figure(
        "beyond_robustness",
        "Latent UCB with default settings against TOFU with full history (zero-filled OFUL on full-rank arms): mean differences with 95 % intervals",
        [differences(robustness(results))],
    )


def claims(results: Results) -> Claims:
    pairwise, full_rank = ["per-feature", "blocks"], ["full-rank", "full-rank-tail"]
    ranks = ["rank-1", "rank-8", "rank-15"]
    others = [name for name in ELSEWHERE if name not in (*pairwise, *full_rank, *ranks)]
    return {
        "sec:discussion": {
            "TOFU is not brittle when arms are only approximately low-rank: with features perturbed by 0.1, TOFU-FH has lower regret than ZF-OFUL": lower(
                results, "tofu-fh", "zf-oful", setting="perturbed"
            )
        },
        BEYOND: {
            "In other worlds, latent UCB with default settings has lower regret than TOFU-FH given the rank": lower(
                results, "latent-ucb", "tofu-fh", setting=others
            ),
            "Latent UCB with default settings also has lower regret than TOFU-FH given the rank when the rank is 1, 8 or 15": lower(
                results, "latent-ucb", "tofu-fh", setting=ranks
            ),
            "Latent UCB also has lower regret than TOFU-FH that counts pairs, when features have different probabilities or are masked in blocks": lower(
                results, "latent-ucb", "tofu-fh-pairwise", setting=pairwise
            ),
            "Latent UCB with default settings has lower regret than OFUL on expected features (CLBBF), in low-rank and in full-rank worlds": lower(
                results, "latent-ucb", "clbbf", setting=list(ELSEWHERE)
            ),
            "Where little is seen (p ≤ 0.3), TOFU with full history has lower regret with GROUSE than with the corrected covariance": lower(
                results, "tofu-fh-grouse", "tofu-fh", setting="sequential", p=[0.3, 0.2]
            ),
            "On full-rank arms, with a flat spectrum or with spectrum 1/j and θ in the tail, latent UCB has at most 3 % more regret than ZF-OFUL": within(
                results, "latent-ucb", "zf-oful", at_most=1.03, setting=full_rank
            ),
        },
    }
