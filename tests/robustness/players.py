"""Policies with settings drawn at random from all that is allowed."""

import numpy as np

from halfseen import (
    AmbientOful,
    ConstantThreshold,
    Greedy,
    Imputed,
    LatentUcb,
    LinearThompson,
    Oracle,
    PaperThreshold,
    PracticalThreshold,
    SameArm,
    Standardized,
    TofuPov,
    TwoPhase,
    Uniform,
)
from halfseen.paper import Pslb


class Settings(dict):
    """Settings of which every one is left at its default more often than not."""

    def __init__(self, random, **given):
        super().__init__(**given)
        self.random = random

    def maybe(self, name, *values, share=0.35):
        if self.random.random() < share:
            self[name] = values[int(self.random.integers(len(values)))]
        return self


def _scales(settings):
    settings.maybe("ridge", 1e-50, 1e-8, 1e-3, 10.0, 1e100)
    settings.maybe("noise_scale", 0.0, 1e-3, 1.0, 1e30)
    settings.maybe("theta_bound", 0.0, 1e-3, 1.0, 1e30)
    return settings


def _optimism(settings):
    _scales(settings)
    settings.maybe("failure_prob", 1e-100, 1e-9, 0.999)
    settings.maybe("radius_scale", 0.0, 0.1, 1e30)
    return settings


def _rule(random, dim):
    rank = int(random.integers(1, dim + 1))
    rules = (
        min(rank, 2), rank, PracticalThreshold(), PracticalThreshold(floor=0, cap=dim),
        PaperThreshold(), ConstantThreshold(value=0.1), ConstantThreshold(value=1e-300, floor=0),
    )  # fmt: skip
    return rules[int(random.integers(len(rules)))]


def _tofu(random, dim):
    settings = Settings(random, dim=dim, burn_in=int(random.integers(1, 8)))
    settings["rank"] = _rule(random, dim)
    shares = (0.5, 1.0, 1e-6, None, "counted", random.uniform(0.1, 1.0, dim))
    settings["observe_prob"] = shares[int(random.integers(len(shares)))]
    _optimism(settings)
    settings.maybe("horizon", 10, 60, 10**9)
    settings.maybe("burn_in_policy", "zero-filled", "uniform")
    settings.maybe("impute_ridge", 0.0, 1e-10, 1.0, 1e100)
    settings.maybe("replay", "none", "burn-in-once", "burn-in", "full")
    settings.maybe("growth", 1.05, 1.3, 1e6)
    if random.random() < 0.2:
        _theory(settings)
    return settings


def _theory(settings):
    settings.maybe("arm_bound", 1e-100, 1e100, 3.0, share=1.0)
    settings.maybe("top_eigenvalue", 1e-200, 1e200, 9.0, share=1.0)
    settings["last_eigenvalue"] = min(0.5, settings["top_eigenvalue"])
    settings.maybe("bonus_scale", 1e-3, 1.0, 1e30)


def tofu(random, dim):
    return TofuPov(**_tofu(random, dim))


def two_phase(random, dim):
    settings = _tofu(random, dim)
    kept = {
        "dim", "rank", "observe_prob", "ridge", "noise_scale", "theta_bound", "failure_prob",
        "radius_scale", "horizon", "impute_ridge", "arm_bound", "top_eigenvalue",
        "last_eigenvalue", "bonus_scale",
    }  # fmt: skip
    settings = Settings(random, **{name: settings[name] for name in kept & settings.keys()})
    settings.maybe("replay", "none", "burn-in").maybe("burn_in_policy", "uniform", "zero-filled")
    return TwoPhase(split=int(random.integers(1, 8)), **settings)


def latent_ucb(random, dim):
    settings = Settings(random)
    settings.maybe("dim", dim).maybe("rank", 0, min(2, dim), dim, share=0.2)
    settings.maybe("width_scale", 0.0, 1.0, 1e30).maybe("growth", 1.05, 2.0)
    settings.maybe("through_origin", True).maybe("exploration", "thompson", "greedy")
    settings.maybe("groups", ["latent"], ["filled", "mask"], ["item"])
    settings.maybe("memory_bytes", 1, 4000)
    settings.maybe("half_life", 1.0, 20.0, 1e15)
    return LatentUcb(**settings)


def pslb(random, dim):
    settings = Settings(random, dim=dim, rank=_rule(random, dim))
    _optimism(settings)
    settings.maybe("burn_in", 0, 1, 5, share=0.8)
    settings.maybe("n_samples", 0, 20)
    return Pslb(**settings)


def thompson(random, dim):
    settings = Settings(random, dim=dim).maybe("ridge", 1e-50, 1e-8, 10.0, 1e100)
    settings.maybe("noise_scale", 0.0, 1e-3, 1e30).maybe("scale", 0.0, 1e30)
    return LinearThompson(**settings)


def oracle(random, dim):
    rank = int(random.integers(1, dim + 1))
    basis = np.linalg.qr(random.normal(size=(dim, dim)))[0][:, :rank]
    settings = _optimism(Settings(random, basis=basis))
    settings.maybe("exploration", "thompson", "greedy")
    if random.random() < 0.3:
        settings["latent_variances"] = float(random.choice([1e-100, 1.0, 1e100]))
        settings["entry_noise"] = min(1e100, settings["latent_variances"])
    return Oracle(**settings)


def imputed(random, dim):
    settings = _optimism(Settings(random, dim=dim, first_fit=int(random.integers(1, 6))))
    settings.maybe("imputer", "mean", "mean", "mean", "iterative", share=0.7)
    settings.maybe("exploration", "thompson", "greedy").maybe("max_rows", 1, 10, 50)
    settings.maybe("growth", 2.0, 3.0)
    return Imputed(**settings)


def standardized(random, dim):
    settings = _optimism(Settings(random, dim=dim, first_fit=int(random.integers(1, 6))))
    settings.maybe("imputer", "zero", "mean", "mean", "iterative", share=0.7)
    settings.maybe("exploration", "thompson", "greedy").maybe("max_rows", 1, 10, 50)
    settings.maybe("indicators", True)
    return Standardized(**settings)


PLAYERS = {
    "TofuPov": tofu,
    "LatentUcb": latent_ucb,
    "TwoPhase": two_phase,
    "Pslb": pslb,
    "AmbientOful": lambda random, dim: AmbientOful(**_optimism(Settings(random, dim=dim))),
    "Greedy": lambda random, dim: Greedy(
        **Settings(random, dim=dim).maybe("ridge", 1e-50, 1e-8, 1e100)
    ),
    "LinearThompson": thompson,
    "Uniform": lambda random, dim: Uniform(dim=dim),
    "Oracle": oracle,
    "Imputed": imputed,
    "Standardized": standardized,
    "SameArm": lambda random, dim: SameArm(dim=dim),
}
"""How a policy with random settings is made, by the name of its class."""
