"""
What to measure
===============

Before each decision you may measure one more column. An agent that asks for the most valuable one
loses much less than one that measures a column at random.
"""

# %%
# Each round offers six options with twelve columns, of which 80 % are missing. Three factors
# explain all columns, so every measurement also says something about the others.

import os

import matplotlib.pyplot as plt
import numpy as np

from halfseen import LatentUcb, Slate

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
ROUNDS, SEEDS = (150, range(3)) if SMALL else (500, range(12))
N_OPTIONS, N_COLUMNS = 6, 12


def column_to_measure(how: str, policy: LatentUcb, seen: Slate, random: np.random.Generator) -> int:
    """Return the column to measure, for all options."""
    drawn = int(random.integers(N_COLUMNS))
    return int(policy.value_of_seeing(seen).all_arms.argmax()) if how == "most valuable" else drawn


def regret(how: str, seed: int) -> np.ndarray:
    """Return the cumulative regret of an agent that measures in this way."""
    random, drawing = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    loadings, taste = random.normal(size=(3, N_COLUMNS)), random.normal(size=3)
    taste /= np.linalg.norm(taste)
    policy, missed = LatentUcb(), []
    for _ in range(ROUNDS):
        latent = random.normal(size=(N_OPTIONS, 3))
        table = latent @ loadings + 0.2 * random.normal(size=(N_OPTIONS, N_COLUMNS))
        mask = random.random(table.shape) < 0.2
        if how != "nothing":
            mask[:, column_to_measure(how, policy, Slate(table, mask), drawing)] = True
        decision = policy.choose(Slate(table, mask))
        pays = latent @ taste
        policy.learn(decision, pays[decision.arm] + 0.2 * random.normal())
        missed.append(pays.max() - pays[decision.arm])
    return np.cumsum(missed)


# %%
# `value_of_seeing` returns the expected gain of each column, here in `all_arms`: measured for all
# options. With an `Agent`, `agent.explain(options, costs=…).best_measurement` names the column, and
# subtracts its cost. Bands are two standard errors over the seeds.

final = {}
_, axes = plt.subplots(layout="constrained")
for how in ("nothing", "at random", "most valuable"):
    runs = np.array([regret(how, seed) for seed in SEEDS])
    mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    axes.plot(mean, label=how)
    axes.fill_between(range(ROUNDS), mean - 2 * error, mean + 2 * error, alpha=0.25)
    final[how] = mean[-1]
axes.set(xlabel="round", ylabel="cumulative regret")
axes.legend(title="measured")
plt.show()
