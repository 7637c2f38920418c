"""
Drift
=====

Halfway through, customers change their taste. A policy that gives old rewards less weight adapts;
one that counts all rewards equally keeps choosing what used to be good.
"""

# %%
# The columns of the options and their correlations stay the same. Only the reward changes: after
# the change, it depends on other properties.

import os

import matplotlib.pyplot as plt
import numpy as np

from halfseen import Agent, LatentUcb

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
ROUNDS, SEEDS = (300, range(3)) if SMALL else (1200, range(12))
CHANGE = ROUNDS // 2
N_OPTIONS, N_COLUMNS = 8, 15


def run(half_life: float | None, seed: int, rounds: int = ROUNDS) -> tuple[Agent, np.ndarray]:
    """Return the agent after these rounds, and its cumulative regret."""
    random = np.random.default_rng(seed)
    loadings, tastes = random.normal(size=(3, N_COLUMNS)), random.normal(size=(2, 3))
    tastes /= np.linalg.norm(tastes, axis=1, keepdims=True)
    agent, missed = Agent(policy=LatentUcb(half_life=half_life)), []
    for number in range(rounds):
        latent = random.normal(size=(N_OPTIONS, 3))
        table = latent @ loadings + 0.2 * random.normal(size=(N_OPTIONS, N_COLUMNS))
        decision = agent.choose(np.where(random.random(table.shape) < 0.5, table, np.nan))
        pays = latent @ tastes[int(number >= CHANGE)]
        agent.learn(decision.id, pays[decision.arm] + 0.3 * random.normal())
        missed.append(pays.max() - pays[decision.arm])
    return agent, np.cumsum(missed)


# %%
# A half-life has a price: before the change, the policy with the half-life knows less. Bands are
# two standard errors over the seeds.

HALF_LIFE = CHANGE / 4
settings = {"no half-life": None, f"half-life of {HALF_LIFE:.0f}": HALF_LIFE}
after = {}
_, axes = plt.subplots(layout="constrained")
for label, half_life in settings.items():
    runs = np.array([run(half_life, seed)[1] for seed in SEEDS])
    mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    axes.plot(mean, label=label)
    axes.fill_between(range(ROUNDS), mean - 2 * error, mean + 2 * error, alpha=0.25)
    after[label] = mean[-1] - mean[CHANGE]
axes.axvline(CHANGE, color="0.5", linestyle=":")
axes.set(xlabel="round", ylabel="cumulative regret")
axes.legend()
plt.show()

# %%
# How would you know? A hundred rounds after the change, `agent.health()` warns.

agent, _ = run(None, seed=0, rounds=CHANGE + 100)
print("\n".join(agent.health()["warnings"]))
