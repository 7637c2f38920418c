"""
Replace a step of TOFU
======================

TOFU estimates a subspace, chooses its rank, imputes missing entries and replays old rewards. You
can replace each of these steps. Here it is the imputation.
"""

# %%
# An imputation maps the seen entries of an option to coordinates in the estimated subspace. This
# one leaves missing entries at zero, and scales the result up by the share of entries seen. It is
# unbiased if entries are missing at random, but it ignores which entries are missing.

import os
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np

from halfseen import Facts, LowRankWorld, TofuPov, simulate
from halfseen.testing import check_policy
from halfseen.tofu.imputation import Imputation, LeastSquares, PosteriorMean

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
SEEDS, PROBS = (range(3), [0.8, 0.3]) if SMALL else (range(20), [0.8, 0.6, 0.4, 0.3, 0.2])


class Rescaled(Imputation):
    """Zeros for missing entries, divided by the share of entries seen."""

    def lift(self, basis: np.ndarray, eigenvalues: np.ndarray) -> Callable[[np.ndarray], object]:
        def coordinates(arms: np.ndarray) -> np.ndarray:
            n_seen = (~np.isnan(arms)).sum(axis=1, keepdims=True)
            return np.nan_to_num(arms) @ basis * arms.shape[1] / np.maximum(n_seen, 1)

        return coordinates


check_policy(lambda: TofuPov(dim=6, rank=2, observe_prob=0.5, replay="none", imputation=Rescaled()))

# %%
# `simulate` takes functions that make a policy from what it may know. Everything else stays as in
# the paper: least squares is the paper's imputation, the posterior mean is another one of the
# package. Bands are two standard errors over the seeds.

IMPUTATIONS = {
    "rescaled zeros (yours)": Rescaled(),
    "least squares (the paper)": LeastSquares(),
    "posterior mean": PosteriorMean(),
}


def tofu(imputation: Imputation) -> Callable[[Facts], TofuPov]:
    def make(facts: Facts) -> TofuPov:
        known = ("dim", "rank", "observe_prob", "horizon", "noise_scale")
        return TofuPov.practical(
            **{name: getattr(facts, name) for name in known}, imputation=imputation
        )

    return make


regret: dict[str, list[float]] = {label: [] for label in IMPUTATIONS}
policies = {label: tofu(imputation) for label, imputation in IMPUTATIONS.items()}
_, axes = plt.subplots(layout="constrained")
runs = [simulate(policies, LowRankWorld(observe_prob=p), SEEDS, jobs=1) for p in PROBS]
for label in policies:
    rows = [next(row for row in run.summary if row["method"] == label) for run in runs]
    mean, error = (np.array([row[name] for row in rows]) for name in ("mean_regret", "se_regret"))
    axes.plot(PROBS, mean, marker="o", label=label)
    axes.fill_between(PROBS, mean - 2 * error, mean + 2 * error, alpha=0.25)
    regret[label] = mean.tolist()
axes.set(xlabel="share of entries seen, p", ylabel="regret after 400 rounds")
axes.legend()
plt.show()
