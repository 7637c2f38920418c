"""Epochs against estimating the subspace once (Appendix app:two_phase_comparison)."""

from collections.abc import Iterator
from functools import partial

from halfseen.paper.claims import OURS, Claims, exponent, lower
from halfseen.paper.study import Plain, Setting, Small, Tuning
from halfseen.report.figures import Figure, growth, regret_of_candidates, regret_over_rounds
from halfseen.simulation.results import Results

TITLE = "Two phases: epochs against estimating the subspace once"
SEEDS = range(10)
HORIZONS = (1000, 3162, 10000, 31623)
WORLD = {"kind": "low-rank", "dim": 100, "rank": 3, "n_arms": 8, "noise_scale": 0.05}
OTHERS: dict[str, tuple[float, Plain]] = {
    ", two arms, noise 0.5": (0.3, {"n_arms": 2, "noise_scale": 0.5}),
    ", rank 6": (0.6, {"rank": 6}),
}
METHODS: dict[str, Plain] = {
    "tofu": {"replay": "none"},
    "tofu-fh": {},
    "two-phase": {"burn_in_policy": "uniform"},
    "two-phase-best": {"method": "two-phase", "burn_in_policy": "uniform"},
    "two-phase-zf": {"method": "two-phase", "burn_in_policy": "zero-filled"},
    "two-phase-zf-best": {"method": "two-phase", "burn_in_policy": "zero-filled"},
}
EVERYWHERE = ["tofu", "tofu-fh", "two-phase", "two-phase-best"]
_SEARCH = {"split": [0.3, 0.4, 0.5, 0.6, 0.6667, 0.75]}
TUNING = Tuning(
    seeds=range(10000, 10005), searches={"two-phase-best": _SEARCH, "two-phase-zf-best": _SEARCH}
)


def _setting(horizon: int, p: float = 0.3, change: Plain | None = None) -> Setting:
    """Return a world at a horizon; those that differ in more have the methods of all worlds."""
    return Setting(
        world=WORLD | {"horizon": horizon} | (change or {}),
        methods=METHODS,
        observe_probs=[p],
        tuning=TUNING,
        reported=EVERYWHERE if change else None,
    )


WORLDS = [[f"T = {horizon:,}{name}" for horizon in HORIZONS] for name in ("", *OTHERS)]
SETTINGS = {
    **{f"T = {horizon:,}": _setting(horizon) for horizon in HORIZONS},
    **{
        f"T = {horizon:,}{name}": _setting(horizon, *other)
        for name, other in OTHERS.items()
        for horizon in HORIZONS
    },
}
SMALL = Small(settings=["T = 1,000", "T = 3,162"])
NOTES = [
    "The two-phase strategy explores for tau rounds, uniformly or with zero-filled OFUL, then freezes the subspace and learns rewards afresh. The method with epochs is TOFU without replay: 30 rounds of zero-filled OFUL, then epochs that double; lambda = 1 and no bonus. It forgets all rewards at the start of each epoch and pays for learning them again, which a single estimate, or full history, does not.",
    "There are 100 features. With 30 at p = .3, 1.7 % of slates have an arm that shows fewer entries than the rank, which nobody can fill in: over many rounds even the regret of OFUL in the true subspace is linear, and no rate can be read off.",
    "T^(2/3) is the rate at which the bound's two terms, tau and T/sqrt(tau), balance. A strategy that explores uniformly for T^(2/3) rounds has at least that regret. The best tau does not: it is chosen for each T on other seeds, among six powers of T, once for each kind of exploration.",
    "Growth exponents are slopes of log mean regret against log T, and are judged as a whole and for each step of T: a power law has the same slope everywhere. Claims about them are about three worlds; intervals come from resampling worlds, and seeds in each.",
]


def figures(results: Results) -> Iterator[Figure]:
    yield Figure(
        "two_phase_growth",
        "Final regret against the horizon with exponents and their 95 % intervals, regret over time, and final regret against the length of the first phase",
        [
            growth(results, results.methods, slopes=[1 / 2, 2 / 3], settings=WORLDS[0]),
            regret_over_rounds(results, results.methods, setting=WORLDS[0][-1], log=True),
            *(
                regret_of_candidates(
                    results, "two-phase-best two-phase-zf-best", "split", setting=name, title=name
                )
                for name in (WORLDS[0][0], WORLDS[0][-1])
            ),
        ],
    )


def claims(results: Results) -> Claims:
    grows = partial(exponent, results, worlds=WORLDS)
    return {
        "app:two_phase_comparison": {
            "With the first phase that balances the bound, regret grows like T^(2/3), as the bound does (up to .1)": grows(
                "two-phase", at_least=0.567, at_most=0.767
            ),
            "No first phase does better: even with the best uniform first phase, regret grows at least like T^(2/3) (up to .1)": grows(
                "two-phase-best", at_least=0.567
            ),
            "Regret with epochs grows no faster than T^(1/2)": grows("tofu", at_most=0.5),
        },
        OURS: {
            "Epochs have lower regret than a single estimate after T^(2/3) rounds of uniform exploration, at every horizon": lower(
                results, "tofu", "two-phase"
            ),
            "Epochs also have lower regret than a single estimate after the best number of rounds of uniform exploration": lower(
                results, "tofu", "two-phase-best"
            ),
            "Epochs also have lower regret than a single estimate after the best number of rounds of ZF-OFUL, which is the burn-in policy of the epochs": lower(
                results, "tofu", "two-phase-zf-best"
            ),
            "Epochs with full history have lower regret than any of these single estimates": lower(
                results, "tofu-fh", "two-phase two-phase-best two-phase-zf two-phase-zf-best"
            ),
            "With the best uniform first phase, regret grows like T^(1/2) (up to .1)": grows(
                "two-phase-best", at_least=0.4, at_most=0.6
            ),
            "Regret with epochs and full history grows no faster than T^(1/2)": grows(
                "tofu-fh", at_most=0.5
            ),
        },
    }
