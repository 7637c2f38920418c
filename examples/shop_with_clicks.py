"""
A shop with clicks
==================

Each visitor sees one of ten products. Much is missing about products and visitors, and clicks
arrive late. Does it pay to know the visitor?
"""

# %%
# Products are rows of a data frame, and its index has their ids. A visitor is a dictionary. Clicks
# are rare, and depend on the product and the visitor together.

import os
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from halfseen import Agent

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
N_VISITORS, SEEDS = (300, range(4)) if SMALL else (1000, range(12))
KINDS = ["books", "sports", "garden", "music"]


def visits(seed: int) -> Iterator[tuple[pd.DataFrame, dict[str, object], np.ndarray]]:
    """Yield the products on offer, the visitor, and the probability that each is clicked."""
    random = np.random.default_rng(seed)
    for visitor in range(N_VISITORS):
        if visitor % 250 == 0:  # new products
            kind = random.permutation(KINDS * 3)[:10]
            age, price = random.exponential(10, size=10), random.normal(70, 25, size=10)
            names = [f"product {visitor + number}" for number in range(10)]
            columns = {"kind": kind, "age": age, "price": price}
            products = pd.DataFrame(columns, index=names).mask(random.random((10, 3)) < 0.3)
        taste = random.normal(size=len(KINDS))
        mobile = random.random() < 0.6
        is_known = random.random(len(KINDS)) < 0.6
        likes = zip(KINDS, taste.tolist(), is_known, strict=True)
        person = {f"likes {name}": value for name, value, known in likes if known}
        person["device"] = "mobile" if mobile else "desktop"
        match = taste[[KINDS.index(each) for each in kind]]
        logit = -2.2 + 1.2 * match - 0.03 * age - mobile * (price - 70) / 30
        yield products, person, 1 / (1 + np.exp(-logit))


# %%
# Clicks arrive after twenty other visitors. `learn` takes many rewards at once, by decision id.


def serve(seed: int, *, with_context: bool) -> np.ndarray:
    """Serve all visitors; return the chance of a click on the chosen and on a random product."""
    agent, waiting, found, random = Agent(), {}, [], np.random.default_rng([seed, 1])
    for products, visitor, clicks in visits(seed):
        decision = agent.choose(products, context=visitor if with_context else None)
        chosen = clicks[products.index.get_loc(decision.item)]
        found.append((chosen, clicks.mean()))
        waiting[decision.id] = float(random.random() < chosen)
        if len(waiting) == 20:
            agent.learn(list(waiting), list(waiting.values()))
            waiting.clear()
    return np.array(found)


# %%
# How many more clicks than with random products? Bands are two standard errors over the seeds.

gained = {}
_, axes = plt.subplots(layout="constrained")
for label, with_context in (("visitor known", True), ("visitor unknown", False)):
    served = np.array([serve(seed, with_context=with_context) for seed in SEEDS])
    gain = (served[..., 0] - served[..., 1]).cumsum(axis=1)
    mean, error = gain.mean(axis=0), gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
    axes.plot(mean, label=label)
    axes.fill_between(range(N_VISITORS), mean - 2 * error, mean + 2 * error, alpha=0.25)
    gained[label] = mean[-1]
axes.set(xlabel="visitor", ylabel="clicks gained")
axes.legend()
plt.show()
