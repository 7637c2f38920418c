"""What each way of reusing earlier rewards is worth."""

from halfseen.studies.spec import Setting, Study
from halfseen.worlds.lowrank import LowRankWorld

_REPLAYS = ("none", "burn-in-once", "burn-in", "full")

WARM_START = Study(
    name="warm-start",
    settings={
        f"p={p}": Setting(
            world=LowRankWorld(dim=12, horizon=300, observe_prob=p),
            methods={
                f"replay-{replay}": (
                    "tofu",
                    {"rank": 3, "burn_in": 30, "impute_ridge": 1e-6, "replay": replay},
                )
                for replay in _REPLAYS
            }
            | {"zf-oful": ("zero-filled", {})},
        )
        for p in (1.0, 0.8, 0.6, 0.4)
    },
    seeds=range(20),
)
"""All ways of replay.

Paper: fig:app_warm_start
Paper: fig:app_rank_and_warm_start
"""
