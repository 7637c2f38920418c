"""Finished cells on disk: what a killed process leaves behind, and when a cell is another one."""

from dataclasses import replace

import pytest

from halfseen.simulation import cells as fingerprints
from halfseen.simulation.cells import Cell, CellKey, Result, run_cell
from halfseen.simulation.methods import METHODS, method_from
from halfseen.simulation.simulate import run
from halfseen.simulation.store import Store
from halfseen.worlds.base import world_from

WORLD = {"kind": "low-rank", "dim": 5, "rank": 1, "n_arms": 3, "horizon": 12}
TABLE = "round,mean,a,b\n0,0.5,1,\n0,0.1,,2\n1,0.3,1,1\n1,0.9,2,\n"


def cell(seed, method="zf-oful", p=0.3, **world):
    return Cell(
        key=CellKey("small", "default", p, method, seed),
        world=world_from({**WORLD, **world}),
        method=METHODS[method],
        points=4,
    )


@pytest.fixture
def results():
    return {seed: run_cell(cell(seed)) for seed in range(3)}


def filled(folder, results):
    store = Store(folder)
    for seed, result in results.items():
        store.add(cell(seed), result)
    return store


def test_a_result_comes_back_as_it_was_put_in(tmp_path, results):
    filled(tmp_path, results)
    again = Store(tmp_path)
    assert [again.get(cell(seed)) for seed in results] == list(results.values())
    assert again.missing([cell(seed) for seed in range(4)]) == [cell(3)]


def test_nothing_is_written_before_the_first_result(tmp_path):
    store = Store(tmp_path / "not" / "yet")
    assert store.get(cell(0)) is None
    assert not (tmp_path / "not").exists()


def test_wherever_the_last_line_is_cut_only_its_cell_is_lost(tmp_path, results):
    """SIGKILL in mid-write, at every byte of the line."""
    path = filled(tmp_path, results).path
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        store = Store(tmp_path)
        lost = end < len(whole) - 1  # the newline alone is no loss
        assert store.missing([cell(1), cell(2)]) == [cell(2)] * lost, end
        store.add(cell(2), results[2])
        assert Store(tmp_path).get(cell(2)) == results[2]


@pytest.mark.parametrize(
    "line", [b"hello", b"{}", b"[1]", b"3", b'{"study": "sm', b"\xff", b"[" * 100_000], ids=range(7)
)
def test_a_broken_line_anywhere_counts_as_not_there(tmp_path, results, line):
    path = filled(tmp_path, results).path
    first, _, rest = path.read_bytes().split(b"\n", 2)
    path.write_bytes(b"\n".join([first, line, rest]))
    assert Store(tmp_path).missing([cell(seed) for seed in results]) == [cell(1)]


def test_a_cell_whose_result_has_a_changed_digit_is_run_again(tmp_path, results):
    path = filled(tmp_path, results).path
    whole = path.read_text()
    start = whole.index('"regret": [') + len('"regret": [')
    digit = next(at for at in range(start, len(whole)) if whole[at] in "12345678")
    path.write_text(whole[:digit] + "9" + whole[digit + 1 :])
    assert Store(tmp_path).missing([cell(seed) for seed in results]) == [cell(0)]


def test_a_failed_cell_is_missing_and_a_later_result_replaces_it(tmp_path, results):
    store = Store(tmp_path)
    store.add(cell(0), Result(status="failed", seconds=0.1, error="Traceback"))
    assert store.missing([cell(0)]) == [cell(0)]
    store.add(cell(0), results[0])
    assert Store(tmp_path).missing([cell(0)]) == []
    assert Store(tmp_path).get(cell(0)) == results[0]


@pytest.mark.parametrize(
    "other",
    [
        cell(0, horizon=13),
        replace(cell(0), points=5),
        replace(cell(0), method=method_from("zf-oful", {"ridge": 2.0})),
        replace(cell(0), method=METHODS["full-oful"]),
        cell(0, p=0.4, observe_prob=0.4),
    ],
    ids=["world", "points", "settings", "view", "p"],
)
def test_with_another_setting_it_is_another_cell(tmp_path, results, other):
    assert filled(tmp_path, results).missing([cell(0), other]) == [other]


def test_a_cell_without_a_fingerprint_is_run_every_time(tmp_path, monkeypatch):
    def unknown(thing):
        raise LookupError

    monkeypatch.setattr(fingerprints, "_own_files", unknown)
    store = Store(tmp_path)
    for _ in range(2):
        twins = [cell(0), replace(cell(0), key=cell(0).key._replace(method="same"))]
        assert store.missing(twins) == twins
        tables = run(twins, store, jobs=1)
        assert [row["status"] for row in tables.per_seed] == ["ok", "ok"]
    assert not store.path.exists()


def table_cell(path, seed=0):
    world = {"kind": "table", "path": str(path), "noise_scale": 0.1}
    return replace(cell(seed, p=1.0), world=world_from(world))


def test_another_table_under_the_same_name_is_another_world(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(TABLE)
    store = Store(tmp_path / "results")
    first = run([table_cell(path)], store, jobs=1)
    path.write_text(TABLE.replace("0.1", "0.2"))
    assert store.missing([table_cell(path)]) == [table_cell(path)]
    # Not even a process that has read the first table takes it for the second.
    second = run([table_cell(path)], store, jobs=1)
    regrets = [tables.per_seed[0]["final_regret"] for tables in (first, second)]
    assert regrets == pytest.approx([0.5 - 0.1, 0.5 - 0.2])


def test_a_table_that_was_moved_keeps_its_results(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(TABLE)
    store = Store(tmp_path / "results")
    run([table_cell(path)], store, jobs=1)
    moved = path.rename(tmp_path / "moved.csv")
    assert store.missing([table_cell(moved)]) == []


def test_diagnostics_are_the_same_with_and_without_a_store(tmp_path):
    cells = [cell(seed, method="tofu", horizon=60) for seed in range(2)]
    kept, direct = run(cells, Store(tmp_path), jobs=1), run(cells, jobs=1)
    assert kept.diagnostics == direct.diagnostics
    assert kept.trajectories == direct.trajectories
    assert {row["name"] for row in kept.diagnostics} >= {"epoch_starts", "epoch_ranks"}


def test_a_cell_under_two_names_is_run_once(tmp_path):
    twin = replace(cell(0), key=cell(0).key._replace(study="other", method="same"))
    tables = run([cell(0), twin, cell(1)], Store(tmp_path), jobs=1)
    assert len(Store(tmp_path).path.read_text().splitlines()) == 2
    first, second, third = (row["final_regret"] for row in tables.per_seed)
    assert first == second != third
    assert [row["method"] for row in tables.per_seed] == ["zf-oful", "same", "zf-oful"]
