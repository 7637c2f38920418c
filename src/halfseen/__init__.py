"""Linear bandits for options you only half see.

The public names, each imported when it is first used: `import halfseen` itself costs nothing.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "ArchiveError": "errors",
    "HalfseenError": "errors",
    "HorizonReachedError": "errors",
    "InvalidInputError": "errors",
    "InvalidRewardError": "errors",
    "InvalidSettingError": "errors",
    "InvalidSlateError": "errors",
    "Unidentifiable": "errors",
    "UnknownDecisionError": "errors",
    "Decision": "values",
    "Slate": "values",
    "ConstantThreshold": "core.rank",
    "FixedRank": "core.rank",
    "PaperThreshold": "core.rank",
    "PracticalThreshold": "core.rank",
    "HeldOutRank": "core.held_out",
    "Replay": "core.replay",
    "AmbientOful": "policies.ambient",
    "Greedy": "policies.greedy",
    "Imputed": "policies.imputed",
    "LatentUcb": "policies.latent_ucb",
    "Oracle": "policies.oracle",
    "Pslb": "policies.pslb",
    "LinearThompson": "policies.thompson",
    "TwoPhase": "policies.two_phase",
    "Policy": "policies.base",
    "load": "policies.registry",
    "TofuPov": "policies.tofu",
    "Uniform": "policies.uniform",
    "DigitsWorld": "worlds.digits",
    "HardInstanceWorld": "worlds.hard_instance",
    "LowRankWorld": "worlds.lowrank",
    "TableWorld": "worlds.table",
    "ProductContextWorld": "worlds.product_context",
    "play": "simulation.runner",
    "simulate": "simulation.simulate",
    "tune": "simulation.tune",
}

__all__ = [
    "AmbientOful",
    "ArchiveError",
    "ConstantThreshold",
    "Decision",
    "DigitsWorld",
    "FixedRank",
    "Greedy",
    "HalfseenError",
    "HardInstanceWorld",
    "HeldOutRank",
    "HorizonReachedError",
    "Imputed",
    "InvalidInputError",
    "InvalidRewardError",
    "InvalidSettingError",
    "InvalidSlateError",
    "LatentUcb",
    "LinearThompson",
    "LowRankWorld",
    "Oracle",
    "PaperThreshold",
    "Policy",
    "PracticalThreshold",
    "ProductContextWorld",
    "Pslb",
    "Replay",
    "Slate",
    "TableWorld",
    "TofuPov",
    "TwoPhase",
    "Unidentifiable",
    "Uniform",
    "UnknownDecisionError",
    "load",
    "play",
    "simulate",
    "tune",
]

if TYPE_CHECKING:
    from halfseen.core.held_out import HeldOutRank
    from halfseen.core.rank import (
        ConstantThreshold,
        FixedRank,
        PaperThreshold,
        PracticalThreshold,
    )
    from halfseen.core.replay import Replay
    from halfseen.errors import (
        ArchiveError,
        HalfseenError,
        HorizonReachedError,
        InvalidInputError,
        InvalidRewardError,
        InvalidSettingError,
        InvalidSlateError,
        Unidentifiable,
        UnknownDecisionError,
    )
    from halfseen.policies.ambient import AmbientOful
    from halfseen.policies.base import Policy
    from halfseen.policies.greedy import Greedy
    from halfseen.policies.imputed import Imputed
    from halfseen.policies.latent_ucb import LatentUcb
    from halfseen.policies.oracle import Oracle
    from halfseen.policies.pslb import Pslb
    from halfseen.policies.registry import load
    from halfseen.policies.thompson import LinearThompson
    from halfseen.policies.tofu import TofuPov
    from halfseen.policies.two_phase import TwoPhase
    from halfseen.policies.uniform import Uniform
    from halfseen.simulation.runner import play
    from halfseen.simulation.simulate import simulate
    from halfseen.simulation.tune import tune
    from halfseen.values import Decision, Slate
    from halfseen.worlds.digits import DigitsWorld
    from halfseen.worlds.hard_instance import HardInstanceWorld
    from halfseen.worlds.lowrank import LowRankWorld
    from halfseen.worlds.product_context import ProductContextWorld
    from halfseen.worlds.table import TableWorld


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        value = getattr(import_module(f"halfseen.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'halfseen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
