"""Results as tables: columns, means by hand, and bytes that do not depend on the order."""

import csv
import gzip
import json
import statistics

import pytest

from halfseen import InvalidSettingError, LowRankWorld
from halfseen.simulation.cells import Cell, CellKey, Result, kept_rounds
from halfseen.simulation.methods import METHODS
from halfseen.simulation.results import COLUMNS, Results, mean_of
from halfseen.simulation.simulate import simulate


def cell(method, seed, p=0.5):
    key = CellKey("hand", "default", p, method, seed)
    return Cell(key=key, world=LowRankWorld(), method=METHODS["uniform"])


def result(*regret, rank=None, **fields):
    return Result(
        status="ok",
        seconds=1.23456,
        final_regret=regret[-1],
        final_rank=rank,
        rounds=tuple(range(1, len(regret) + 1)),
        regret=regret,
        ranks=(rank,) * len(regret),
        **fields,
    )


FINISHED = [
    (cell("a", 0), result(1.0, 2.0, rank=3.0, diagnostics={"n": 4, "list": [1.5, None, 2.5]})),
    (cell("a", 1), result(2.0, 6.0, rank=2.0)),
    (cell("b", 0), Result(status="failed", seconds=0.5, error="Traceback\nValueError: no")),
    (cell("b", 1), result(0.1, 0.3)),
]


def write(finished, folder, manifest=None):
    results = Results.of(finished)
    results.manifest = manifest or {}
    results.write(folder)


@pytest.fixture
def written(tmp_path):
    write(FINISHED, tmp_path, {"seeds": [0, 1]})
    return tmp_path


def rows(data):
    """Return the header as it stands and the other lines as lists."""
    first, *others = data.decode().splitlines()
    return [first, *csv.reader(others)]


def test_per_seed_has_a_row_per_cell(written):
    assert rows((written / "per_seed.csv").read_bytes()) == [
        "study,setting,p,method,seed,final_regret,final_rank,status,seconds",
        ["hand", "default", "0.5", "a", "0", "2.0", "3.0", "ok", "1.2346"],
        ["hand", "default", "0.5", "a", "1", "6.0", "2.0", "ok", "1.2346"],
        ["hand", "default", "0.5", "b", "0", "", "", "failed", "0.5"],
        ["hand", "default", "0.5", "b", "1", "0.3", "", "ok", "1.2346"],
    ]


def test_the_summary_has_means_of_the_cells_that_worked(written):
    assert rows((written / "summary.csv").read_bytes()) == [
        "study,setting,p,method,n,mean_regret,se_regret,mean_rank",
        ["hand", "default", "0.5", "a", "2", "4.0", "2.0", "2.5"],
        ["hand", "default", "0.5", "b", "1", "0.3", "", ""],
    ]


def test_trajectories_have_means_at_every_kept_round(written):
    found = rows(gzip.decompress((written / "trajectories.csv.gz").read_bytes()))
    assert found == [
        "study,setting,p,method,round,n,mean_regret,se_regret,mean_rank,se_rank",
        ["hand", "default", "0.5", "a", "1", "2", "1.5", "0.5", "2.5", "0.5"],
        ["hand", "default", "0.5", "a", "2", "2", "4.0", "2.0", "2.5", "0.5"],
        ["hand", "default", "0.5", "b", "1", "1", "0.1", "", "", ""],
        ["hand", "default", "0.5", "b", "2", "1", "0.3", "", "", ""],
    ]


def test_diagnostics_have_a_row_per_number(written):
    assert rows((written / "diagnostics.csv").read_bytes()) == [
        "study,setting,p,method,seed,name,position,value",
        ["hand", "default", "0.5", "a", "0", "n", "0", "4"],
        ["hand", "default", "0.5", "a", "0", "list", "0", "1.5"],
        ["hand", "default", "0.5", "a", "0", "list", "2", "2.5"],
    ]


def test_failures_are_reported_with_their_tracebacks_until_they_are_gone(written):
    assert "('hand', 'default', 0.5, 'b', 0)\nTraceback" in (written / "failures.txt").read_text()
    write(FINISHED[:2], written)
    assert not (written / "failures.txt").exists()


def test_the_manifest_is_strict_json(written):
    assert json.loads((written / "manifest.json").read_text()) == {"seeds": [0, 1]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(FINISHED, written, {"bad": float("nan")})


def test_the_standard_error_is_the_sample_deviation_over_root_n():
    values = [1.0, 2.0, 4.0, 5.0]
    assert mean_of(values) == (3.0, pytest.approx(statistics.stdev(values) / 2, abs=1e-15))
    assert mean_of([]) == (None, None)
    assert mean_of([7.0]) == (7.0, None)


@pytest.mark.parametrize(("horizon", "points"), [(1, 100), (5, 100), (100, 2), (400, 100), (7, 3)])
def test_kept_rounds_begin_with_the_first_and_end_with_the_last(horizon, points):
    at = kept_rounds(horizon, points)
    assert (at[0], at[-1]) == (1, horizon)
    assert len(at) == min(horizon, points)
    assert (at[1:] > at[:-1]).all()


def test_every_table_becomes_a_frame_with_its_columns_and_types():
    world = LowRankWorld(dim=4, rank=1, horizon=5)
    tables = simulate(["zf-oful", "uniform"], world, range(2), jobs=1)
    summary, diagnostics = tables.to_pandas("summary"), tables.to_pandas("diagnostics")
    assert summary["mean_regret"].tolist() == [row["mean_regret"] for row in tables.summary]
    assert (summary["n"].dtype, summary["mean_rank"].dtype) == ("int64", "float64")
    assert summary["mean_rank"].isna().tolist() == [False, True]  # uniform has no rank
    assert tuple(diagnostics.columns) == COLUMNS["diagnostics"]


def test_an_unknown_table_is_refused():
    with pytest.raises(InvalidSettingError, match="name must be one of"):
        Results.of([]).to_pandas("regrets")
