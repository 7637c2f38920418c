"""The digits in 160 dimensions: scenarios that the published code defines and the paper does not show."""

from collections.abc import Iterator

from halfseen.paper.claims import BEYOND, Claims, lower
from halfseen.paper.studies import digits
from halfseen.paper.study import Setting, Small, Tuning, threshold
from halfseen.report.figures import Figure, regret_over_p
from halfseen.simulation.results import Results

TITLE = "Optical digits in 160 dimensions, of rank 3 and 5"
SEEDS = range(10)
TUNING = Tuning(
    seeds=range(10000, 10003),
    searches={"ra-tofu": digits.MULTIPLIERS, "zf-oful": digits.OFUL},
    shared={"ra-tofu-fh": "ra-tofu", "oracle-masked": "zf-oful"},
)


def _setting(rank: int, horizon: int, burn_in: int, cap: int) -> Setting:
    fixed = {"burn_in": burn_in}
    chosen = fixed | {"rank": threshold(0.12, cap)}
    return Setting(
        world={"kind": "digits", "dim": 160, "rank": rank, "horizon": horizon},
        methods={
            "tofu": fixed,
            "ra-tofu": chosen,
            "tofu-fh": fixed,
            "ra-tofu-fh": chosen,
            "zf-oful": {},
            "zf-pslb": fixed,
            "oracle-masked": {},
        },
        observe_probs=(0.8, 0.4, 0.2),
        tuning=TUNING,
    )


SETTINGS = {"rank-3": _setting(3, 600, 40, 10), "rank-5": _setting(5, 700, 50, 12)}
SMALL = Small(observe_probs=[0.4], world={"horizon": 60})
NOTES = [
    "Nothing is published for these two scenarios: only their sizes come from the published code.",
    "Tuned as in the study digits, on seeds 10000 to 10002, separately for each setting and p.",
]


def figures(results: Results) -> Iterator[Figure]:
    """Return the figures."""
    yield Figure(
        "digits_160",
        "Twice the dimension, and a higher rank",
        [regret_over_p(results, results.methods, setting=name) for name in SETTINGS],
    )


def claims(results: Results) -> Claims:
    """Return what is claimed."""
    return {
        BEYOND: {
            "TOFU with full history pays less than tuned zero-filled OFUL also in 160 dimensions, at ranks 3 and 5": lower(
                results, "tofu-fh", "zf-oful"
            ),
        }
    }
