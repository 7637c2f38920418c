"""The hot paths: how long blocks of them take, through the public API alone.

A path is a generator. What comes before its first yield prepares it; each `next` runs one block and
yields the seconds by what was measured. `halfseen` is imported inside, in any version: a name that
it lacks is an error of that path alone.
"""

import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import problems
from benchmarks.problems import N_COLUMNS, near_subspace

_WHOLE_RUN = 400
_LONG_AGO = 5000  # rounds before a block: the samples of arms are full
_BLOCK = 1000  # rounds of a policy
_CALLS = 50  # of an agent, in a block
_FITS = 5  # of an imputer, in a block
_LATE = 50  # rounds until a reward comes


class Seconds(NamedTuple):
    """The time of a block by two clocks."""

    processor: float
    wall: float


Found = dict[str, Seconds]
Rounds = list[tuple[np.ndarray, list[float]]]


class HotPath(NamedTuple):
    blocks: Callable[[], Iterator[Found]]
    waits: bool = False  # for a disk, which the processor's clock does not see


def timed(call: Callable[[], object]) -> Seconds:
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return Seconds(time.process_time() - processor, time.perf_counter() - wall)


# Policies


def _tofu() -> Any:
    from halfseen import TofuPov

    return TofuPov.full_history(dim=N_COLUMNS, rank=3, observe_prob=0.4, noise_scale=0.1)


def _latent() -> Any:
    from halfseen import LatentUcb

    return LatentUcb()


def _play(policy: Any, rounds: Rounds) -> None:
    for table, rewards in rounds:
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm])


def whole_runs(make: Callable[[], Any], n_runs: int) -> Iterator[Found]:
    """Play from the first round on; the slowest choice opens an epoch."""
    rounds = list(near_subspace(_WHOLE_RUN, 0.0))
    while True:
        runs = timed(lambda: [_play(make(), rounds) for _ in range(n_runs)])
        yield {"whole run": runs, "opening": _slowest_choice(make(), rounds)}


def _slowest_choice(policy: Any, rounds: Rounds) -> Seconds:
    decisions, found = [], []
    for table, rewards in rounds:
        found.append(timed(lambda table=table: decisions.append(policy.choose(table))))
        policy.learn(decisions[-1], rewards[decisions[-1].arm])
    return max(found)


def long_runs(make: Callable[[], Any]) -> Iterator[Found]:
    """Play on after many rounds."""
    policy, rounds = make(), near_subspace(10**6, 0.0)
    _play(policy, list(islice(rounds, _LONG_AGO)))
    while True:
        yield _choices_and_rewards(policy, list(islice(rounds, _BLOCK)))


def _choices_and_rewards(policy: Any, rounds: Rounds) -> Found:
    decisions: list[Any] = []

    def choose() -> None:
        decisions.extend(policy.choose(table) for table, _ in rounds)

    def learn() -> None:
        for decision, (_, rewards) in zip(decisions, rounds, strict=True):
            policy.learn(decision, rewards[decision.arm])

    return {"choose": timed(choose), "learn": timed(learn)}


def first_calls() -> Iterator[Found]:
    """Play a few rounds, for which everything is compiled if the cache is empty."""
    rounds, makes = list(near_subspace(60, 0.0)), (_tofu, _latent)
    yield {"first calls": timed(lambda: [_play(make(), rounds) for make in makes])}


# Agents


def _numbers() -> Iterator[tuple[Any, None]]:
    for table, _ in near_subspace(10**6, 0.0):
        yield table, None


def _shop() -> Iterator[tuple[Any, Any]]:
    random = np.random.default_rng(0)
    shop = problems.shop(random)
    while True:
        yield shop, problems.visitor(random)


def agents(offered: Callable[[], Iterator[tuple[Any, Any]]], stored: bool) -> Iterator[Found]:
    """Choose, and learn the reward of an earlier decision by its id."""
    from halfseen import Agent

    with tempfile.TemporaryDirectory() as folder:
        agent = Agent.open(str(Path(folder) / "shop.db")) if stored else Agent()
        offers, waiting = offered(), deque()
        random = np.random.default_rng(1)

        def play(n_rounds: int) -> None:
            for table, context in islice(offers, n_rounds):
                waiting.append(agent.choose(table, context=context).id)
                if len(waiting) > _LATE:
                    agent.learn(waiting.popleft(), float(random.random() < 0.1))

        play(2 * _CALLS)
        while True:
            yield {"choose + learn": timed(lambda: play(_CALLS))}


def encoders(form: str) -> Iterator[Found]:
    """Read a table with categories, for a policy that costs next to nothing."""
    from halfseen import Agent, AmbientOful

    agent = Agent(policy=AmbientOful(dim=1))
    table = problems.forms(problems.mixed(problems.numbers(np.random.default_rng(0))))[form]

    def play() -> None:
        for _ in range(_CALLS):
            agent.learn(agent.choose(table), 0.5)

    while True:
        yield {"choose + learn": timed(play)}


# Imputer


def imputer() -> Iterator[Found]:
    """Fit 2,000 rows of which half is hidden, and fill them."""
    from halfseen.sklearn import LatentImputer

    random = np.random.default_rng(0)
    table = random.normal(size=(2000, 5)) @ random.normal(size=(5, N_COLUMNS))
    table += 0.3 * random.normal(size=table.shape)
    table[random.random(table.shape) < 0.5] = np.nan
    fitted = LatentImputer().fit(table)
    while True:
        yield {
            "fit": timed(lambda: [LatentImputer().fit(table) for _ in range(_FITS)]),
            "transform": timed(lambda: [fitted.transform(table) for _ in range(_FITS)]),
        }


COLD = "TofuPov and LatentUcb in an empty cache"
PATHS = {
    "TofuPov, 400 rounds": HotPath(partial(whole_runs, _tofu, 5)),
    "TofuPov, long run": HotPath(partial(long_runs, _tofu)),
    "LatentUcb, 400 rounds": HotPath(partial(whole_runs, _latent, 1)),
    "LatentUcb, long run": HotPath(partial(long_runs, _latent)),
    "Agent in memory, 8 × 30": HotPath(partial(agents, _numbers, False)),
    "Agent in memory, shop of 200 × 5": HotPath(partial(agents, _shop, False)),
    "Agent on SQLite, 8 × 30": HotPath(partial(agents, _numbers, True), waits=True),
    "Agent on SQLite, shop of 200 × 5": HotPath(partial(agents, _shop, True), waits=True),
    "encoder, pandas": HotPath(partial(encoders, "pandas")),
    "encoder, polars": HotPath(partial(encoders, "polars")),
    "encoder, list of dicts": HotPath(partial(encoders, "list of dicts")),
    "LatentImputer, 2,000 × 30": HotPath(imputer),
    COLD: HotPath(first_calls),
}
