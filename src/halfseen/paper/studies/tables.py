"""Real tables: latent UCB without settings against the best of the usual pipelines."""

from collections.abc import Iterable, Iterator, Sequence

from halfseen.paper.claims import BEYOND, Check, Claims, no_worse
from halfseen.paper.study import Plain, Setting, Small, standard
from halfseen.report.figures import Figure, differences
from halfseen.report.numbers import Comparison, compare
from halfseen.simulation.results import Results

TITLE = "Real tables: latent UCB against the best of the usual pipelines"
SEEDS = range(30)
WORLD = {"kind": "real-table", "n_arms": 10, "horizon": 2000}


def _radii(*families: str) -> dict[str, Plain]:
    """Return methods with their usual radius, three tenths and one tenth of it."""
    return {
        f"{family}{end}": {"method": family, **scale}
        for family in families
        for end, scale in (
            ("", {}),
            ("-third", {"radius_scale": 0.3}),
            ("-tenth", {"radius_scale": 0.1}),
        )
    }


METHODS: dict[str, Plain] = {
    "latent-ucb": {},
    **_radii("zf-oful", "scaled-zero", "scaled-mean", "scaled-indicators"),
    **standard("scaled-greedy scaled-thompson boosted-trees forest row-memory"),
    "tofu-fh": {"rank": 5, "observe_prob": "counted"},
    **standard("uniform same-arm"),
}
# Where a run takes less than 10 seconds.
_WITH_SLOW = METHODS | {
    "scaled-iterative-tenth": {"method": "scaled-iterative", "radius_scale": 0.1}
}
_TABLES: dict[str, Plain] = {
    # Numeric targets
    "bone-marrow": {"table": "bone-marrow"},
    "skillcraft1": {"table": "skillcraft1", "observe_prob": 0.7},
    "diabetes": {"table": "diabetes", "observe_prob": 0.7},
    "residential-building": {"table": "residential-building", "observe_prob": 0.5},
    # Targets 0 and 1
    "hepatitis": {"table": "hepatitis"},
    "breast-cancer": {"table": "breast-cancer", "observe_prob": 0.5},
    "segment": {"table": "segment", "observe_prob": 0.7},
    "satimage": {"table": "satimage", "observe_prob": 0.3},
    # One catalogue, and clicks
    "catalogue": {
        "table": "winequality",
        "observe_prob": 0.7,
        "n_arms": 50,
        "catalogue": True,
        "noise_scale": 1.0,
    },
    "clicks": {"table": "skillcraft1", "observe_prob": 0.7, "click_rate": 0.05},
}
SETTINGS = {
    name: Setting(
        world=WORLD | table, methods=_WITH_SLOW if name in ("diabetes", "hepatitis") else METHODS
    )
    for name, table in _TABLES.items()
}
SMALL = Small(
    seeds=(0, 10),
    world={"horizon": 40},
    settings=["bone-marrow", "hepatitis", "catalogue", "clicks"],
)
NOTES = [
    "Every round offers 10 rows of a public table, drawn with replacement; the reward is the target of the chosen row. A target with classes pays 1 for the rarest class and 0 otherwise; a numeric target is standardised. Features stay in the units of the table. Hepatitis, bone-marrow and skillcraft1 have missing values; p is the probability that a recorded entry is shown.",
    "In the catalogue the same 50 rows with the same holes are offered in every round, and rewards have noise of deviation 1. With clicks a reward is 1 or 0, a random row is clicked in 5 % of all cases, and the log-odds of a click rise by 1 with each standard deviation of the target; regret counts expected clicks.",
    "For each problem the best of the other methods is picked by its mean regret on seeds 0 to 9; the comparison is on seeds 10 to 29. A method of a study is one setting: each radius counts as a method of its own.",
    "Boosted trees and forests are of scikit-learn, with holes as they are; they are fitted again when the rounds have doubled, and 5 % of the rounds are random. The ridge with a memory of rows is latent UCB of rank 0: means fill holes, and each row that comes back has an effect of its own. What latent UCB gains over it is gained by inference, not by memory.",
    "Methods called scaled impute, standardise each column by the rows seen so far, and add an intercept; they repeat this as the rounds grow by a factor of 1.5, and learn all rewards again. OFUL in the units of the table and TOFU have neither. TOFU counts how often entries are seen and has rank 5.",
]


def against_best(
    results: Results, others: Iterable[str], settings: Sequence[str] | None = None
) -> Comparison:
    """Compare latent UCB with the best other method of each problem, picked on seeds 0 to 9."""
    caption = "Latent UCB with default settings against the best other method, picked on seeds 0 to 9 and compared on the other seeds"
    where: Plain = {"settings": settings, "choose_seeds": range(10)}
    return compare(results, "best-other", caption, ["latent-ucb"], [*others], **where)


def difference_figure(name: str, best: Comparison) -> Figure:
    """Return the figure of such a comparison."""
    caption = "Latent UCB against the best other method of each problem: mean differences with 95 % intervals"
    return Figure(name, caption, [differences(best)])


def never_much_worse(results: Results, best: Comparison) -> dict[str, Check]:
    """Return the claim on latent UCB against the best other method of each problem."""
    return {
        "On no problem is the regret of latent UCB higher than that of the best other method by more than chance and more than 2 % of that method's lead over uniform play": no_worse(
            results, best, than="uniform", margin=0.02
        )
    }


def comparisons(results: Results) -> list[Comparison]:
    return [against_best(results, [key for key in METHODS if key != "latent-ucb"])]


def figures(results: Results) -> Iterator[Figure]:
    yield difference_figure("tables_differences", *comparisons(results))


def claims(results: Results) -> Claims:
    return {BEYOND: never_much_worse(results, *comparisons(results))}
