"""Runs at dimensions where a matrix of dim² is out of the question, in processes of their own."""

import json
import subprocess
import sys
from typing import NamedTuple

from benchmarks.harness import Advance, Plan
from benchmarks.peak import ROOT

RANK = 20
LARGEST_PEAK = 2 * 2**30

_POLICIES = ("TofuPov", "LatentUcb")
_DIMS = (10_000, 50_000)

_CHILD = """
import json, sys, time
import numpy as np
from benchmarks.peak import peak_bytes
from halfseen import LatentUcb, TofuPov
from halfseen.core.subspace import one_sided_distance
dim, rank, n_rounds, title = json.loads(sys.argv[1])
random = np.random.default_rng(0)
basis = np.linalg.qr(random.standard_normal((dim, rank)))[0]
theta = random.standard_normal(rank)
theta /= np.linalg.norm(theta)
policy = LatentUcb(rank=rank)
if title == "TofuPov":
    given = {"observe_prob": 0.3, "noise_scale": 0.1, "memory_bytes": 500_000_000}
    policy = TofuPov(dim=dim, rank=rank, burn_in=10, **given)
regret = uniform = taken = 0.0
for _ in range(n_rounds):
    latent = random.standard_normal((10, rank))
    arms = latent @ basis.T
    arms[random.random(arms.shape) >= 0.3] = np.nan
    means = latent @ theta
    started = time.perf_counter()
    decision = policy.choose(arms)
    policy.learn(decision, float(means[decision.arm] + 0.1 * random.standard_normal()))
    taken += time.perf_counter() - started
    regret += means.max() - means[decision.arm]
    uniform += means.max() - means.mean()
if title == "TofuPov":
    found = policy._epoch.basis
else:
    latent = policy._epoch.latent
    found = np.linalg.qr(latent.scale[:, None] * latent.loadings.T)[0]
distance = one_sided_distance(found, basis)
peak = peak_bytes()
print(json.dumps([taken, peak, distance, regret, uniform]))
"""


class Large(NamedTuple):
    dim: int
    title: str
    seconds: float
    peak: int
    distance: float
    regret: float
    uniform: float


def n_large(plan: Plan) -> int:
    return len(_POLICIES) * len(_dims(plan))


def measure_large(plan: Plan, advance: Advance = lambda: None) -> list[Large]:
    """Run both policies, given the rank, each to its end."""
    found = []
    for dim in _dims(plan):
        for title in _POLICIES:
            found.append(_measured(dim, title, plan.pick(100, 25)))
            advance()
    return found


def _dims(plan: Plan) -> tuple[int, ...]:
    return plan.pick(_DIMS, _DIMS[:1])


def _measured(dim: int, title: str, n_rounds: int) -> Large:
    command = [sys.executable, "-c", _CHILD, json.dumps([dim, RANK, n_rounds, title])]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return Large(dim, title, *json.loads(output))
