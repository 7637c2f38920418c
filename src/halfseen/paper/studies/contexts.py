"""Contexts: latent UCB without settings against one regression per arm, and the price of a useless context."""

from collections.abc import Iterator

from halfseen.paper.claims import BEYOND, Claims, within
from halfseen.paper.studies.tables import against_best, difference_figure, never_much_worse
from halfseen.paper.study import Plain, Setting, Small
from halfseen.report.figures import Figure
from halfseen.report.numbers import Comparison
from halfseen.simulation.results import Results

TITLE = "Contexts: latent UCB against one regression per arm"
SEEDS = range(20)
OTHERS: dict[str, Plain] = {
    "per-arm": {},
    "per-arm-third": {"method": "per-arm", "radius": 0.3},
    "per-arm-tenth": {"method": "per-arm", "radius": 0.1},
    "per-arm-greedy": {},
    "per-arm-shrunk": {"method": "per-arm", "ridge": 20.0},
    "per-arm-greedy-shrunk": {"method": "per-arm-greedy", "ridge": 20.0},
    "per-arm-thompson": {},
    "boosted-trees": {},
    "forest": {},
}
METHODS: dict[str, Plain] = {"latent-ucb": {}, **OTHERS, "uniform": {}}
_WITH_FEATURES = METHODS | {"scaled-mean-tenth": {"method": "scaled-mean", "radius_scale": 0.1}}
_TABLES: dict[str, Plain] = {
    "wine": {"observe_prob": 0.7},
    "breast-cancer": {"observe_prob": 0.5},
    "digits": {"observe_prob": 0.7},
    "hepatitis": {},
    "bone-marrow": {},
    "skillcraft1": {"observe_prob": 0.7},
    "segment": {"observe_prob": 0.7},
    "satimage": {"observe_prob": 0.3},
}
PROBLEMS = {
    **{
        name: Setting(
            world={"kind": "labels", "horizon": 1000, "table": name, **changes}, methods=METHODS
        )
        for name, changes in _TABLES.items()
    },
    "bilinear": Setting(world={"kind": "bilinear"}, methods=_WITH_FEATURES),
    "bilinear-catalogue": Setting(
        world={"kind": "bilinear", "n_items": 30}, methods=_WITH_FEATURES
    ),
    "disjoint-arms": Setting(world={"kind": "disjoint-arms"}, methods=METHODS),
}
SETTINGS = PROBLEMS | {
    "irrelevant": Setting(
        world={"kind": "low-rank", "context_dim": 10},
        methods={
            "latent-ucb": {},
            "uniform": {},
            "latent-ucb-no-context": {
                "method": "latent-ucb",
                "groups": ["latent", "filled", "mask", "item"],
            },
        },
        seeds=range(100),
    )
}
SMALL = Small(
    seeds=(0, 10),
    world={"horizon": 30},
    settings=["wine", "bilinear", "disjoint-arms", "irrelevant"],
)
NOTES = [
    "The first eight problems show a row of a public table as context in every round, drawn with replacement; its labels are the arms, and the right one pays 1. Arms are names, without features. Hepatitis, bone-marrow and skillcraft1 have missing values; p is the probability that a recorded entry is shown. A numeric target has three labels: low, middle, high.",
    "Bilinear: options and contexts have rank 2 in 15 and 10 dimensions, and the reward is bilinear in their latents; in the catalogue, 8 of the same 30 options are offered in every round. Disjoint arms: five arms without features have parameters of their own, contexts have rank 3 in 15 dimensions. Half of all entries are hidden, and the noise is 0.3.",
    "A regression per arm is disjoint LinUCB: mean-filled, standardised columns with indicators and an intercept, fitted again as the rounds grow by a factor of 1.25. The methods called scaled do not use the context.",
    "Thompson per arm draws the parameters of each regression from their posterior, with three tenths as the deviation of the noise. Boosted trees and forests are of scikit-learn, one per arm, with holes as they are; they are fitted again when the rounds have doubled, and 5 % of the rounds are random.",
    "For each problem the best of the other methods is picked by its mean regret on seeds 0 to 9; the comparison is on seeds 10 to 19. Each radius and each penalty counts as a method of its own: the penalty is 1, or 20, which was the better one on other seeds.",
]


def comparisons(results: Results) -> list[Comparison]:
    others = [*OTHERS, "scaled-mean-tenth", "uniform"]
    return [against_best(results, others, list(PROBLEMS))]


def figures(results: Results) -> Iterator[Figure]:
    yield difference_figure("contexts_differences", *comparisons(results))


def claims(results: Results) -> Claims:
    useless = within(
        results, "latent-ucb", "latent-ucb-no-context", at_most=1.1, setting="irrelevant"
    )
    return {
        BEYOND: {
            **never_much_worse(results, *comparisons(results)),
            "A context that does not matter costs latent UCB at most 10 % more regret": useless,
        }
    }
