"""A study from its first cell to its tables: first what is tuned, then what is reported."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halfseen.simulation import simulate
from halfseen.simulation.cells import Cell
from halfseen.simulation.store import Store
from halfseen.simulation.tables import Tables
from halfseen.simulation.tune import run_tasks, write_calibration
from halfseen.studies.spec import Place, Study


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

    `announce` is called with "tuning" or "study" and all cells of that stage before it runs. `how`
    are `jobs`, `cluster`, `again` and `progress`; these and the others are as in
    `halfseen.simulation.simulate.run`. What was chosen joins the manifest and `calibration.csv`.

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
            "chosen": [_row(place, settings) for place, settings in chosen.items()],
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


def _row(place: Place, settings: Mapping[str, Any]) -> dict[str, Any]:
    return dict(zip(("setting", "p", "method"), place, strict=True)) | {"settings": settings}
