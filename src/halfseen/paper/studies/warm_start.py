"""What each way of reusing earlier rewards is worth.

Paper: fig:app_warm_start
Paper: fig:app_rank_and_warm_start
"""

from collections.abc import Iterator

from halfseen.paper.claims import OURS, Claims, lower, within
from halfseen.paper.study import Plain, Setting, Small, standard
from halfseen.report.figures import Figure, regret_over_p
from halfseen.simulation.results import Results

TITLE = "Warm start: which earlier rewards an epoch begins with"
SEEDS = range(20)
WORLD = {"kind": "low-rank", "dim": 12, "rank": 3, "n_arms": 8, "horizon": 300, "noise_scale": 0.05}
_TOFU = {"method": "tofu", "impute_ridge": 1e-6}
_RESTART = _TOFU | {"replay": "none", "burn_in_policy": "uniform"}
_BONUS = {"bonus_scale": 1.0, "arm_bound": 8.0, "top_eigenvalue": 1.5625, "last_eigenvalue": 0.5625}
METHODS: dict[str, Plain] = {
    "random-burn-in": _RESTART,
    "replay-none": _TOFU | {"replay": "none"},
    "replay-burn-in-once": _TOFU | {"replay": "burn-in-once"},
    "replay-burn-in": _TOFU | {"replay": "burn-in"},
    "replay-full": _TOFU | {"replay": "full"},
    "theory-radius": _RESTART | _BONUS,
    **standard("zf-oful zf-pslb oracle-full uniform"),
}
SETTINGS = {"default": Setting(world=WORLD, methods=METHODS, observe_probs=(1.0, 0.8, 0.6, 0.4))}
SMALL = Small(observe_probs=(1.0, 0.6), world={"horizon": 70})
NOTES = [
    "The published panel has no full-history curve, though the text describes it; we show it as well.",
    "The theory radius has the misspecification bonus of the paper on, with B = 8, λ̄ = 1.5625 and λ_m = .5625. These arms are Gaussian and therefore unbounded: no B is a bound, although all arms of these runs are shorter than 8, and the theorem does not apply. The published run used an older form of the bound. Both are close to random play.",
    "Random burn-in and uniform play have random streams of their own, so they agree with published figures in distribution only.",
]


def figures(results: Results) -> Iterator[Figure]:
    yield Figure(
        "fig:app_warm_start",
        "Final regret of every kind of replay, and beside other methods on a logarithmic axis",
        [
            regret_over_p(
                results, "random-burn-in replay-none replay-burn-in-once replay-burn-in replay-full"
            ),
            regret_over_p(
                results,
                "replay-none replay-full theory-radius zf-oful oracle-full uniform",
                log=True,
            ),
        ],
    )


def claims(results: Results) -> Claims:
    return {
        "fig:app_warm_start and fig:app_rank_and_warm_start": {
            "Warm-starting the first epoch with burn-in rewards lowers regret": lower(
                results, "replay-burn-in-once", "replay-none"
            ),
            "Re-imputing earlier arms and replaying their rewards at every epoch lowers regret": lower(
                results, "replay-full", "replay-none"
            ),
        },
        OURS: {
            "ZF-OFUL is a better burn-in than uniform play": lower(
                results, "replay-none", "random-burn-in"
            ),
            "Replaying burn-in rewards at every epoch is better than replaying them once": lower(
                results, "replay-burn-in", "replay-burn-in-once"
            ),
            "With the paper's bonus on, play at this size is close to random (within 20 % of uniform's regret)": within(
                results, "theory-radius", "uniform", at_least=0.8, at_most=1.2
            ),
        },
    }
