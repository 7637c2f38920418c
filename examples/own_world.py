"""
Your own world
==============

A world is a model of your problem as code: what is offered, what is missing, and what it pays. Here
an agency offers flats; which policy finds the good ones?
"""

# %%
# A world has `realize(seed)`, which returns an object with `facts` that a policy may know and with
# `rounds()`. A round has the options with missing values, the mean reward of each, the noise of the
# reward, and the complete options, which no policy sees. Owners leave out unfavourable values.

import os
from collections.abc import Iterator
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from halfseen import Facts, Round, Slate, World, params, register_world, simulate
from halfseen.testing import check_world

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"


@register_world("flats")
class Flats(World):
    dim: int = params.size(default=12)
    n_arms: int = params.size(default=6)
    horizon: int = params.horizon(default=100 if SMALL else 500)

    def realize(self, seed: int) -> "Offers":
        return Offers(self, seed)


@dataclass(frozen=True)
class Offers:
    world: Flats
    seed: int

    @property
    def facts(self) -> Facts:
        world = self.world
        return Facts(seed=self.seed, dim=world.dim, n_arms=world.n_arms, horizon=world.horizon)

    def rounds(self) -> Iterator[Round]:
        world = self.world
        offers, noises = (np.random.default_rng([self.seed, stream]) for stream in (0, 1))
        loadings = offers.standard_normal((2, world.dim))  # comfort and location
        for _ in range(world.horizon):
            latent = offers.standard_normal((world.n_arms, 2))
            flats = latent @ loadings + 0.3 * offers.standard_normal((world.n_arms, world.dim))
            left_out = np.where(flats < 0, 0.8, 0.3)  # bad values are left out more often
            mask = offers.random(flats.shape) > left_out
            means = 3.0 + latent @ [1.0, 0.5]
            yield Round(Slate(flats, mask), means, 0.3 * noises.standard_normal(), flats)


check_world(lambda: Flats(horizon=20))  # for example: same seed, same rounds

# %%
# All policies play the same rounds. Regret is how much more the best flats would have paid. Bands
# are two standard errors over the seeds.

policies = ["latent-ucb", "zf-thompson", "impute-mean", "uniform"]
tables = simulate(policies, Flats(), seeds=range(3 if SMALL else 20), jobs=1)
_, axes = plt.subplots(layout="constrained")
for method, rows in tables.to_pandas("trajectories").groupby("method", sort=False):
    (line,) = axes.plot(rows["round"], rows["mean_regret"], label=method)
    low, high = (rows["mean_regret"] + sign * 2 * rows["se_regret"] for sign in (-1, 1))
    axes.fill_between(rows["round"], low, high, color=line.get_color(), alpha=0.25)
axes.set(xlabel="round", ylabel="cumulative regret")
axes.legend()
plt.show()

# %%
# `latent-ucb` learns that two hidden factors describe a flat, so the known values reveal the rest.
