"""Development problems: traffic as it comes, on tables and seeds that no study reports.

    python -m benchmarks.development [names] [--seeds 8] [--set width_scale=0.5]

Each problem changes a public table: rows that never come back, late rewards, categories, useless
columns, outliers, a level that moves. `LatentUcb` plays against the best ridge regression in
hindsight, which is the one of several that has the largest mean reward on the same seeds, and
against uniform play. Settings of `LatentUcb` can be tried with `--set`.

A problem is lost, or won, if the mean difference from that ridge is beyond two standard errors and
beyond 2 % of its lead over uniform play.
"""

import argparse
import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console

from halfseen import LatentUcb, PerArmRidge, Slate, Standardized, Uniform
from halfseen.policies.abilities import UsesContext
from halfseen.policies.base import Policy
from halfseen.seeding import stream
from halfseen.worlds.public_tables import read_table

FIRST_SEED = 1000
"""Studies report seeds below 1000 and calibrate on seeds from 10000 on."""


@dataclass(frozen=True)
class Problem:
    """A table, what of it is changed, and how it is played.

    Attributes
    ----------
    table : str
    rows : "fresh", "drawn", "catalogue" or "contexts"
        Rows are options: none comes back, they are drawn with replacement, or the same ones are
        offered in every round. Or rows are contexts, of which none comes back if that is possible,
        and labels are the options, by name.
    n_arms, horizon : int
    observe_prob : float
    columns : str
        A key of `CHANGES`: what happens to columns.
    level : str
        A key of `LEVELS`: what is added to the rewards of all options.
    delay, day : int
        Rounds after which a reward comes; rounds at whose end all their rewards come.
    noise : float
        Deviation of the noise of rewards.
    n_rows : int, optional
        Only so many rows of the table, which come again sooner.
    """

    table: str
    rows: str = "fresh"
    n_arms: int = 3
    horizon: int = 500
    observe_prob: float = 0.7
    columns: str = "as they are"
    level: str = "fixed"
    delay: int = 0
    day: int = 1
    noise: float = 0.0
    n_rows: int | None = None


_DRAWN: dict[str, Any] = {"table": "skillcraft1", "rows": "drawn", "n_arms": 10, "horizon": 600}
_CATALOGUE: dict[str, Any] = {
    "table": "winequality", "rows": "catalogue", "n_arms": 50, "horizon": 1200, "noise": 1.0,
}  # fmt: skip
_CONTEXT: dict[str, Any] = {"table": "segment", "rows": "contexts", "horizon": 700}
PROBLEMS: dict[str, Problem] = {
    "fresh segment": Problem("segment"),
    "fresh satimage": Problem("satimage", horizon=900, observe_prob=0.3),
    "fresh skillcraft1": Problem("skillcraft1", horizon=900),
    "fresh wine quality": Problem("winequality"),
    "fresh digits": Problem("digits"),
    "fresh diabetes": Problem("diabetes", horizon=140),
    "fresh breast cancer": Problem("breast-cancer", horizon=180, observe_prob=0.4),
    "fresh buildings": Problem("residential-building", horizon=120, observe_prob=0.5),
    "fresh, 100 late": Problem("skillcraft1", horizon=900, delay=100),
    "catalogue": Problem(**_CATALOGUE),
    "catalogue, 100 late": Problem(**_CATALOGUE, delay=100),
    "catalogue, by day": Problem(**_CATALOGUE, day=200),
    "10 options, 100 late": Problem(**{**_CATALOGUE, "n_arms": 10}, delay=100),
    "drawn": Problem(**_DRAWN),
    **{
        f"drawn, {change}": Problem(**_DRAWN, columns=change)
        for change in ("1e6", "-999", "log-normal", "useless numbers", "useless categories")
    },
    "buildings, 1e6": Problem("residential-building", "drawn", 10, columns="1e6"),
    "buildings, -999": Problem("residential-building", "drawn", 10, columns="-999"),
    "drawn, trend": Problem(**_DRAWN, level="trend"),
    "drawn, seasons": Problem(**_DRAWN, level="seasons"),
    "catalogue, trend": Problem(**_CATALOGUE, level="trend"),
    **{
        f"context {table}": Problem(table, "contexts", horizon=horizon)
        for table, horizon in (
            ("wine", 175), ("breast-cancer", 560), ("hepatitis", 150), ("bone-marrow", 180),
            ("ionosphere", 350), ("satimage", 900), ("digits", 900),
        )
    },
    "context segment": Problem(**_CONTEXT),
    **{
        f"context, {change}": Problem(**_CONTEXT, columns=change)
        for change in ("1e6", "-999", "useless numbers", "useless categories")
    },
    "context, 60 rows": Problem(**_CONTEXT, n_rows=60),
    "context, 60 rows, noisy": Problem(**_CONTEXT, n_rows=60, noise=0.5),
    "context digits, 100 rows": Problem("digits", "contexts", horizon=900, n_rows=100),
    "context, wide": Problem(**_CONTEXT, columns="wide"),
    "context satimage, seasons": Problem(
        "satimage", "contexts", horizon=700, observe_prob=0.4, level="seasons"
    ),
    "context, jump": Problem(**_CONTEXT, level="jump"),
    "context, 100 late": Problem(**_CONTEXT, delay=100),
    "context, by day": Problem(**_CONTEXT, day=200),
    "context, trend": Problem(**_CONTEXT, level="trend"),
    "context, seasons": Problem(**_CONTEXT, level="seasons"),
}  # fmt: skip

Columns = tuple[np.ndarray, np.ndarray]
"""Values (n_rows, dim), NaN where hidden, and the column from which each feature comes (dim,)."""


def _replaced(share: float, value: float) -> Callable[[Columns, np.random.Generator], Columns]:
    def change(columns: Columns, random: np.random.Generator) -> Columns:
        values, origins = columns
        return np.where(random.random(values.shape) < share, value, values), origins

    return change


def _log_normal(columns: Columns, random: np.random.Generator) -> Columns:
    values, origins = columns
    spread = np.nanstd(values, axis=0)
    unit = (values - np.nanmean(values, axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return np.exp(unit), origins


def _useless_numbers(columns: Columns, random: np.random.Generator) -> Columns:
    values, origins = columns
    noise = random.standard_normal((len(values), 50))
    return np.hstack([values, noise]), np.append(origins, origins[-1] + 1 + np.arange(50))


def _useless_categories(columns: Columns, random: np.random.Generator) -> Columns:
    values, origins = columns
    levels = [np.eye(20)[random.integers(20, size=len(values))] for _ in range(6)]
    further = origins[-1] + 1 + np.repeat(np.arange(6), 20)
    return np.hstack([values, *levels]), np.append(origins, further)


def _wide(columns: Columns, random: np.random.Generator) -> Columns:
    """Add noisy copies of columns in other units, and noise, up to 250 columns."""
    values, origins = columns
    n_more = 250 - values.shape[1]
    copied = values[:, random.integers(values.shape[1], size=n_more // 2)]
    spread, size = np.nanstd(copied, axis=0), 10.0 ** random.uniform(-3.0, 3.0, copied.shape[1])
    copied = size * (copied + 0.5 * spread * random.standard_normal(copied.shape))
    noise = random.standard_normal((len(values), n_more - copied.shape[1]))
    return np.hstack([values, copied, noise]), np.append(
        origins, origins[-1] + 1 + np.arange(n_more)
    )


CHANGES: dict[str, Callable[[Columns, np.random.Generator], Columns]] = {
    "as they are": lambda columns, random: columns,
    "1e6": _replaced(0.002, 1e6),
    "-999": _replaced(0.02, -999.0),
    "log-normal": _log_normal,
    "useless numbers": _useless_numbers,
    "useless categories": _useless_categories,
    "wide": _wide,
}
LEVELS: dict[str, Callable[[float], float]] = {
    "fixed": lambda time: 0.0,
    "trend": lambda time: 20.0 * time,
    "seasons": lambda time: 3.0 * float(np.sin(6.0 * np.pi * time)),
    "jump": lambda time: 10.0 * (time > 0.4),
}
"""What is added to rewards at a time in [0, 1]."""


def rounds(problem: Problem, seed: int) -> Iterator[tuple[Slate, np.ndarray]]:
    """Yield the slate of each round, and the mean rewards of its arms without the level."""
    table, random = read_table(problem.table), stream(seed, "development", problem.table)
    values, origins = CHANGES[problem.columns]((table.values, table.origins), random)
    shown = random.random((len(values), int(origins[-1]) + 1)) < problem.observe_prob
    values = np.where(shown[:, origins], values, np.nan)
    order, n = random.permutation(len(values))[: problem.n_rows], problem.n_arms
    labels = np.eye(int(table.labels.max()) + 1)
    for round in range(problem.horizon):
        if problem.rows == "contexts":
            row = order[round % len(order)]
            nothing = np.full((len(labels), 1), np.nan)
            items = np.arange(len(labels))
            yield Slate(nothing, context=values[row], items=items), labels[table.labels[row]]
            continue
        rows = order[:n] if problem.rows == "catalogue" else order[round * n : (round + 1) * n]
        if problem.rows == "drawn":
            rows = random.integers(len(values), size=n)
        yield Slate(values[rows]), table.target[rows]


def mean_reward(policy: Policy, problem: Problem, seed: int) -> float:
    """Return the mean over rounds of the chosen arm's mean reward, without the level."""
    random, level = stream(seed, "development", "noise"), LEVELS[problem.level]
    waiting: deque[tuple[Any, float]] = deque()
    total, is_late = 0.0, problem.delay > 0 or problem.day > 1
    for round, (slate, means) in enumerate(rounds(problem, seed), 1):
        if slate.context is not None and not isinstance(policy, UsesContext):
            slate = slate.without_context()
        decision = policy.choose(slate)
        if is_late:
            policy.expect(decision)
        total += means[decision.arm]
        noise = problem.noise * random.standard_normal()
        paid = means[decision.arm] + level(round / problem.horizon) + noise
        waiting.append((decision, float(paid)))
        while round % problem.day == 0 and len(waiting) > problem.delay:
            policy.learn(*waiting.popleft())
    return total / problem.horizon


def ridges(problem: Problem, dim: int, seed: int) -> dict[str, Policy]:
    """Return the ridge regressions of which the best one counts."""
    given: dict[str, Any] = {"dim": dim, "seed": seed}
    if problem.rows == "contexts":
        return {
            f"per arm, radius {radius}, penalty {penalty}": PerArmRidge(
                radius=radius, ridge=penalty, **given
            )
            for radius in (1.0, 0.3, 0.1, 0.0)
            for penalty in (1.0, 20.0)
        }
    return {
        f"{imputer}{' and indicators' * more}, radius {scale}": Standardized(
            imputer=imputer, indicators=more, radius_scale=scale, **given
        )
        for imputer, more in (("zero", False), ("mean", False), ("mean", True))
        for scale in (1.0, 0.3, 0.1)
    }


def our_policy(problem: Problem, seed: int, settings: dict[str, Any]) -> Policy:
    """Return `LatentUcb`, which knows which features are levels of one category, as in an agent."""
    table = read_table(problem.table)
    _, origins = CHANGES[problem.columns]((table.values, table.origins), stream(seed, "levels"))
    first = np.searchsorted(origins, origins)
    levels = {at: int(other) for at, other in enumerate(first.tolist()) if at != other}
    policy = LatentUcb(seed=seed, **settings)
    if problem.rows == "contexts":
        policy.widen(1, context_dim=len(origins), context_levels=levels)
    else:
        policy.widen(len(origins), levels=levels)
    return policy


def rewards(name: str, seed: int, settings: dict[str, Any]) -> dict[str, float]:
    """Return the mean rewards of all policies."""
    problem = PROBLEMS[name]
    dim = next(rounds(problem, seed))[0].dim
    policies = {"ours": our_policy(problem, seed, settings), "uniform": Uniform(dim=dim, seed=seed)}
    policies |= ridges(problem, dim, seed)
    return {key: mean_reward(policy, problem, seed) for key, policy in policies.items()}


def verdict(found: list[dict[str, float]]) -> str:
    """Return the line of a problem, given the mean rewards of each seed."""
    means = {key: np.array([each[key] for each in found]) for key in found[0]}
    others = [key for key in means if key not in ("ours", "uniform")]
    best = max(others, key=lambda key: float(means[key].mean()))
    gain, lead = means["ours"] - means[best], means["ours"] - means["uniform"]
    error = float(gain.std(ddof=1)) / len(gain) ** 0.5 if len(gain) > 1 else np.inf
    margin = max(2.0 * error, 0.02 * float((means[best] - means["uniform"]).mean()))
    size = float(gain.mean())
    word = "tied" if abs(size) <= margin else "won" if size > 0.0 else "LOST"
    return (
        f"{means['ours'].mean():8.3f} {means['uniform'].mean():8.3f} {lead.mean():8.3f} "
        f"{size:+8.3f} ± {error:.3f}  {word:5} {best}"
    )


def main() -> None:
    """Play the problems and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of the names of problems; by default all")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    settings = {name: json.loads(value) for name, value in (each.split("=") for each in asked.set)}
    names = [name for name in PROBLEMS if any(part in name for part in asked.names or [""])]
    seeds, console = (
        range(FIRST_SEED, FIRST_SEED + asked.seeds),
        Console(width=120, highlight=False),
    )
    console.print(f"{'':32}{'ours':>8} {'uniform':>8} {'lead':>8} {'ours - best ridge':>19}")
    with Parallel(n_jobs=-1, return_as="generator") as parallel:
        jobs = (delayed(rewards)(name, seed, settings) for name in names for seed in seeds)
        found = parallel(jobs)
        for name in names:
            console.print(f"{name:32}{verdict([next(found) for _ in seeds])}")


if __name__ == "__main__":
    main()
