"""
Missing not at random
=====================

Sellers leave out what is unfavourable, so a missing value is itself bad news. How much does that
cost policies that assume values are missing at random?
"""

# %%
# The more strongly missingness depends on the value, the more low values are hidden. About 40 % of
# the entries are seen in all cases. With strength 0, entries are missing completely at random.

import os

import matplotlib.pyplot as plt
import numpy as np

from halfseen import LowRankWorld, simulate

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
SEEDS = range(2 if SMALL else 20)
STRENGTHS = [0.0, 4.0] if SMALL else [0.0, 1.0, 2.0, 4.0, 8.0]
METHODS = {
    "zf-oful": "OFUL, zeros filled in",
    "impute-mean": "OFUL, means filled in",
    "tofu-fh": "TOFU, full history",
    "latent-ucb": "LatentUcb",
}


def world(strength: float) -> LowRankWorld:
    masks = {"law": "value-dependent", "strength": strength, "signed": True}
    return LowRankWorld(observe_prob=0.4, perturbation=0.1, masks=masks)


# %%
# `LatentUcb` infers missing entries from the seen ones of the same option, which helps as long as
# some are seen, and it also learns whether missingness itself predicts the reward. Bands are two
# standard errors over the seeds.

runs = [simulate(list(METHODS), world(strength), SEEDS, jobs=1) for strength in STRENGTHS]
regret = {}
_, axes = plt.subplots(layout="constrained")
for method, label in METHODS.items():
    rows = [next(row for row in run.summary if row["method"] == method) for run in runs]
    mean, error = (np.array([row[name] for row in rows]) for name in ("mean_regret", "se_regret"))
    axes.plot(STRENGTHS, mean, marker="o", label=label)
    axes.fill_between(STRENGTHS, mean - 2 * error, mean + 2 * error, alpha=0.25)
    regret[method] = mean
axes.set(xlabel="how strongly low values are hidden", ylabel="regret after 400 rounds")
axes.set_ylim(0, 380)
axes.legend(ncols=2, fontsize="small")
plt.show()
