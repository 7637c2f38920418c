"""
Dosing with missing lab values
==============================

The right dose depends on the patient's need, which nobody can measure. Eight lab values are related
to it, and half of them are missing.
"""

# %%
# The options are three doses without features. All features belong to the patient, who is the
# context. A lab value that was not measured is simply not in the dictionary.

import os
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np

from halfseen import Agent

SMALL = os.environ.get("HALFSEEN_SCALE") == "small"
N_PATIENTS, SEEDS = (150, range(2)) if SMALL else (600, range(10))
DOSES = {"low": -1.0, "medium": 0.0, "high": 1.0}
LABS = ["age", "weight", "creatinine", "albumin", "bilirubin", "ALT", "sodium", "CRP"]
MEANS = np.array([55, 75, 1.1, 40, 12, 30, 140, 20])
SCALES = np.array([15, 12, 0.4, 5, 8, 20, 4, 30])


def patients(seed: int) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Yield each patient's known lab values, and the effect of each dose."""
    random = np.random.default_rng(seed)
    loadings = random.normal(size=(2, len(LABS)))  # how kidney and liver move the lab values
    for _ in range(N_PATIENTS):
        organs = random.normal(size=2)
        labs = MEANS + SCALES * (organs @ loadings + 0.4 * random.normal(size=len(LABS)))
        known = random.random(len(LABS)) < 0.5
        patient = {
            name: float(value) for name, value, ok in zip(LABS, labs, known, strict=True) if ok
        }
        need = organs @ [0.8, 0.6]
        yield patient, {name: need * dose - dose**2 / 2 for name, dose in DOSES.items()}


def treat(seed: int, *, with_context: bool) -> tuple[Agent, np.ndarray]:
    """Treat all patients; return the agent, and the effect that each patient missed."""
    agent, missed, noise = Agent(), [], np.random.default_rng([seed, 1])
    for patient, effects in patients(seed):
        decision = agent.choose(list(DOSES), context=patient if with_context else None)
        agent.learn(decision.id, effects[decision.item] + 0.3 * noise.normal())
        missed.append(max(effects.values()) - effects[decision.item])
    return agent, np.array(missed)


# %%
# One agent sees the lab values; the other must find one dose for all patients. Bands are two
# standard errors over the seeds.

late = {}
_, axes = plt.subplots(layout="constrained")
for label, with_context in (("one dose for all", False), ("by lab values", True)):
    missed = np.array([treat(seed, with_context=with_context)[1] for seed in SEEDS])
    total = missed.cumsum(axis=1)
    mean, error = total.mean(axis=0), total.std(axis=0, ddof=1) / np.sqrt(len(total))
    axes.plot(mean, label=label)
    axes.fill_between(range(N_PATIENTS), mean - 2 * error, mean + 2 * error, alpha=0.25)
    late[label] = missed[:, N_PATIENTS // 2 :].mean()
axes.set(xlabel="patient", ylabel="effect missed, cumulative")
axes.legend()
plt.show()

# %%
# For a new patient, `explain` says why a dose was chosen, and which lab value is worth measuring
# first, if a measurement costs as much as 0.01 of effect.

agent, _ = treat(0, with_context=True)
patient = {"age": 58.0, "weight": 71.0}
decision = agent.choose(list(DOSES), context=patient)
why = agent.explain(decision, costs=dict.fromkeys(LABS, 0.01))
print(why)
