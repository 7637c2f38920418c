"""What is no table is refused, in a frame or in a file."""

import numpy as np
import pandas as pd
import pytest

from halfseen.errors import InvalidTableError
from halfseen.frames import Reader
from halfseen.frames.cells import Category, read_cells
from halfseen.frames.files import cells_of, columns_of


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros(3), "a table must be a data frame .* got ndarray"),
        (b"PAR1", "table.csv cannot be read as Parquet: "),
        (b"a\n\xff\xfe\n", "table.csv cannot be read as CSV: 'utf-8' codec"),
        (b"a,b\n1,2\n1,2,3\n", "cannot be read as CSV: .*Expected 2 fields in line 3, saw 3"),
        (b"a,b\n1,2,3\n4,5,6\n", "cannot be read as CSV: Length of header or names does not match"),
        (b"", "table.csv cannot be read as CSV: No columns"),
        (b"a,a\n1,2\n", "column 'a' appears twice"),
    ],
)
def test_what_is_no_table_is_refused(table, message, tmp_path):
    if isinstance(table, bytes):
        (tmp_path / "table.csv").write_bytes(table)
        table = tmp_path / "table.csv"
    with pytest.raises(InvalidTableError, match=message):
        columns_of(table)


def test_a_category_of_numbers_has_the_same_levels_for_agents_and_tools():
    frame = pd.DataFrame({"zip": pd.Categorical([3.0, None, 4.5])})
    cells = cells_of(columns_of(frame)["zip"])
    levels = Reader().read(frame).columns
    assert levels == [read_cells("zip", cells, isinstance(cells, Category))] == [["3", None, "4.5"]]


def test_an_agent_reads_no_files(tmp_path):
    (tmp_path / "table.csv").write_text("a\n1\n")
    with pytest.raises(InvalidTableError, match="a table must be a data frame"):
        Reader().read(str(tmp_path / "table.csv"))
