"""Settings chosen on validation seeds: the candidate of a grid with the lowest mean regret."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from halfseen.errors import HalfseenError, InvalidSettingError
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.methods import Method, method_from
from halfseen.simulation.results import Row, csv_bytes, prob_of
from halfseen.simulation.simulate import rooted, run, seeds_from
from halfseen.simulation.store import Store
from halfseen.worlds.base import World

CALIBRATION = (*CellKey._fields[:4], "candidate", "seed", "final_regret", "selected")

Grid = Mapping[str, Sequence[Any]]
"""Values to try by setting; a name with dots reaches into a table, such as "rank.multiplier"."""
Candidate = dict[str, Any]
"""One value for each setting of a grid."""

# Relative difference below which means are equal, so that rounding does not decide.
_SAME = 1e-9


def candidates(grid: Grid) -> list[Candidate]:
    """Return all combinations, the last setting changing fastest.

    >>> candidates({"ridge": [0.1, 1.0], "radius_scale": [0.5]})
    [{'ridge': 0.1, 'radius_scale': 0.5}, {'ridge': 1.0, 'radius_scale': 0.5}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def best_of(means: Sequence[float]) -> int:
    """Return which candidate wins with these mean regrets: of equally good ones the first.

    >>> best_of([5.0, 3.0, 3.0])
    1
    """
    lowest = min(means)
    return next(at for at, mean in enumerate(means) if math.isclose(mean, lowest, rel_tol=_SAME))


class Tuned(NamedTuple):
    """The outcome of a search: the method with the chosen settings, and these alone.

    `rows` are those of `calibration.csv`: every candidate on every seed.
    """

    method: Method
    chosen: Candidate
    rows: list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A method to be tuned in a world.

    Attributes
    ----------
    place : CellKey
        The key of the method's cells; its seed is ignored.
    method : Method
    grid : mapping
        Values to try by setting.
    world : World
    seeds : tuple of int
        Validation seeds.
    """

    place: CellKey
    method: Method
    grid: Grid
    world: World
    seeds: tuple[int, ...]

    def cells(self) -> list[Cell]:
        """Return the cells of all candidates, under names such as `zf-oful?ridge=0.1`."""
        return [
            Cell(
                key=self.place._replace(method=self._name(candidate), seed=seed),
                world=self.world,
                method=applied(self.method, candidate),
                points=2,
            )
            for candidate in candidates(self.grid)
            for seed in self.seeds
        ]

    def outcome(self, regrets: Mapping[CellKey, float]) -> Tuned:
        """Return the candidate with the lowest mean regret."""
        tried = candidates(self.grid)
        found = [
            [regrets[self.place._replace(method=self._name(each), seed=s)] for s in self.seeds]
            for each in tried
        ]
        best = best_of([math.fsum(each) / len(each) for each in found])
        rows = [
            self.place._asdict()
            | {"candidate": json.dumps(candidate), "seed": seed}
            | {"final_regret": regret, "selected": int(at == best)}
            for at, candidate in enumerate(tried)
            for seed, regret in zip(self.seeds, found[at], strict=True)
        ]
        return Tuned(applied(self.method, tried[best]), tried[best], rows)

    def _name(self, candidate: Candidate) -> str:
        values = "&".join(f"{name}={json.dumps(value)}" for name, value in candidate.items())
        return f"{self.place.method}?{values}"


def tune(
    method: str | Method,
    grid: Grid,
    world: World,
    seeds: Iterable[int],
    *,
    reporting: Iterable[int],
    jobs: int | None = None,
) -> Tuned:
    """Choose the settings of a method that have the lowest mean regret on validation seeds.

    Parameters
    ----------
    method : str or Method
        A standard method by key, or a method of your own.
    grid : mapping
        Values to try by setting, such as {"ridge": [0.1, 1.0], "rank.multiplier": [0.5, 1.0]}.
    world : World
    seeds : iterable of int
        Validation seeds.
    reporting : iterable of int
        The seeds on which the method will be judged, none of which may be a validation seed.
    jobs : int, optional
        Processes; all cores by default.

    Examples
    --------
    >>> from halfseen import LowRankWorld
    >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
    >>> tuned = tune("zf-oful", {"ridge": [0.1, 1.0]}, world, range(100, 102),
    ...              reporting=range(2), jobs=1)
    >>> sorted(tuned.chosen), len(tuned.rows)
    (['ridge'], 4)
    """
    _check_grid(grid)
    validation = tuple(seeds_from(seeds))
    both = sorted(set(validation) & set(seeds_from(reporting)))
    if both:
        raise InvalidSettingError(
            f"must have none of the seeds that are reported on, got {both} in both: a method looks "
            "too good on the seeds that it was tuned on",
            name="seeds",
        )
    key = method if isinstance(method, str) else method.policy
    world = rooted(world)
    task = Task(
        place=CellKey("tuning", "default", prob_of(world), key, 0),
        method=method_from(method, {}) if isinstance(method, str) else method,
        grid=grid,
        world=world,
        seeds=validation,
    )
    (tuned,) = run_tasks([task], jobs=jobs)
    return tuned


def _check_grid(grid: Grid) -> None:
    if not isinstance(grid, Mapping) or not grid:
        raise InvalidSettingError(
            f"must have at least one setting with values to try, got {grid!r}", name="grid"
        )
    for name, values in grid.items():
        listed = isinstance(values, list | tuple) and len(values) > 0
        if not listed or any(value in values[:at] for at, value in enumerate(values)):
            raise InvalidSettingError(
                f"must be a list of different values to try, got {values!r}", name=name
            )


def run_tasks(tasks: Sequence[Task], store: Store | None = None, **how: Any) -> list[Tuned]:
    """Run the candidates of all tasks that a store does not have, and choose.

    `how` are `jobs`, `again` and `progress`, as in `simulate`.

    Raises
    ------
    HalfseenError
        A candidate failed, so that the best of the grid is not known.
    """
    cells = [cell for task in tasks for cell in task.cells()]
    results = run(cells, store, write=False, **how)
    for key, error in results.failures:
        raise HalfseenError(
            f"tuning stopped, because {key.method} failed on seed {key.seed} "
            f"(p = {key.p}): {error.strip().splitlines()[-1]}"
        )
    regrets = {
        CellKey(*(row[name] for name in CellKey._fields)): row["final_regret"]
        for row in results.per_seed
    }
    return [task.outcome(regrets) for task in tasks]


def applied(method: Method, candidate: Mapping[str, Any]) -> Method:
    """Return a method with the settings of a candidate.

    >>> applied(method_from("ra-tofu", {}), {"rank.cap": 5}).settings["rank"]["cap"]
    5
    """
    if not candidate:
        return method
    changed = deepcopy(method.to_dict())
    for name, value in candidate.items():
        *path, last = name.split(".")
        table = changed
        for step in path:
            inner = table.setdefault(step, {})
            if not isinstance(inner, dict):
                raise InvalidSettingError(
                    f"cannot be set: {step} is {inner!r}, not a table", name=name
                )
            table = inner
        table[last] = value
    return method.changed(changed)


def write_calibration(folder: Path, tuned: Iterable[Tuned]) -> None:
    """Write `calibration.csv`: every candidate on every validation seed."""
    rows = (row for each in tuned for row in each.rows)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "calibration.csv").write_bytes(csv_bytes(CALIBRATION, rows))
