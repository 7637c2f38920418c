"""What an agent adds to the time of its policy: reading a table, ids, what waits for rewards."""

import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from benchmarks.measuring import Quartiles, Row, in_turns, seconds
from halfseen import Agent, AmbientOful

# Budgets in µs, for 8 options with 30 columns.
MOST_NUMBERS = 150.0
MOST_MIXED = 5000.0

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
        _row(f"{form}, {kind}", options, most, quick)
        for kind, frame, most in (
            ("numbers", numbers, MOST_NUMBERS),
            ("with categories and objects", mixed, MOST_MIXED),
        )
        for form, options in _forms(frame).items()
    ]


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
