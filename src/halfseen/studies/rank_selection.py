"""Rank chosen, known, too small and too large, in three worlds.

The thresholds are constants, set by hand per world in the published study.
"""

from halfseen.core.rank import ConstantThreshold
from halfseen.studies.spec import Setting, Study
from halfseen.worlds.lowrank import LowRankWorld


def _setting(world: LowRankWorld, *, burn_in: int, max_rank: int, threshold: float) -> Setting:
    ranks = {
        "under": world.rank - 1,
        "true": world.rank,
        "over": min(max_rank, 2 * world.rank),
        "adaptive": ConstantThreshold(value=threshold, cap=max_rank),
    }
    replays = {"tofu": "burn-in-once", "tofu-fh": "full"}
    return Setting(
        world=world,
        methods={
            f"{method}-{name}": ("tofu", {"rank": rank, "burn_in": burn_in, "replay": replay})
            for method, replay in replays.items()
            for name, rank in ranks.items()
        }
        | {"zf-oful": ("zero-filled", {})},
    )


RANK_SELECTION = Study(
    name="rank-selection",
    settings={
        "d=12, p=0.8": _setting(
            LowRankWorld(dim=12, horizon=300, observe_prob=0.8),
            burn_in=30,
            max_rank=6,
            threshold=0.08,
        ),
        "d=30, p=0.3": _setting(
            LowRankWorld(dim=30, horizon=350, observe_prob=0.3),
            burn_in=30,
            max_rank=8,
            threshold=0.12,
        ),
        "d=50, p=0.2": _setting(
            LowRankWorld(dim=50, rank=5, n_arms=10, horizon=400, observe_prob=0.2),
            burn_in=50,
            max_rank=10,
            threshold=0.16,
        ),
    },
    seeds=range(10),
)
"""Rank selection and misspecification.

Paper: fig:app_adaptive_rank_summary
Paper: fig:app_rank_misspecification
Paper: fig:app_rank_recovery
Paper: fig:app_rank_and_warm_start
"""
