"""Results made by hand: the numbers are chosen, the files are those of a real run."""

from halfseen.paper.study import Setting, Small, Study
from halfseen.simulation.cells import Result, kept_rounds
from halfseen.simulation.results import Results, versions

WORLD = {"kind": "low-rank", "dim": 8, "rank": 2, "horizon": 40}
METHODS = {"tofu": {}, "zf-oful": {}, "uniform": {}}


def setting(world=WORLD, methods=METHODS, probs=(0.8, 0.2), **more):
    return Setting(world=world, methods=methods, observe_probs=probs, **more)


def small_study(settings=None, *, seeds=range(4), **more):
    """Return a small study; its settings are by default one, called "default"."""
    given = {"figures": lambda results: (), "claims": lambda results: {}, "small": Small()} | more
    return Study(
        name=given.pop("name", "small"),
        title=given.pop("title", "A small study"),
        seeds=seeds,
        settings=settings or {"default": setting()},
        **given,
    )


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
    """Write results of a study; `regret`, `rank`, `diagnostics`, `run` are functions of a key.

    `run` says which cells were run at all.
    """

    def made(cell):
        told = None if diagnostics is None else diagnostics(cell.key)
        return made_result(cell, regret(cell.key), 2.0 if rank is None else rank(cell.key), told)

    finished = [(cell, made(cell)) for cell in study.cells() if run is None or run(cell.key)]
    manifest = {
        "study": study.to_dict(),
        "scale": scale,
        "versions": versions(),
        "seconds": 1.5,
        "cells_run_now": 3,
    }
    results = Results.of(finished)
    results.settings, results.manifest = study.places(), manifest
    results.write(folder)
    return results


def wobble(key):
    """Return a small number that differs from seed to seed and is zero on average over four."""
    return (-0.3, 0.1, 0.3, -0.1)[key.seed % 4]


LEVELS = {"tofu": 5.0, "zf-oful": 9.0, "uniform": 30.0}


def regret(key):
    """Return a regret that differs by method and seed and grows as fewer entries are seen."""
    return LEVELS.get(key.method, 7.0) / (key.p or 1.0) + wobble(key)


def without_seconds(results):
    """Return the rows of `per_seed` without what differs from run to run."""
    return [row | {"seconds": None} for row in results.per_seed]


def written_tables(folder):
    """Return the tables of a folder; equal runs give equal ones."""
    names = ("summary.csv", "trajectories.csv.gz", "diagnostics.csv")
    tables = {name: (folder / name).read_bytes() for name in names}
    lines = (folder / "per_seed.csv").read_text().splitlines()
    return tables | {"per_seed.csv": [line.rpartition(",")[0] for line in lines]}
