"""Every mask law, all main methods: where the Bernoulli theory holds and where it breaks."""

from collections.abc import Iterator

from halfseen.paper.claims import Claims, lower, within
from halfseen.paper.study import Plain, Setting, Small, standard
from halfseen.report.figures import Figure, bars
from halfseen.simulation.results import Results

TITLE = "Mask laws: masks that are not independent, as the theory assumes"
SEEDS = range(20)
WORLD = {"kind": "low-rank", "dim": 30, "rank": 3, "n_arms": 8, "horizon": 400, "noise_scale": 0.05}
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
    """Return the figures."""
    yield Figure(
        "mask_laws",
        "Final regret under every mask law",
        [bars(results, results.methods, p=0.6), bars(results, results.methods, p=0.3)],
    )


def claims(results: Results) -> Claims:
    """Return what is claimed."""
    return {
        "Under independent masks TOFU with full history beats zero-filled OFUL": lower(
            results, "tofu-fh", "zf-oful", setting="bernoulli"
        ),
        "With one probability per feature it still beats it": lower(
            results, "tofu-fh", "zf-oful", setting="per-feature"
        ),
        "With one probability per arm it still beats it, though it is given only the average": lower(
            results, "tofu-fh", "zf-oful", setting="per-arm"
        ),
        "With blocks missing together it still beats it": lower(
            results, "tofu-fh", "zf-oful", setting="blocks"
        ),
        "With masks that show large values more often it still beats it": lower(
            results, "tofu-fh", "zf-oful", setting="value-dependent"
        ),
        "With masks that hide large values it still beats it": lower(
            results, "tofu-fh", "zf-oful", setting="large-hidden"
        ),
        "Where low values of full-rank arms are hidden, holes predict rewards: latent UCB pays less with masks among its features than without": lower(
            results, "latent-ucb", "latent-ucb-no-mask", setting="low-hidden"
        ),
        "Where only the size of a value decides, holes say nothing about its sign, and masks among the features change the regret by at most 10 %": within(
            results,
            "latent-ucb",
            relative_to="latent-ucb-no-mask",
            at_least=0.9,
            at_most=1.1,
            setting=["value-dependent", "large-hidden"],
        ),
        "If masks are not independent, counting pairs seen together helps: blocks at p = 0.3": lower(
            results, "tofu-fh-pairwise", "tofu-fh", setting="blocks", p=[0.3]
        ),
        "It also helps if large values are seen more often, at p = 0.3": lower(
            results, "tofu-fh-pairwise", "tofu-fh", setting="value-dependent", p=[0.3]
        ),
    }
