"""Every mask law, all main methods: where the Bernoulli theory holds and where it breaks."""

from collections.abc import Iterator

from halfseen.paper.claims import BEYOND, Claims, lower, within
from halfseen.paper.studies.synthetic import WORLD
from halfseen.paper.study import Plain, Setting, Small, standard
from halfseen.report.figures import Figure, by_setting
from halfseen.simulation.results import Results

TITLE = "Mask laws: masks that are not independent, as the theory assumes"
SEEDS = range(20)
METHODS: dict[str, Plain] = {
    **standard("tofu tofu-fh"),
    "tofu-fh-pairwise": {"method": "tofu-fh", "observe_prob": "unknown"},
    **standard("ra-tofu-fh zf-oful zf-pslb impute-mean latent-ucb"),
    "latent-ucb-no-mask": {"method": "latent-ucb", "groups": ["latent", "filled", "item"]},
    **standard("oracle-masked"),
}
_BY_VALUE = {"law": "value-dependent"}
_CHANGES: dict[str, Plain] = {
    "bernoulli": {"masks": {"law": "bernoulli"}},
    "per-feature": {"masks": {"law": "per-feature"}},
    "per-arm": {"masks": {"law": "per-arm"}},
    "blocks": {"masks": {"law": "blocks", "size": 5}},
    "value-dependent": {"masks": _BY_VALUE},
    "large-hidden": {"masks": _BY_VALUE | {"strength": -3.0}},
    "low-hidden": {"rank": 30, "masks": _BY_VALUE | {"strength": 3.0, "signed": True}},
}
SETTINGS = {
    name: Setting(world=WORLD | change, methods=METHODS, observe_probs=(0.6, 0.3))
    for name, change in _CHANGES.items()
}
SMALL = Small(observe_probs=[0.3], world={"horizon": 70})
NOTES = [
    "In `low-hidden` arms have full rank, so that no entry predicts another one, and an entry is the more likely hidden the lower it is; TOFU is given rank 30 there.",
    "Policies are given the average observation probability, or one per feature if features differ; tofu-fh-pairwise is given none and counts pairs seen together.",
]


def figures(results: Results) -> Iterator[Figure]:
    yield Figure(
        "mask_laws",
        "Final regret under every mask law, on a logarithmic axis",
        [by_setting(results, results.methods, p=p, log=True) for p in (0.6, 0.3)],
    )


def claims(results: Results) -> Claims:
    laws = ["bernoulli", "per-feature", "per-arm", "blocks", "value-dependent", "large-hidden"]
    by_size = ["value-dependent", "large-hidden"]
    return {
        BEYOND: {
            "TOFU-FH has lower regret than ZF-OFUL under every mask law, as long as arms have low rank": lower(
                results, "tofu-fh", "zf-oful", setting=laws
            ),
            "When low values of full-rank arms are hidden, missing entries predict rewards: latent UCB has lower regret with masks among its features than without": lower(
                results, "latent-ucb", "latent-ucb-no-mask", setting="low-hidden"
            ),
            "When only the size of a value decides whether it is hidden, masks say nothing about its sign: masks among the features change the regret of latent UCB by at most 10 %": within(
                results,
                "latent-ucb",
                "latent-ucb-no-mask",
                at_least=0.9,
                at_most=1.1,
                setting=by_size,
            ),
            "When masks come in blocks, or large values are seen more often, counting pairs seen together lowers the regret of TOFU-FH at p = 0.3": lower(
                results,
                "tofu-fh-pairwise",
                "tofu-fh",
                setting=["blocks", "value-dependent"],
                p=[0.3],
            ),
        }
    }
