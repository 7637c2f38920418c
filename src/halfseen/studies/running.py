"""A study from its first cell to its tables: first what is tuned, then what is reported."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halfseen.simulation import simulate
from halfseen.simulation.cells import Cell
from halfseen.simulation.store import Store
from halfseen.simulation.tables import Tables
from halfseen.simulation.tune import Tuned, run_tasks, write_calibration
from halfseen.studies.spec import Place, Study


def run_study(
    study: Study,
    store: Store | None = None,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    again: bool = False,
    timing: bool = True,
    progress: bool = False,
    write: bool = True,
    manifest: Mapping[str, Any] | None = None,
    tell: Callable[[str, Sequence[Cell]], None] = lambda stage, cells: None,
) -> Tables:
    """Run what a store does not have of a study, and return (and write) its tables.

    Parameters
    ----------
    study : Study
    store, jobs, cluster, again, timing, progress, write, manifest
        As in `halfseen.simulation.simulate.run`. The manifest also gets what was chosen, and
        `calibration.csv` joins the tables.
    tell : callable
        Called with "tuning" or "study" and all cells of that stage before it runs.

    Raises
    ------
    HalfseenError
        A candidate failed on a validation seed.
    """
    tasks, started = study.tasks(), time.perf_counter()
    record = dict(manifest or {})
    chosen: dict[Place, dict[str, Any]] = {}
    found: list[Tuned] = []
    if tasks:
        tell("tuning", [cell for task in tasks for cell in task.cells()])
        found = run_tasks(tasks, store, jobs=jobs, cluster=cluster, again=again, progress=progress)
        for task, tuned in zip(tasks, found, strict=True):
            chosen[task.place[1:4]] = tuned.chosen
        record["tuned"] = {
            "chosen": [
                {"setting": setting, "p": p, "method": key, "settings": settings}
                for (setting, p, key), settings in chosen.items()
            ],
            "seconds": round(time.perf_counter() - started, 1),
        }
    cells = study.cells(chosen)
    tell("study", cells)
    tables = simulate.run(
        cells,
        store,
        jobs=jobs,
        cluster=cluster,
        again=again,
        timing=timing,
        progress=progress,
        write=write,
        manifest=record,
    )
    if store is not None and write:
        if found:
            write_calibration(store.folder, found)
        else:  # of an earlier command
            (store.folder / "calibration.csv").unlink(missing_ok=True)
    return tables
