"""How regret scales with K, κ, p and m, beside the representation cost of the theorem (thm:main_regret)."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from halfseen.paper.claims import OURS, Check, Claims, exponent
from halfseen.paper.study import Plain, Setting, Small
from halfseen.report.figures import Figure, growth
from halfseen.report.numbers import growth_points
from halfseen.simulation.results import Results
from halfseen.theory import main_regret_bound

TITLE = "Scaling: the cost of hidden entries against K, κ, p and m"
SEEDS = range(10)
WORLD = {
    "kind": "low-rank",
    "latent": "uniform",
    "loadings": [1.0, 1.0],
    "dim": 100,
    "rank": 3,
    "n_arms": 8,
    "horizon": 1000,
    "noise_scale": 0.05,
}
_SEEN = {"view": "full", "observe_prob": 1.0}
_FROZEN = {"replay": "none", "burn_in_policy": "uniform"}
METHODS: dict[str, Plain] = {
    "tofu": _FROZEN,
    "tofu-seen": {"method": "tofu", **_FROZEN, **_SEEN},
    "tofu-fh": {"burn_in_policy": "uniform"},
    "tofu-fh-seen": {"method": "tofu-fh", "burn_in_policy": "uniform", **_SEEN},
    "latent-ucb": {},
    "latent-ucb-seen": {"method": "latent-ucb", "view": "full"},
}
_CHANGES: dict[str, Plain] = {
    **{f"K = {n}": {"n_arms": n} for n in (2, 4, 20, 60, 200)},
    **{f"κ = {k}": {"decay": a} for k, a in (("3", 0.5), ("5.2", 1.0), ("9", 1.5))},
    **{f"m = {m}": {"rank": m} for m in (1, 2, 5, 8)},
}
SETTINGS = {
    "base": Setting(world=WORLD, methods=METHODS, observe_probs=(0.3, 0.8, 0.6, 0.4)),
    **{
        name: Setting(world=WORLD | change, methods=METHODS, observe_probs=[0.3])
        for name, change in _CHANGES.items()
    },
}
SMALL = Small(
    settings=["base", "K = 2", "κ = 5.2", "m = 1"], observe_probs=(0.8, 0.3), world={"horizon": 100}
)
NOTES = [
    "The theorem's cost of the representation is of order κ m sqrt(T)/(p^2 sqrt(K)). The whole regret also has the cost of learning rewards, m sqrt(T), which hides it. So each policy has a twin that sees every entry, with the same burn-in rounds, the same epochs and the same noise. What it pays is subtracted seed by seed, and exponents are fitted to the rest.",
    "The theorem is an upper bound: an exponent may be smaller in size. Intervals come from resampling seeds. An exponent is missing where the mean excess is not positive at some number; resamples without an exponent count as beyond both ends of the interval.",
    "Latents are uniform, so that arms are bounded: κ is sqrt(3) times the squared ratio of the largest to the smallest loading, at least sqrt(3). It is set by the decay of the loadings 1, 2^(-a/2), 3^(-a/2), which leaves the bound on arms as it is.",
    "The excess over a twin that sees everything vanishes at p = 1: a cost of order 1/p^2 - 1 has the exponent -2.9 over these p, and c (1/p^2 - 1) fits the four means of TOFU-FH (chi-squared 1.2 on 3 degrees). The cost itself is small, below 1 of a regret of about 45 for TOFU with full history.",
    "This is the third form of the study, and each was chosen after the one before was seen. First: 30 features, in excess of OFUL given the subspace, 8 seeds; K has the exponent .18 without replay and .01 with full history. Second: 30 features against the twin, 20 seeds; K has -.39 and -.24, p has -3.3 and -4.9, m has 3.1 and 2.7. So these exponents describe, and do not confirm.",
    "With 100 features at least 30 entries of an arm are seen on average, for ranks up to 8. With 30 features there are 9 at p = .3. Then imputation fails for many arms, far outside of the theorem's condition on p, and the excess grows like p^(-3) to p^(-5) and like m^3.",
    "TOFU without replay is the frozen form of Algorithm 1 without its bonus. Both forms of TOFU play uniformly for 30 rounds first.",
]


def figures(results: Results) -> Iterator[Figure]:
    """Return the figures."""
    minus = "tofu-seen tofu-fh-seen latent-ucb-seen"
    yield Figure(
        "scaling",
        "Final regret in excess of the same policy that sees every entry, with exponents; dotted: the exponent of the theorem's representation cost",
        [
            growth(
                results,
                "tofu tofu-fh latent-ucb",
                over,
                minus=minus,
                ylabel="excess regret",
                slopes=[theorem_exponent(results, over)],
            )
            for over in ("n_arms", "conditioning", "p", "rank")
        ],
    )


def theorem_exponent(results: Results, over: str) -> float:
    """Return the exponent of the theorem's cost of the representation in these worlds.

    As for the regrets, the cost if every entry is seen is subtracted.
    """
    costs = {}
    for at, point in growth_points(results, over, None, None).items():
        here = results.realization(point).problem()
        hidden, seen = (
            main_regret_bound(each, failure_prob=0.05).representation
            for each in (here, replace(here, observe_prob=1.0))
        )
        costs[at] = hidden - seen
    return float(np.polyfit(np.log(list(costs)), np.log(list(costs.values())), 1)[0])


def _no_faster(results: Results, method: str, *overs: str) -> Check:
    """Check that the cost of hidden entries grows no faster than the theorem's."""
    findings = []
    for over in overs:
        # A cost that grows as p falls has a negative exponent, which may not be further below 0.
        limit = theorem_exponent(results, over)
        low, high = (limit, math.inf) if over == "p" else (-math.inf, limit)
        found = exponent(results, method, over, minus=f"{method}-seen", at_least=low, at_most=high)
        told = f", the theorem's {limit:.2f}".replace("-", "−")
        findings += [each._replace(numbers=each.numbers + told) for each in found.findings]
    return Check(findings, "an exponent is beyond that of the theorem in this world")


def claims(results: Results) -> Claims:
    """Return what is claimed."""
    return {
        "thm:main_regret": {
            "The cost of hidden entries grows no faster than the theorem's cost of the representation in these worlds, in K, κ, p and m (TOFU without replay)": _no_faster(
                results, "tofu", "n_arms", "conditioning", "p", "rank"
            ),
        },
        OURS: {
            "With full history, which the theorem does not cover, the cost of hidden entries grows no faster in κ, p and m": _no_faster(
                results, "tofu-fh", "conditioning", "p", "rank"
            ),
            "With full history the cost of hidden entries falls as more arms are offered, but more slowly than the theorem's K^(-1/2)": exponent(
                results, "tofu-fh", "n_arms", minus="tofu-fh-seen", at_least=-0.5, at_most=0
            ),
        },
    }
