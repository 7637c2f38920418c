"""`LatentUcb` in whole runs: the main study's size, the newsgroups study, a table of full rank."""

import time
from dataclasses import replace
from typing import NamedTuple

from benchmarks.harness import Advance, Plan, Quartiles, in_turns
from benchmarks.line_profile import Profile, profile
from halfseen import LatentUcb, LowRankWorld, ProductContextWorld, TofuPov

# Budgets, all in processor time.
MOST_SMALL = 250.0  # µs per round
MOST_NEWSGROUPS = 40.0  # seconds
MOST_FULL_RANK = 1000.0  # µs per round

SMALL = LowRankWorld(dim=30, rank=3, n_arms=8, horizon=400, observe_prob=0.3, noise_scale=0.05)
FULL_RANK = LowRankWorld(
    dim=100, rank=100, n_arms=10, horizon=2000, observe_prob=0.8, noise_scale=0.05
)
# The same with eigenvalues that fall, as those of real tables do: there is something to infer.
DECAYING = replace(FULL_RANK, decay=1.0)
NEWSGROUPS_RANK = 20


class Played(NamedTuple):
    """A whole run."""

    n_rounds: int
    seconds: float  # of the processor
    regret: float

    @property
    def microseconds(self) -> float:
        """Return the time per round."""
        return self.seconds / self.n_rounds * 1e6


class Wide(NamedTuple):
    """Runs of 100 columns of full rank."""

    microseconds: Quartiles  # per round
    rank: int  # of the last latent model


class Latent(NamedTuple):
    small: Quartiles  # µs per round
    small_tofu: Quartiles  # TofuPov with full history on the same rounds
    newsgroups: Played
    newsgroups_tofu: Played
    full_rank: Wide
    decaying: Wide
    profile: Profile  # of the newsgroups study


def measure_latent(plan: Plan, advance: Advance = lambda: None) -> Latent:
    """Return times, regrets and a profile."""
    small = _small(plan)
    advance()
    rounds = newsgroups_rounds(plan.pick(8000, 500))
    newsgroups = _play(LatentUcb(), rounds)
    advance()
    tofu = TofuPov(dim=1000, rank=NEWSGROUPS_RANK, observe_prob=0.3, burn_in=100)
    newsgroups_tofu = _play(tofu, rounds)
    advance()
    full_rank, decaying = _wide(FULL_RANK, plan), _wide(DECAYING, plan)
    advance()
    found = profile(lambda: _play(LatentUcb(), rounds[: plan.pick(2000, 250)]))
    advance()
    return Latent(*small, newsgroups, newsgroups_tofu, full_rank, decaying, found)


def _wide(world: LowRankWorld, plan: Plan) -> Wide:
    rounds, taken = list(world.realize(0).rounds()), []
    for _ in range(plan.pick(5, 1)):
        policy = LatentUcb()
        taken.append(_play(policy, rounds).microseconds)
    return Wide(Quartiles.of(taken), policy.current_rank)


def _small(plan: Plan) -> tuple[Quartiles, Quartiles]:
    rounds = list(SMALL.realize(0).rounds())
    told = {"dim": SMALL.dim, "rank": SMALL.rank, "observe_prob": SMALL.observe_prob}
    told["noise_scale"] = SMALL.noise_scale
    _play(LatentUcb(), rounds)  # compiles, fills caches
    runs = {
        "ours": lambda: _play(LatentUcb(), rounds).microseconds,
        "tofu": lambda: _play(TofuPov.full_history(**told), rounds).microseconds,
    }
    found = in_turns(runs, plan.pick(15, 3))
    return Quartiles.of(found["ours"]), Quartiles.of(found["tofu"])


def newsgroups_rounds(n_rounds: int):
    """Return rounds of the frozen newsgroups world: 4 arms of dim 1000, 30 % seen."""
    world = ProductContextWorld(source="newsgroups", horizon=n_rounds, observe_prob=0.3)
    return list(world.realize(0).rounds())


def _play(policy, rounds) -> Played:
    regret = 0.0
    started = time.process_time()
    for round in rounds:
        decision = policy.choose(round.slate._table)
        policy.learn(decision, round.reward(decision.arm))
        regret += round.means.item(round.means.argmax()) - round.means.item(decision.arm)
    return Played(len(rounds), time.process_time() - started, regret)
