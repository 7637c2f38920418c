"""The main study with all rewards replayed at every epoch.

Paper: fig:app_synthetic_fh
Paper: fig:app_synthetic_fh_regret
Paper: fig:app_synthetic_fh_missingness
"""

from collections.abc import Iterator

from halfseen.paper.claims import OURS, Claims, lower, rises, within
from halfseen.paper.studies import synthetic
from halfseen.paper.study import Setting, main_figure, standard
from halfseen.report.figures import Figure
from halfseen.simulation.results import Results

TITLE = "Full history: all earlier rewards replayed at every epoch"
SEEDS = range(20)
METHODS = standard("tofu-fh ra-tofu-fh tofu ra-tofu zf-oful zf-pslb zf-pslb-adaptive")
SETTINGS = {
    "default": Setting(world=synthetic.WORLD, methods=METHODS, observe_probs=synthetic.PROBS)
}
SMALL = synthetic.SMALL
NOTES = [
    "No published script makes this figure; it is the main study with the replay option of TOFU changed, as in the reference figures."
]


def figures(results: Results) -> Iterator[Figure]:
    shown = "tofu-fh ra-tofu-fh zf-oful zf-pslb zf-pslb-adaptive"
    caption = "Full history: regret over time, and final regret against the share of entries seen"
    yield main_figure(results, "fig:app_synthetic_fh", caption, shown, METHODS)


def claims(results: Results) -> Claims:
    return {
        "fig:app_synthetic_fh and app:experimental_details": {
            "Replaying past rewards lowers regret": lower(results, "tofu-fh", "tofu"),
            "Replaying past rewards also lowers regret when the rank is chosen": lower(
                results, "ra-tofu-fh", "ra-tofu"
            ),
            "The trend is the same with full history: regret rises as fewer entries are seen": rises(
                results, "tofu-fh ra-tofu-fh"
            ),
        },
        OURS: {
            "TOFU-FH has lower regret than ZF-OFUL even when most entries are seen": lower(
                results, "tofu-fh", "zf-oful"
            ),
            "With the threshold of this study, which shrinks, RA-TOFU-FH stays close to TOFU-FH under moderate missingness (within 5 %)": within(
                results, "ra-tofu-fh", "tofu-fh", at_least=0.95, at_most=1.05, p=synthetic.PROBS[:4]
            ),
        },
    }
