"""
Sensors that fail
=================

A waterworks pumps from one of eight wells, described by twenty sensors, many of which are broken.
How much do broken sensors cost, and which one should be repaired first?
"""

# %%
# Three hidden factors (level, temperature, turbidity) move all sensors of a well. A sensor breaks
# at random and is repaired after two days on average.

import os
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from halfseen import AmbientOful, LatentUcb, Policy, Slate

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
N_WELLS, N_SENSORS, HOURS = 8, 20, 150 if SMALL else 600
SEEDS = range(2 if SMALL else 12)


def play(make: Callable[[], Policy], broken_share: float, seed: int) -> tuple[Policy, Any, Slate]:
    """Let a fresh policy run the works; return it, its regret over time, and the last wells."""
    random = np.random.default_rng(seed)
    sensitivity = random.normal(size=(3, N_SENSORS))
    policy, regret = make(), []
    works = random.random((N_WELLS, N_SENSORS)) > broken_share
    for _ in range(HOURS):
        state = random.normal(size=(N_WELLS, 3))
        readings = state @ sensitivity + random.normal(size=(N_WELLS, N_SENSORS))
        changed = random.random(works.shape) < 1 / 48
        works = np.where(changed, random.random(works.shape) > broken_share, works)
        quality = state @ [1.0, -0.5, -0.8]
        wells = Slate(readings, works)  # hidden where a sensor is broken
        decision = policy.choose(wells)
        policy.learn(decision, quality[decision.arm] + 0.3 * random.normal())
        regret.append(quality.max() - quality[decision.arm])
    return policy, np.cumsum(regret), wells


# %%
# `LatentUcb` infers what broken sensors would show; the common alternative is to set them to zero.
# Bands are two standard errors over the seeds.

policies = {"zeros filled in": lambda: AmbientOful(dim=N_SENSORS), "LatentUcb": LatentUcb}
final = {}
_, panels = plt.subplots(1, 2, sharey=True, layout="constrained")
for axes, share in zip(panels, (0.4, 0.8), strict=True):
    for name, make in policies.items():
        runs = np.array([play(make, share, seed)[1] for seed in SEEDS])
        mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        axes.plot(mean, label=name)
        axes.fill_between(range(HOURS), mean - 2 * error, mean + 2 * error, alpha=0.25)
        final[name, share] = mean[-1]
    axes.set(xlabel="hour", title=f"{share:.0%} broken")
panels[0].set_ylabel("quality lost, cumulative")
panels[0].legend()
plt.show()

# %%
# Which sensor is worth repairing? `value_of_seeing` estimates how much the quality of the chosen
# well would rise if that sensor worked at all wells.

policy, _, wells = play(LatentUcb, 0.8, seed=0)
gains = policy.value_of_seeing(wells).all_arms
best = int(gains.argmax())
print(f"sensor {best}: expected gain {gains[best]:.3f}, the median sensor {np.median(gains):.3f}")
