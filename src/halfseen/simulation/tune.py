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

_SAME = 1e-9  # relative difference below which means are equal, so that rounding does not decide


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
    """A method to be tuned in a world on validation seeds; the seed of `place` is ignored."""

    place: CellKey
    method: Method
    grid: Grid
    world: World
    seeds: tuple[int, ...]

    def cells(self) -> list[Cell]:
        """Return the cells of all candidates, under names such as `zf-oful?ridge=0.1`."""
        found = []
        for candidate in candidates(self.grid):
            values = "&".join(f"{name}={json.dumps(value)}" for name, value in candidate.items())
            place = self.place._replace(method=f"{self.place.method}?{values}")
            method = applied(self.method, candidate)
            found += [
                Cell(key=place._replace(seed=seed), world=self.world, method=method, points=2)
                for seed in self.seeds
            ]
        return found

    def outcome(self, regrets: Sequence[float]) -> Tuned:
        """Return the candidate with the lowest mean regret, given those of all cells."""
        tried, n = candidates(self.grid), len(self.seeds)
        found = [regrets[at : at + n] for at in range(0, len(regrets), n)]
        best = best_of([math.fsum(each) / n for each in found])
        rows = [
            self.place._asdict()
            | {"candidate": json.dumps(candidate), "seed": seed}
            | {"final_regret": regret, "selected": int(at == best)}
            for at, candidate in enumerate(tried)
            for seed, regret in zip(self.seeds, found[at], strict=True)
        ]
        return Tuned(applied(self.method, tried[best]), tried[best], rows)


def tune(
    method: str | Method,
    grid: Grid,
    world: World,
    seeds: Iterable[int],
    *,
    reporting: Iterable[int],
    jobs: int | None = None,
) -> Tuned:
    """Choose settings of a method by its mean final regret on validation seeds.

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
    validation = tuple(seeds_from(seeds))
    both = sorted(set(validation) & set(seeds_from(reporting)))
    if both:
        raise InvalidSettingError(
            f"must have none of the seeds that are reported on, got {both} in both: a method looks "
            "too good on the seeds that it was tuned on",
            name="seeds",
        )
    key = method if isinstance(method, str) else method.policy
    world, chosen = rooted(world), method_from(key, {} if isinstance(method, str) else method)
    place = CellKey("tuning", "default", prob_of(world), key, 0)
    task = Task(place=place, method=chosen, grid=grid, world=world, seeds=validation)
    return run_tasks([task], jobs=jobs)[0]


def run_tasks(tasks: Sequence[Task], store: Store | None = None, **how: Any) -> list[Tuned]:
    """Run the candidates of all tasks that a store does not have, and choose.

    `how` are `jobs` and `progress`, as in `simulate`.

    Raises
    ------
    HalfseenError
        A candidate failed, so that the best of the grid is not known.
    """
    cells = [task.cells() for task in tasks]
    results = run([cell for each in cells for cell in each], store, write=False, **how)
    for key, error in results.failures:
        raise HalfseenError(
            f"tuning stopped, because {key.method} failed on seed {key.seed} "
            f"(p = {key.p}): {error.strip().splitlines()[-1]}"
        )
    regrets = iter([row["final_regret"] for row in results.per_seed])
    return [
        task.outcome(list(itertools.islice(regrets, len(each))))
        for task, each in zip(tasks, cells, strict=True)
    ]


def applied(method: Method, candidate: Mapping[str, Any]) -> Method:
    """Return a method with the settings of a candidate.

    >>> applied(method_from("ra-tofu"), {"rank.cap": 5}).settings["rank"]["cap"]
    5
    """
    changed = deepcopy(method.to_dict())
    for name, value in candidate.items():
        *path, last = name.split(".")
        table = changed
        for step in path:
            table = table.setdefault(step, {})
            if not isinstance(table, dict):
                raise InvalidSettingError(
                    f"cannot be set: {step} is {table!r}, not a table", name=name
                )
        table[last] = value
    return method.changed(changed) if candidate else method


def write_calibration(folder: Path, tuned: Iterable[Tuned]) -> None:
    """Write `calibration.csv`: every candidate on every validation seed."""
    rows = (row for each in tuned for row in each.rows)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "calibration.csv").write_bytes(csv_bytes(CALIBRATION, rows))
