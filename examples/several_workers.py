"""
Several workers, one agent
==========================

Three processes serve the same shop. If they share a database, they learn as one agent, and a click
may reach a different worker from the one that made the decision.
"""

# %%
# For this figure, three agents in one script stand in for three processes: each opens the same
# SQLite file. The items of a shop have ten columns, half of them missing, and any worker may
# serve a visitor.

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from halfseen import Agent

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
N_VISITORS, SEEDS = (150, range(2)) if SMALL else (600, range(8))
N_WORKERS, N_ITEMS, N_COLUMNS = 3, 6, 10


def serve(workers: list[Agent], seed: int, *, shared: bool) -> np.ndarray:
    """Serve all visitors; return how much less than the best item each one paid."""
    random = np.random.default_rng(seed)
    loadings, taste = random.normal(size=(2, N_COLUMNS)), random.normal(size=2)
    taste /= np.linalg.norm(taste)
    missed = []
    for _ in range(N_VISITORS):
        latent = random.normal(size=(N_ITEMS, 2))
        table = latent @ loadings + 0.3 * random.normal(size=(N_ITEMS, N_COLUMNS))
        offers = np.where(random.random(table.shape) < 0.5, table, np.nan)
        chooser, learner = random.integers(N_WORKERS, size=2)
        decision = workers[chooser].choose(offers)
        paid = latent @ taste
        reward = paid[decision.arm] + 0.3 * random.normal()
        workers[learner if shared else chooser].learn(decision.id, reward)
        missed.append(paid.max() - paid[decision.arm])
    return np.array(missed)


def shop(seed: int, *, shared: bool) -> np.ndarray:
    """Open the workers, serve all visitors and close them."""
    if not shared:
        return serve([Agent() for _ in range(N_WORKERS)], seed, shared=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        workers = [Agent.open(path, durability="crash") for _ in range(N_WORKERS)]
        missed = serve(workers, seed, shared=True)
        for worker in workers:
            worker.close()
    return missed


# %%
# Without a database, each worker learns from a third of the traffic, and makes every mistake
# itself. Bands are two standard errors over the seeds.

final = {}
_, axes = plt.subplots(layout="constrained")
for label, shared in (("each on its own", False), ("one database", True)):
    runs = np.array([shop(seed, shared=shared) for seed in SEEDS]).cumsum(axis=1)
    mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    axes.plot(mean, label=label)
    axes.fill_between(range(N_VISITORS), mean - 2 * error, mean + 2 * error, alpha=0.25)
    final[label] = mean[-1]
axes.set(xlabel="visitor", ylabel="regret, three workers")
axes.legend()
plt.show()
