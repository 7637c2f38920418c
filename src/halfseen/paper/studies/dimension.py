"""What replaces the number of features: regret against d, and regret without low rank."""

from collections.abc import Iterator

from halfseen.paper.claims import OURS, Claims, exponent
from halfseen.paper.study import Plain, Setting, Small, standard
from halfseen.report.figures import Figure, growth
from halfseen.simulation.results import Results

TITLE = "Dimension: the rank replaces the number of features"
SEEDS = range(100, 120)
WORLD: Plain = {"kind": "low-rank", "rank": 3, "n_arms": 8, "horizon": 400, "noise_scale": 0.05}
METHODS = standard("tofu tofu-fh zf-oful full-oful oracle-masked")
SWEEP = {f"d = {dim}": dim for dim in (15, 30, 60, 120, 240)}
HORIZONS = (500, 1000, 2000, 4000)
LOW_RANK, FULL_RANK = (
    {f"{name}, T = {horizon:,}": horizon for horizon in HORIZONS} for name in ("rank 3", "rank 30")
)


def _long(rank: int, horizon: int) -> Setting:
    return Setting(
        world=WORLD | {"dim": 30, "rank": rank, "horizon": horizon},
        methods=standard("oracle-masked zf-oful"),
        observe_probs=[0.6],
    )


SETTINGS = {
    **{
        name: Setting(world=WORLD | {"dim": dim}, methods=METHODS, observe_probs=[0.4])
        for name, dim in SWEEP.items()
    },
    **{name: _long(3, horizon) for name, horizon in LOW_RANK.items()},
    **{name: _long(30, horizon) for name, horizon in FULL_RANK.items()},
}
SMALL = Small(
    settings=["d = 15", "d = 60", *list(LOW_RANK)[:2], *list(FULL_RANK)[:2]],
    world={"horizon": 60},
)
NOTES = [
    "The paper's regret scales with the rank m where that of ambient OFUL scales with d, its bound being of order d sqrt(T). A slope of at most 1/2 is halfway between these, and is asked for at every step of d.",
    "Zero-filled OFUL does not grow with d either, nor does OFUL with nothing hidden. Arms lie in m dimensions, and filling with zeros adds to each of the others a variance of about p(1 - p)m/d, which is below the ridge penalty for these T: so few of the d directions are ever learned, and an arm's seen entries average better if there are more of them. The sweep shows that the regret of TOFU does not depend on d. It does not show that other methods must pay for d: the d of their bounds is no more visible than the constants of the paper's.",
    "Without structure (rank d = 30) the seen entries say nothing about the hidden ones. OFUL given the law of the arms still loses in every round: regret is linear. At rank 3, with the same masks, it is not. A linear slope is told from 1/2 by 3/4, halfway.",
    "The limits were chosen on other seeds.",
]


def figures(results: Results) -> Iterator[Figure]:
    yield Figure(
        "dimension",
        "Final regret against the number of features at rank 3, with exponents",
        [growth(results, list(METHODS), "dim", settings=list(SWEEP))],
    )
    yield Figure(
        "without_low_rank",
        "Final regret against the horizon at rank 3 and at full rank (30 features), with exponents",
        [
            growth(results, "oracle-masked zf-oful", settings=list(names), title=title)
            for names, title in ((LOW_RANK, "rank 3"), (FULL_RANK, "rank 30"))
        ],
    )


def claims(results: Results) -> Claims:
    grows = "grows at most like d^(1/2) at every step of d, where ambient OFUL is bounded by d"
    return {
        "sec:introduction and thm:main_regret": {
            f"Regret scales with the rank and not with d: that of TOFU {grows}": exponent(
                results, "tofu", "dim", settings=list(SWEEP), at_most=0.5
            ),
            f"Regret scales with the rank and not with d: that of TOFU-FH {grows}": exponent(
                results, "tofu-fh", "dim", settings=list(SWEEP), at_most=0.5
            ),
        },
        "sec:introduction": {
            "Without low rank sublinear regret is impossible: even OFUL given the law of full-rank arms has regret that grows faster than T^(3/4)": exponent(
                results, "oracle-masked", settings=list(FULL_RANK), at_least=0.75
            ),
            "Low rank overcomes this: with the same masks, regret at rank 3 grows no faster than T^(1/2)": exponent(
                results, "oracle-masked", settings=list(LOW_RANK), at_most=0.5
            ),
        },
        OURS: {
            "The regret of ZF-OFUL does not grow with d either: at most like d^(1/2) at every step": exponent(
                results, "zf-oful", "dim", settings=list(SWEEP), at_most=0.5
            )
        },
    }
