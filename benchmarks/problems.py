"""What is offered and what it pays, drawn by numpy alone, so that every version gets the same."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

N_OPTIONS, N_COLUMNS = 8, 30
_LEVELS = ("red", "green", "blue", None)
_BLOCK = 500  # rounds whose arms are drawn at once


def near_subspace(n_rounds: int, noise: float) -> Iterator[tuple[np.ndarray, list[float]]]:
    """Yield slates and rewards; never the same arm twice. `noise` is around the subspace."""
    random, dim, rank, n_arms = np.random.default_rng(0), N_COLUMNS, 3, N_OPTIONS
    loadings = random.normal(size=(rank, dim)) / np.sqrt(rank)
    theta = random.normal(size=rank)
    for first in range(0, n_rounds, _BLOCK):
        latent = random.normal(size=(min(_BLOCK, n_rounds - first), n_arms, rank))
        arms = latent @ loadings
        if noise:
            arms += noise * random.normal(size=arms.shape)
        arms[random.random(arms.shape) >= 0.4] = np.nan
        rewards = latent @ theta + 0.1 * random.normal(size=latent.shape[:2])
        yield from zip(arms, rewards.tolist(), strict=True)


# Tables and visitors of an agent


def numbers(random: np.random.Generator) -> pd.DataFrame:
    """Return 8 options with 30 columns, 40 % hidden."""
    table = random.normal(size=(N_OPTIONS, N_COLUMNS))
    table[random.random(table.shape) < 0.4] = np.nan
    return pd.DataFrame(table, columns=[f"column {index}" for index in range(N_COLUMNS)])


def mixed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return 8 options with further columns: categories and objects."""
    return frame.assign(
        colour=[_LEVELS[row % 4] for row in range(N_OPTIONS)],
        size=pd.Categorical([_LEVELS[row % 2] for row in range(N_OPTIONS)]),
        new=pd.Series([True, None] * (N_OPTIONS // 2), dtype=object),
    )


def forms(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a table in every form that an agent reads."""
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return {
        "pandas": frame,
        "polars": pl.DataFrame(records),
        "pyarrow": pa.Table.from_pylist(records),
        "list of dicts": records,
    }


def shop(random: np.random.Generator, n: int = 200) -> pd.DataFrame:
    """Return items with three numbers and two categories."""
    items = pd.DataFrame(random.normal(size=(n, 3)), columns=["price", "weight", "age"])
    items = items.mask(random.random(items.shape) < 0.3)
    items["colour"] = pd.Categorical.from_codes(random.integers(-1, 8, size=n), list("abcdefgh"))
    brands = [f"brand {index}" for index in range(20)]
    items["brand"] = pd.Categorical.from_codes(random.integers(-1, 20, size=n), brands)
    return items


def visitor(random: np.random.Generator) -> dict[str, float | None]:
    """Return a context of three columns, one of which is always hidden."""
    return {"hour": float(random.normal()), "age": float(random.normal()), "visits": None}
