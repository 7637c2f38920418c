"""`LatentUcb` at the size of the newsgroups study: time, regret, and where the time goes.

The policy is looked up when it is needed, so that everything else can be measured without it.
"""

import time
from typing import NamedTuple

import halfseen
from benchmarks.harness import Advance, Plan
from benchmarks.line_profile import Profile, profile
from halfseen import ProductContextWorld, TofuPov

REQUIRED_SHARE = 0.6
RANK = 20


class Latent(NamedTuple):
    n_rounds: int
    microseconds: float
    regret: float
    tofu_microseconds: float
    tofu_regret: float
    profile: Profile


def measure_latent(plan: Plan, advance: Advance = lambda: None) -> Latent | None:
    """Return time, regret and profile; None where the package has no LatentUcb."""
    policy_class = getattr(halfseen, "LatentUcb", None)
    if policy_class is None:
        return None
    rounds = newsgroups_rounds(plan.pick(1000, 500))
    advance()
    taken, regret = _play(policy_class(), rounds)
    advance()
    tofu_taken, tofu_regret = _play(_tofu(), rounds)
    advance()
    found = profile(lambda: _play(policy_class(), rounds[: plan.pick(500, 250)]))
    advance()
    each = 1e6 / len(rounds)
    return Latent(len(rounds), taken * each, regret, tofu_taken * each, tofu_regret, found)


def newsgroups_rounds(n_rounds: int):
    """Return rounds of the frozen newsgroups world: 4 arms of dim 1000, 30 % seen."""
    world = ProductContextWorld(source="newsgroups", horizon=n_rounds, observe_prob=0.3)
    return [(round.slate, round.means) for round in world.realize(0).rounds()]


def _tofu() -> TofuPov:
    return TofuPov(dim=1000, rank=RANK, observe_prob=0.3, burn_in=100)


def _play(policy, rounds) -> tuple[float, float]:
    regret = 0.0
    started = time.perf_counter()
    for slate, means in rounds:
        decision = policy.choose(slate)
        policy.learn(decision, float(means[decision.arm]))
        regret += float(means.max() - means[decision.arm])
    return time.perf_counter() - started, regret
