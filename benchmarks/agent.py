"""What an agent adds to the time of its policy: reading a table, ids, what waits for rewards."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from benchmarks.measuring import Quartiles, Row, in_turns, seconds
from halfseen import Agent, AmbientOful, LatentUcb
from halfseen.agent.database import DURABILITIES

# Budgets in µs: for 8 options with 30 columns, and for a whole choice of a shop.
MOST_NUMBERS = 150.0
MOST_MIXED = 1200.0
MOST_SHOP = 1000.0

N_OPTIONS, N_COLUMNS = 8, 30
_ROUNDS = 200
_LEVELS = ("red", "green", "blue", None)


def rows(quick: bool) -> list[Row]:
    """Return what an agent adds, for every form of a table."""
    random = np.random.default_rng(0)
    table = random.normal(size=(N_OPTIONS, N_COLUMNS))
    table[random.random(table.shape) < 0.4] = np.nan
    numbers = pd.DataFrame(table, columns=[f"column {index}" for index in range(N_COLUMNS)])
    mixed = numbers.assign(
        colour=[_LEVELS[row % 4] for row in range(N_OPTIONS)],
        size=pd.Categorical([_LEVELS[row % 2] for row in range(N_OPTIONS)]),
        new=pd.Series([True, None] * (N_OPTIONS // 2), dtype=object),
    )
    return [
        *(
            _row(f"{form}, {kind}", options, most, quick)
            for kind, frame, most in (
                ("numbers", numbers, MOST_NUMBERS),
                ("with categories and objects", mixed, MOST_MIXED),
            )
            for form, options in _forms(frame).items()
        ),
        _shop_row(random, 30 if quick else 300),
        *_storage_rows(quick),
    ]


def _shop_row(random: np.random.Generator, n_rounds: int) -> Row:
    """Return the time of a whole choice of `LatentUcb` inside an epoch, from pandas."""
    shop = _shop(random)
    agent, taken = Agent(policy=LatentUcb()), []
    for _ in range(n_rounds):
        visitor = _visitor(random)
        started = time.process_time()
        decision = agent.choose(shop, context=visitor)
        taken.append(1e6 * (time.process_time() - started))  # few of them open an epoch
        agent.learn(decision, float(random.random() < 0.09))
    found = Quartiles.of(taken)
    return Row(
        "`agent.choose` of `LatentUcb()` inside an epoch, 200 × 5 with categories and a context",
        f"{found} µs",
        f"≤ {MOST_SHOP:g} µs",
        found.median <= MOST_SHOP,
    )


def _shop(random: np.random.Generator, n: int = 200) -> pd.DataFrame:
    shop = pd.DataFrame(random.normal(size=(n, 3)), columns=["price", "weight", "age"])
    shop = shop.mask(random.random(shop.shape) < 0.3)
    shop["colour"] = pd.Categorical.from_codes(random.integers(-1, 8, size=n), list("abcdefgh"))
    brands = [f"brand {index}" for index in range(20)]
    shop["brand"] = pd.Categorical.from_codes(random.integers(-1, 20, size=n), brands)
    return shop


def _visitor(random: np.random.Generator) -> dict[str, float | None]:
    return {"hour": float(random.normal()), "age": float(random.normal()), "visits": None}


# Databases

# For each problem: decisions per second of four processes, and events per second in catching up.
AT_LEAST = {"8 × 30": (500, 20_000), "a shop of 200 with a context": (250, 5_000)}
LONGEST_OPENING = 2.0


def _serve(url: str, problem: str, n_rounds: int, seed: int = 0) -> None:
    """Choose and learn through a database."""
    random = np.random.default_rng(seed)
    table = np.random.default_rng(0).normal(size=(N_OPTIONS, N_COLUMNS))
    shop = _shop(np.random.default_rng(0))
    with closing(Agent.open(url, problem, "crash")) as agent:
        for _ in range(n_rounds):
            given: Any = (table, None) if problem == "8 × 30" else (shop, _visitor(random))
            decision = agent.choose(given[0], context=given[1])
            agent.learn(decision.id, float(random.random() < 0.09))


def _storage_rows(quick: bool) -> Iterator[Row]:
    """Yield how fast agents are that live in SQLite."""
    n_rounds = 100 if quick else 1000
    context = get_context("spawn")
    for problem, (decisions, events) in AT_LEAST.items():
        with tempfile.TemporaryDirectory() as folder:
            url = str(Path(folder) / "shop.db")
            _serve(url, problem, 200)
            for durability in DURABILITIES:
                yield _alone(url, problem, durability, n_rounds)
            with context.Pool(4) as pool:
                pool.starmap(_serve, [(url, problem, 1, seed) for seed in range(4)])  # imports
                jobs = [(url, problem, n_rounds, seed) for seed in range(4)]
                rate = 4 * n_rounds / seconds(lambda: pool.starmap(_serve, jobs))  # noqa: B023
            what = f"choose + learn, four processes on SQLite, {problem}"
            yield Row(what, f"{rate:.0f}/s", f"≥ {decisions}/s", rate >= decisions)
            yield _catching_up(url, problem, n_rounds, events)
            took = seconds(lambda: Agent.open(url, problem).close())  # noqa: B023
            what = f"opening after {4 * n_rounds} rounds, {problem}"
            yield Row(what, f"{took:.2g} s", f"≤ {LONGEST_OPENING:g} s", took <= LONGEST_OPENING)


def _alone(url: str, problem: str, durability: str, n_rounds: int) -> Row:
    random, table = np.random.default_rng(0), np.ones((N_OPTIONS, N_COLUMNS))
    shop = _shop(random)
    options = table if problem == "8 × 30" else shop
    context = None if problem == "8 × 30" else _visitor(random)
    taken = []
    with closing(Agent.open(url, f"{problem}, {durability}", durability)) as agent:
        for _ in range(n_rounds):
            started = time.perf_counter()
            agent.learn(agent.choose(options, context=context).id, float(random.random() < 0.09))
            taken.append(1e6 * (time.perf_counter() - started))
    what = f'choose + learn through SQLite, "{durability}", {problem}'
    return Row(what, f"{Quartiles.of(taken)} µs", "", None)


def _catching_up(url: str, problem: str, n_rounds: int, events: int) -> Row:
    """Return how fast a process applies what others have done."""
    with closing(Agent.open(url, problem)) as agent:
        before = agent.health()["events"]
        _serve(url, problem, n_rounds)
        taken = seconds(agent._catch_up, time.process_time)
        rate = (agent.health()["events"] - before) / taken
    what = f"catching up with another process, {problem}"
    return Row(what, f"{rate:.0f} events/s", f"≥ {events}/s", rate >= events)


def _forms(frame: pd.DataFrame) -> dict[str, Any]:
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return {
        "pandas": frame,
        "polars": pl.DataFrame(records),
        "pyarrow": pa.Table.from_pylist(records),
        "list of dicts": records,
    }


def _row(name: str, options: Any, most: float, quick: bool) -> Row:
    agent = Agent(policy=AmbientOful(dim=1))
    agent.learn(agent.choose(options), 0.5)
    policy = AmbientOful(dim=agent.policy.dim)
    table = np.random.default_rng(0).normal(size=(N_OPTIONS, policy.dim))
    runs = {
        "agent": lambda: _microseconds(agent, options),
        "policy": lambda: _microseconds(policy, table),
    }
    taken = in_turns(runs, 3 if quick else 15)
    added = Quartiles.of(np.subtract(taken["agent"], taken["policy"]))
    return Row(
        f"added by an agent to choose + learn, {N_OPTIONS} × {N_COLUMNS}, {name}",
        f"{added} µs",
        f"≤ {most:g} µs",
        added.median <= most,
    )


def _microseconds(player: Any, options: Any) -> float:
    """Return the processor time of choose + learn."""

    def play() -> None:
        for _ in range(_ROUNDS):
            player.learn(player.choose(options), 0.5)

    return seconds(play, time.process_time) / _ROUNDS * 1e6
