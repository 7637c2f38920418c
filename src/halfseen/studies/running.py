"""A study from its first cell to its tables: first what is tuned, then what is reported."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halfseen.simulation import simulate
from halfseen.simulation.cells import Cell
from halfseen.simulation.store import Store
from halfseen.simulation.tables import Tables
from halfseen.simulation.tune import run_tasks, write_calibration
from halfseen.studies.spec import Study


def run_study(
    study: Study,
    store: Store | None = None,
    *,
    timing: bool = True,
    write: bool = True,
    manifest: Mapping[str, Any] | None = None,
    announce: Callable[[str, Sequence[Cell]], None] = lambda stage, cells: None,
    **how: Any,
) -> Tables:
    """Run what a store does not have of a study, and return (and write) its tables.

    Parameters
    ----------
    study : Study
    store, timing, write, manifest
        As in `halfseen.simulation.simulate.run`. The manifest also gets the chosen settings, and
        `calibration.csv` joins the tables.
    announce : callable
        Called with "tuning" or "study" and all cells of that stage before it runs.
    **how
        `jobs`, `cluster`, `again` and `progress`, as in `halfseen.simulation.simulate.run`.

    Raises
    ------
    HalfseenError
        A candidate failed on a validation seed.
    """
    tasks, started = study.tasks(), time.perf_counter()
    if tasks:
        announce("tuning", [cell for task in tasks for cell in task.cells()])
    found = run_tasks(tasks, store, **how) if tasks else []
    chosen = {task.place[1:4]: each.chosen for task, each in zip(tasks, found, strict=True)}
    record = dict(manifest or {})
    if tasks:
        record["tuned"] = {
            "chosen": [
                {"setting": setting, "p": p, "method": key, "settings": settings}
                for (setting, p, key), settings in chosen.items()
            ],
            "seconds": round(time.perf_counter() - started, 1),
        }
    cells = study.cells(chosen)
    announce("study", cells)
    tables = simulate.run(cells, store, timing=timing, write=write, manifest=record, **how)
    if store is not None and write:
        if found:
            write_calibration(store.folder, found)
        else:  # of an earlier command
            (store.folder / "calibration.csv").unlink(missing_ok=True)
    return tables
