"""Tables in parts: whatever the parts are, the rows and what follows from them are the same."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from halfseen.errors import InvalidTableError
from halfseen.frames.parts import parts_of

N = 1000


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def frame():
    random = np.random.default_rng(0)
    table = random.normal(size=(N, 3))
    table[random.random(table.shape) < 0.4] = np.nan
    return pd.DataFrame(table, columns=list("abc")).assign(row=range(N))


def written(frame, folder, ends, **how):
    """Write rows up to each end into a file of their own; return the folder."""
    folder.mkdir()
    for number, (first, end) in enumerate(zip([0, *ends], [*ends, len(frame)], strict=True)):
        frame[first:end].to_parquet(folder / f"part.{number}.parquet", **how)
    return folder


def in_parts(frame, folder):
    """Yield the same table in other parts, some of them empty."""
    many = [40 * at for at in range(1, 12)]  # part.10 comes after part.9
    yield parts_of(written(frame, folder / "many", many, row_group_size=7))
    yield parts_of(written(frame, folder / "few", [0, 10, 10, 999]))
    yield parts_of(str(folder / "few"))
    yield parts_of(dd.from_pandas(frame, npartitions=5))
    yield parts_of(dd.read_parquet(folder / "few"))
    whole = dd.from_pandas(frame, npartitions=3)
    yield parts_of(dd.concat([whole[whole.row < 0], whole]))


def pandas_of(frame):
    return frame.to_pandas() if isinstance(frame, pa.Table) else frame


def test_rows_are_the_same_whatever_the_parts_are(frame, tmp_path):
    rows = np.array([0, 9, 10, 11, 39, 40, 500, 998, 999])
    for parts in in_parts(frame, tmp_path):
        assert len(parts) == N
        read = pd.concat([pandas_of(part) for part in parts])
        assert read.row.tolist() == frame.row.tolist()
        taken = pandas_of(parts.take(rows))
        assert np.array_equal(taken, frame.loc[rows], equal_nan=True)
        assert len(parts.take(rows[:0])) == 0
        assert parts.sum(lambda part: np.array(part["row"]).sum()) == N * (N - 1) / 2


def test_other_tables_are_in_memory(frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv")
    for table in (frame, frame.to_numpy(), {"a": [1]}, tmp_path / "a.csv", tmp_path / "none"):
        assert parts_of(table) is None


def test_a_batch_of_a_wide_or_long_file_is_small(tmp_path, monkeypatch):
    monkeypatch.setattr("halfseen.frames.parts._CELLS", 100)
    path = tmp_path / "wide"
    pd.DataFrame(np.zeros((60, 20)), columns=[f"c{at}" for at in range(20)]).to_parquet(path)
    assert [len(batch) for batch in parts_of(path)] == [5] * 12


def test_a_missing_column_is_named_with_the_files(frame, tmp_path):
    folder = written(frame, tmp_path / "table", [500])
    frame.drop(columns="b").to_parquet(folder / "part.2.parquet")
    with pytest.raises(
        InvalidTableError, match=r"part.2.parquet has no column 'b', which .*part.0"
    ):
        parts_of(folder)
    frame.assign(d=0).to_parquet(folder / "part.2.parquet")
    with pytest.raises(
        InvalidTableError, match=r"part.0.parquet has no column 'd', which .*part.2"
    ):
        parts_of(folder)
    frame[["row", "c", "a", "b"]].to_parquet(folder / "part.2.parquet")
    assert list(parts_of(folder).take(np.array([N])).column_names) == ["a", "b", "c", "row"]


@pytest.mark.parametrize("end", [-1, -10, 200, 6])
def test_a_file_that_is_cut_short_is_named(frame, tmp_path, end):
    folder = written(frame, tmp_path / "table", [500])
    path = folder / "part.1.parquet"
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(InvalidTableError, match=r"part.1.parquet cannot be read as Parquet"):
        parts_of(folder)


def test_damage_inside_a_file_is_named_when_it_is_read(frame, tmp_path):
    folder = written(frame, tmp_path / "table", [500])
    path = folder / "part.1.parquet"
    content = bytearray(path.read_bytes())
    content[4:1500] = bytes(1496)
    path.write_bytes(content)
    with pytest.raises(InvalidTableError, match=r"part.1.parquet cannot be read as Parquet"):
        list(parts_of(folder))


def test_types_that_cannot_be_joined_are_refused_and_numbers_are_joined(frame, tmp_path):
    folder = written(frame, tmp_path / "table", [500])
    frame.assign(b=1).to_parquet(folder / "part.2.parquet")
    found = parts_of(folder).take(np.array([0, N]))
    assert found["b"].to_pylist()[1] == 1.0
    frame.assign(b="red").to_parquet(folder / "part.2.parquet")
    with pytest.raises(InvalidTableError, match="columns of other types"):
        parts_of(folder).take(np.array([0, N]))


def test_a_folder_without_files_is_refused(tmp_path):
    with pytest.raises(
        InvalidTableError, match=r"has no Parquet files: none is called \*\.parquet"
    ):
        parts_of(tmp_path)
