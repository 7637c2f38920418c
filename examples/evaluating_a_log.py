"""
Evaluate a log
==============

A clinic examines one of six tissue samples first, chosen partly by lot. From its log we estimate
what other rules would have found, without trying them on a patient.
"""

# %%
# The measurements are real (scikit-learn's breast cancer table). Missing values and decisions are
# simulated, so that the truth is known: 40 % of the entries are missing, and the clinic prefers
# samples with a large mean radius where that is known.

import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from halfseen import Agent, evaluate
from halfseen.sklearn import LatentImputer

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
N_DECISIONS, N_OPTIONS = 500 if SMALL else 2000, 6

random = np.random.default_rng(0)
data = load_breast_cancer(as_frame=True)
is_malignant = data.target.to_numpy() == 0
draws = (random.permutation(len(data.data))[:N_OPTIONS] for _ in range(N_DECISIONS))
samples = np.array(list(draws))
table = data.data.iloc[samples.ravel()].reset_index(drop=True)
table = table.mask(random.random(table.shape) < 0.4)

liking = (table["mean radius"].fillna(14.0).to_numpy() / 4.0).reshape(-1, N_OPTIONS)
chances = np.exp(liking) / np.exp(liking).sum(axis=1, keepdims=True)
chances = 0.3 / N_OPTIONS + 0.7 * chances
chosen = (chances.cumsum(axis=1) < random.random((N_DECISIONS, 1))).sum(axis=1)

# %%
# The log has one row per decision: the chosen sample, its propensity, its reward, and the samples
# that were offered, with their features.

decisions = np.arange(N_DECISIONS)
table.insert(0, "sample", [f"{at}-{place}" for at in decisions for place in range(N_OPTIONS)])
rows = table.astype(object).where(table.notna(), None).to_dict("records")
offered = [rows[at * N_OPTIONS : (at + 1) * N_OPTIONS] for at in decisions]
log = pd.DataFrame(
    {
        "sample": [
            options[place]["sample"] for options, place in zip(offered, chosen, strict=True)
        ],
        "propensity": chances[decisions, chosen],
        "reward": is_malignant[samples[decisions, chosen]].astype(float),
        "offered": offered,
    }
)

# %%
# One rule examines the sample with the largest known radius, the other imputes missing radii first.
# `Agent()` is trained on earlier decisions of the log.

imputed = LatentImputer().fit_transform(table.drop(columns="sample"))[:, 0]  # the mean radius
radius = dict(zip(table["sample"], imputed, strict=True))


def largest_known(options: list[dict], context: object) -> np.ndarray:
    return np.eye(N_OPTIONS)[np.argmax([option["mean radius"] or 0.0 for option in options])]


def largest_imputed(options: list[dict], context: object) -> np.ndarray:
    return np.eye(N_OPTIONS)[np.argmax([radius[option["sample"]] for option in options])]


policies = ["uniform", largest_known, largest_imputed, Agent()]
result = evaluate(log, policies, item="sample", offered="offered")
_, axes = plt.subplots(layout="constrained")
result.plot(axes)
plt.show()
print(result)
