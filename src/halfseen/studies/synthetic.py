"""The main synthetic study and its counterpart with full history.

Published settings: λ = 1, δ = .05, S = 1, R = .05, no bonus, imputation ridge 1e-5.
"""

from collections.abc import Mapping
from typing import Any

from halfseen.core.rank import PracticalThreshold
from halfseen.studies.spec import Setting, Study
from halfseen.worlds.lowrank import LowRankWorld

OBSERVE_PROBS = (0.8, 0.6, 0.4, 0.3, 0.2)
SEEDS = range(20)

_ADAPTIVE = PracticalThreshold(constant=0.22, scale=1.5, cap=8)
_ONCE = {"burn_in": 30, "replay": "burn-in-once"}
_FULL = {"burn_in": 30, "replay": "full"}


def _at_every_prob(methods: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Setting]:
    return {
        f"p={p}": Setting(world=LowRankWorld(observe_prob=p), methods=methods)
        for p in OBSERVE_PROBS
    }


MAIN = Study(
    name="synthetic",
    settings=_at_every_prob(
        {
            "tofu": ("tofu", {"rank": 3, **_ONCE}),
            "ra-tofu": ("tofu", {"rank": _ADAPTIVE, **_ONCE}),
            "zf-oful": ("zero-filled", {}),
            "uniform": ("uniform", {}),
        }
    ),
    seeds=SEEDS,
)
"""The paper's main figure.

Paper: fig:synthetic_main_experiments
Paper: fig:synthetic_regret_over_time
Paper: fig:synthetic_missingness_sweep
"""

FULL_HISTORY = Study(
    name="synthetic-fh",
    settings=_at_every_prob(
        {
            "tofu-fh": ("tofu", {"rank": 3, **_FULL}),
            "ra-tofu-fh": ("tofu", {"rank": _ADAPTIVE, **_FULL}),
        }
    ),
    seeds=SEEDS,
)
"""The same with full history.

Paper: fig:app_synthetic_fh
Paper: fig:app_synthetic_fh_regret
Paper: fig:app_synthetic_fh_missingness
"""
