"""What an agent adds to the time of its policy: reading a table, ids, what waits for rewards."""

import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from benchmarks.measuring import Quartiles, Row, in_turns, seconds
from halfseen import Agent, AmbientOful, LatentUcb

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
    ]


def _shop_row(random: np.random.Generator, n_rounds: int) -> Row:
    """Return the time of a whole choice of `LatentUcb` inside an epoch, from pandas."""
    n = 200
    shop = pd.DataFrame(random.normal(size=(n, 3)), columns=["price", "weight", "age"])
    shop = shop.mask(random.random(shop.shape) < 0.3)
    shop["colour"] = pd.Categorical.from_codes(random.integers(-1, 8, size=n), list("abcdefgh"))
    shop["brand"] = pd.Categorical.from_codes(random.integers(-1, 20, size=n), range(20))
    agent, taken = Agent(policy=LatentUcb()), []
    for _ in range(n_rounds):
        visitor = {"hour": float(random.normal()), "age": float(random.normal()), "visits": None}
        started = time.process_time()
        decision = agent.choose(shop, context=visitor)
        taken.append(1e6 * (time.process_time() - started))  # few of them open an epoch
        agent.learn(decision, float(random.random() < 0.09))
    found = Quartiles.of(taken)
    return Row(
        f"`agent.choose` of `LatentUcb()` inside an epoch, {n} × 5 with categories and a context",
        f"{found} µs",
        f"≤ {MOST_SHOP:g} µs",
        found.median <= MOST_SHOP,
    )


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
