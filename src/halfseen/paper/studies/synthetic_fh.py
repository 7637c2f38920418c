"""The main study with all rewards replayed at every epoch.

Paper: fig:app_synthetic_fh
Paper: fig:app_synthetic_fh_regret
Paper: fig:app_synthetic_fh_missingness
"""

from collections.abc import Iterator

from halfseen.paper.claims import Claims, lower, rises
from halfseen.paper.study import Setting, Small, standard
from halfseen.report.figures import Figure, regret_over_p, regret_over_rounds
from halfseen.simulation.results import Results

TITLE = "Full history: all earlier rewards replayed at every epoch"
SEEDS = range(20)
PROBS = (0.8, 0.6, 0.4, 0.3, 0.2)
WORLD = {"kind": "low-rank", "dim": 30, "rank": 3, "n_arms": 8, "horizon": 400, "noise_scale": 0.05}
METHODS = standard(
    "tofu-fh ra-tofu-fh tofu ra-tofu zf-oful zf-pslb-sampled zf-pslb-adaptive-sampled"
)
SETTINGS = {"default": Setting(world=WORLD, methods=METHODS, observe_probs=PROBS)}
SMALL = Small(observe_probs=(0.8, 0.3), world={"horizon": 70})
NOTES = [
    "No published script makes this figure; it is the main study with the replay option of TOFU changed, as in the reference figures."
]


def figures(results: Results) -> Iterator[Figure]:
    """Return the figures."""
    shown = "tofu-fh ra-tofu-fh zf-oful zf-pslb-sampled zf-pslb-adaptive-sampled"
    yield Figure(
        "fig:app_synthetic_fh",
        "Full history: regret over time, and final regret against the share of entries seen",
        [*(regret_over_rounds(results, shown, p=p) for p in PROBS), regret_over_p(results, shown)],
        columns=3,
    )


def claims(results: Results) -> Claims:
    """Return what is claimed."""
    return {
        "Replaying past rewards lowers regret relative to the restart version": lower(
            results, "tofu-fh", "tofu"
        ),
        "So it does with a chosen rank: RA-TOFU-FH pays less than RA-TOFU": lower(
            results, "ra-tofu-fh", "ra-tofu"
        ),
        "Full history beats zero-filled OFUL at every observation probability": lower(
            results, "tofu-fh", "zf-oful"
        ),
        "The missingness trend is the same: regret rises as fewer entries are seen": rises(
            results, "tofu-fh"
        ),
        "So does that of RA-TOFU-FH": rises(results, "ra-tofu-fh"),
    }
