"""`LatentUcb`: beside TofuPov at the main study's size, and a whole run of the newsgroups study."""

import time
from typing import NamedTuple

from benchmarks.harness import Advance, Compared, Plan, in_turns
from benchmarks.line_profile import Profile, profile
from halfseen import LatentUcb, LowRankWorld, ProductContextWorld, TofuPov

REQUIRED_SHARE = 0.6
MOST_TIMES_TOFU = 6.0
MOST_SECONDS = 60.0
RANK = 20
_REPEATS = 15


class Latent(NamedTuple):
    small: Compared  # seconds of whole runs at (30, 3, 8), TofuPov with full history beside it
    n_rounds: int
    microseconds: float
    regret: float
    tofu_microseconds: float
    tofu_regret: float
    profile: Profile

    @property
    def seconds(self) -> float:
        return self.microseconds * self.n_rounds / 1e6


def measure_latent(plan: Plan, advance: Advance = lambda: None) -> Latent:
    """Return times, regrets and a profile."""
    small = _small(plan)
    advance()
    rounds = newsgroups_rounds(plan.pick(8000, 500))
    taken, regret = _play(LatentUcb(), rounds)
    advance()
    tofu_taken, tofu_regret = _play(_tofu(), rounds)
    advance()
    found = profile(lambda: _play(LatentUcb(), rounds[: plan.pick(2000, 250)]))
    advance()
    each = 1e6 / len(rounds)
    return Latent(small, len(rounds), taken * each, regret, tofu_taken * each, tofu_regret, found)


def _small(plan: Plan) -> Compared:
    world = LowRankWorld()
    rounds = [(round.slate._table, round.means) for round in world.realize(0).rounds()]
    told = {"dim": world.dim, "rank": world.rank, "observe_prob": world.observe_prob}
    _play(LatentUcb(), rounds)
    runs = {
        "ours": lambda: _play(LatentUcb(), rounds)[0],
        "tofu": lambda: _play(TofuPov.full_history(**told, noise_scale=0.05), rounds)[0],
    }
    found = in_turns(runs, plan.pick(_REPEATS, 3))
    return Compared.of(found["ours"], found["tofu"])


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
