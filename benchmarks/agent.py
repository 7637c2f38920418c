"""What an agent adds to the time of its policy: reading a table, ids, what waits for rewards."""

import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from benchmarks.harness import Advance, Plan, Quartiles
from halfseen import Agent, AmbientOful

# Budgets in µs, for 8 options with 30 columns.
MOST_NUMBERS = 150.0
MOST_MIXED = 5000.0

N_OPTIONS, N_COLUMNS = 8, 30
_ROUNDS = 200
_LEVELS = ("red", "green", "blue", None)


class Form(NamedTuple):
    """A kind of table."""

    name: str
    options: Any
    most: float


class Added(NamedTuple):
    """Time of choose + learn of an agent, less that of its policy."""

    name: str
    microseconds: Quartiles
    most: float


def forms() -> list[Form]:
    """Return one table in every form, of numbers alone and with categories and objects."""
    random = np.random.default_rng(0)
    table = random.normal(size=(N_OPTIONS, N_COLUMNS))
    table[random.random(table.shape) < 0.4] = np.nan
    numbers = pd.DataFrame(table, columns=[f"column {index}" for index in range(N_COLUMNS)])
    mixed = numbers.assign(
        colour=[_LEVELS[row % 4] for row in range(N_OPTIONS)],
        size=pd.Categorical([_LEVELS[row % 2] for row in range(N_OPTIONS)]),
        new=pd.Series([True, None] * (N_OPTIONS // 2), dtype=object),
    )
    found = []
    for frame, what, most in (
        (numbers, "numbers", MOST_NUMBERS),
        (mixed, "with categories and objects", MOST_MIXED),
    ):
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        tables = {
            "pandas": frame,
            "polars": pl.DataFrame(records),
            "pyarrow": pa.Table.from_pylist(records),
            "list of dicts": records,
        }
        found += [Form(f"{name}, {what}", options, most) for name, options in tables.items()]
    return found


def n_forms() -> int:
    """Return how many forms are measured."""
    return len(forms())


def measure_agent(plan: Plan, advance: Advance = lambda: None) -> list[Added]:
    """Return what an agent adds for every form, policy and agent in turns."""
    found = []
    for form in forms():
        agent = Agent(policy=AmbientOful(dim=1))
        agent.learn(agent.choose(form.options), 0.5)
        slate = agent._core.encoded(agent._asked(form.options, None)).slate
        policy = AmbientOful(dim=slate.dim)
        added = [
            _microseconds(agent, form.options) - _microseconds(policy, slate.values)
            for _ in range(plan.pick(15, 3))
        ]
        found.append(Added(form.name, Quartiles.of(added), form.most))
        advance()
    return found


def _microseconds(player: Any, options: Any) -> float:
    """Return the processor time of choose + learn."""
    started = time.process_time()
    for _ in range(_ROUNDS):
        player.learn(player.choose(options), 0.5)
    return (time.process_time() - started) / _ROUNDS * 1e6
