"""Results folders made by hand: the numbers are chosen, the files are those of a real run."""

from halfseen.reports.data import Results
from halfseen.simulation.cells import Result, kept_rounds
from halfseen.simulation.tables import Tables, versions
from halfseen.studies.reading import study_from

PLAIN = {
    "name": "small",
    "title": "A small study",
    "seeds": "0:4",
    "observe_prob": [0.8, 0.2],
    "world": {"kind": "low-rank", "dim": 8, "rank": 2, "horizon": 40},
    "methods": ["tofu", "zf-oful", "uniform"],
}


def small_study(**changes):
    """Return a small study, with some keys of its file changed."""
    return study_from({**PLAIN, **changes})


def made_result(cell, regret, rank=2.0, diagnostics=None):
    """Return the result of a cell whose regret grows evenly; None stands for a failure."""
    if regret is None:
        return Result(status="failed", seconds=0.5, error="Traceback\nValueError: by hand")
    rounds = tuple(kept_rounds(cell.horizon, 10).tolist())
    return Result(
        status="ok",
        seconds=0.5,
        final_regret=regret,
        final_rank=rank,
        rounds=rounds,
        regret=tuple(regret * round / cell.horizon for round in rounds),
        ranks=tuple(8.0 if round < 10 else rank for round in rounds),
        diagnostics=diagnostics or {},
    )


def write_results(folder, study, regret, rank=None, diagnostics=None, run=None, scale="paper"):
    """Write the results of a study; `regret`, `rank`, `diagnostics`, `run` are functions of a key.

    `run` says which cells were run at all.
    """
    cells = [cell for cell in study.cells() if run is None or run(cell.key)]
    finished = [
        (
            cell,
            made_result(
                cell,
                regret(cell.key),
                2.0 if rank is None else rank(cell.key),
                None if diagnostics is None else diagnostics(cell.key),
            ),
        )
        for cell in cells
    ]
    manifest = {"scale": scale, "versions": versions(), "seconds": 1.5, "cells_run_now": 3}
    Tables.of(finished).write(folder, manifest)
    return Results.load(folder)


def wobble(key):
    """Return a small number that differs from seed to seed and is zero on average over four."""
    return (-0.3, 0.1, 0.3, -0.1)[key.seed % 4]
