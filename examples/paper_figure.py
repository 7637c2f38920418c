"""
A figure of the paper
=====================

Regret after 400 rounds when fewer and fewer entries are seen: the last panel of the paper's main
figure, with our policy added, and checked against the published numbers seed by seed.
"""

# %%
# `LowRankWorld` draws its random numbers in the order of the published code, so seed 7 here is
# seed 7 there: 30 features of rank 3, 8 options, 400 rounds. Each entry is seen with probability p.

import os
from importlib.resources import files

import matplotlib.pyplot as plt
import pandas as pd

from halfseen import LowRankWorld, simulate
from halfseen.report.look import look_of

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
SEEDS = range(2 if SMALL else 20)
PROBS = [0.8, 0.4] if SMALL else [0.8, 0.6, 0.4, 0.3, 0.2]
METHODS = {
    "zf-oful": "OFUL, zeros filled in",
    "tofu": "TOFU",
    "tofu-fh": "TOFU, full history",
    "latent-ucb": "LatentUcb (ours)",
}

found = []
for p in PROBS:
    results = simulate(list(METHODS), LowRankWorld(observe_prob=p), SEEDS, jobs=1)
    found.append(results.to_pandas("per_seed").assign(p=p))
regrets = pd.concat(found)

# %%
# The command `halfseen reproduce synthetic` makes the whole figure, with a report. To vary the
# world, pass other settings: `LowRankWorld(rank=9)`, `perturbation=0.2` for arms that are only
# nearly low-rank, `noise_scale=0.5`. Bands are two standard errors over the seeds.

figure, axes = plt.subplots(layout="constrained")
for method, rows in regrets.groupby("method", sort=False):
    by_p = rows.groupby("p")["final_regret"]
    mean, error = by_p.mean(), 2 * by_p.sem()
    look = look_of(method)
    axes.plot(mean.index, mean, color=look.color, marker=look.marker, label=METHODS[method])
    axes.fill_between(mean.index, mean - error, mean + error, color=look.color, alpha=0.2)
axes.set(xlabel="share of entries seen, p", ylabel="regret after 400 rounds", yscale="log")
figure.legend(loc="outside lower center", ncols=2)
plt.show()

# %%
# Is it the published figure? The package contains the final regret of every published run. The
# paper's policies make no random choices, so their regrets must agree up to rounding.

published = pd.read_csv(files("halfseen.paper") / "data" / "published" / "synthetic.csv")
both = regrets.merge(published, on=["method", "p", "seed"], suffixes=("", "_published"))
largest = (both["final_regret"] - both["final_regret_published"]).abs().max()
print(f"{len(both)} runs compared, largest difference {largest:.0e}")
