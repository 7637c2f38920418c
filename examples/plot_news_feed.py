"""
A news feed with clicks
=======================

Each visitor sees one of ten articles. Articles have a topic, a length and an age; visitors have a
device and interests, if they have told them. Does it pay to look at the visitor?
"""

# %%
# Articles are rows of a data frame, their index names them. A visitor is a dictionary. Whatever is
# not known is missing in both. Clicks are rare, and depend on article and visitor together.

import os
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from halfseen import Agent

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
N_VISITORS, SEEDS = (300, range(4)) if SMALL else (1000, range(8))
TOPICS = ["politics", "sport", "science", "culture"]


def visits(seed: int) -> Iterator[tuple[pd.DataFrame, dict[str, object], np.ndarray]]:
    """Yield the articles on offer, the visitor, and the probability that each is clicked."""
    random = np.random.default_rng(seed)
    for visitor in range(N_VISITORS):
        if visitor % 250 == 0:  # a new edition
            topic = random.permutation(TOPICS * 3)[:10]
            age, length = random.exponential(10, size=10), random.normal(700, 250, size=10)
            names = [f"article {visitor + number}" for number in range(10)]
            columns = {"topic": topic, "age": age, "length": length}
            articles = pd.DataFrame(columns, index=names).mask(random.random((10, 3)) < 0.3)
        taste = random.normal(size=len(TOPICS))
        mobile = random.random() < 0.6
        told = random.random(len(TOPICS)) < 0.6
        likes = zip(TOPICS, taste.tolist(), told, strict=True)
        person = {f"likes {name}": value for name, value, is_told in likes if is_told}
        person["device"] = "mobile" if mobile else "desktop"
        match = taste[[TOPICS.index(each) for each in topic]]
        logit = -2.2 + 1.2 * match - 0.03 * age - mobile * (length - 700) / 300
        yield articles, person, 1 / (1 + np.exp(-logit))


# %%
# Clicks arrive late: here after twenty other visitors. ``learn`` takes many at once, by id.


def serve(seed: int, *, with_context: bool) -> np.ndarray:
    """Serve all visitors; return the probability of each one's click, and of a random article's."""
    agent, waiting, found, random = Agent(), {}, [], np.random.default_rng([seed, 1])
    for articles, visitor, clicks in visits(seed):
        decision = agent.choose(articles, context=visitor if with_context else None)
        chosen = clicks[articles.index.get_loc(decision.item)]
        found.append((chosen, clicks.mean()))
        waiting[decision.id] = float(random.random() < chosen)
        if len(waiting) == 20:
            agent.learn(list(waiting), list(waiting.values()))
            waiting.clear()
    return np.array(found)


# %%
# How many clicks more than with articles at random? Bands are two standard errors over the seeds.

gained = {}
figure, axes = plt.subplots(layout="constrained")
for label, with_context in (("visitor known", True), ("visitor not known", False)):
    served = np.array([serve(seed, with_context=with_context) for seed in SEEDS])
    gain = (served[..., 0] - served[..., 1]).cumsum(axis=1)
    mean, error = gain.mean(axis=0), gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
    axes.plot(mean, label=label)
    axes.fill_between(range(N_VISITORS), mean - 2 * error, mean + 2 * error, alpha=0.25)
    gained[label] = mean[-1]
axes.set(xlabel="visitor", ylabel="clicks gained, cumulative")
axes.legend()
plt.show()
