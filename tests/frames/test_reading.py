"""All forms of a table say the same; what is missing is hidden; what cannot be used is refused."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from halfseen import InvalidTableError, Slate
from halfseen.frames import Reader, Rows

NAN = float("nan")
DICTS = [
    {"price": 3.5, "stock": 4, "colour": "red", "new": True},
    {"price": None, "stock": None, "colour": None, "new": None},
    {"price": 5.0, "stock": 7, "colour": "blue", "new": False},
]
COLUMNS = {name: [row[name] for row in DICTS] for name in DICTS[0]}
ABSENT = [{name: cell for name, cell in row.items() if cell is not None} for row in DICTS]
NULLABLE = {"price": "Float64", "stock": "Int64", "colour": "string", "new": "boolean"}
ENUM = {"colour": pl.Enum(["red", "blue"])}
FORMS = {
    "dicts": DICTS,
    "dicts with absent keys": ABSENT,
    "a dict of columns": COLUMNS,
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, nullable": pd.DataFrame(COLUMNS).astype(NULLABLE),
    "pandas, categorical": pd.DataFrame(COLUMNS).astype({"colour": "category"}),
    "pandas by pyarrow": pa.table(COLUMNS).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame(COLUMNS),
    "polars, enum": pl.DataFrame(COLUMNS, schema_overrides=ENUM),
    "pyarrow": pa.table(COLUMNS),
    "pyarrow, dictionary": pa.table(
        COLUMNS | {"colour": pa.array(COLUMNS["colour"]).dictionary_encode()}
    ),
}


class Broken:
    """Fails wherever it is asked."""

    def __getattr__(self, name):
        raise RuntimeError("broken inside")


def plain(rows):
    return rows._replace(columns=[list(map(str, column)) for column in rows.columns])


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_says_the_same(form):
    rows = Reader().read(FORMS[form])
    assert plain(rows) == plain(Reader().read(DICTS))
    assert rows.items == [0, 1, 2]


NUMBERS = np.array([[1.0, NAN, 3.0], [4.0, 5.0, NAN]])
NAMES = ["a", "b", "c"]


@pytest.mark.parametrize(
    "options",
    [
        pd.DataFrame(NUMBERS, columns=NAMES),
        pl.DataFrame(NUMBERS, schema=NAMES).fill_nan(None),
        pa.table(dict(zip(NAMES, NUMBERS.T, strict=True))),
        [{"a": 1.0, "c": 3.0}, {"a": 4.0, "b": 5.0}],
    ],
    ids=["pandas", "polars", "pyarrow", "dicts"],
)
def test_a_table_of_numbers_is_read(options):
    rows = Reader().read(options)
    table = np.column_stack([rows.columns[rows.names.index(name)] for name in NAMES])
    assert np.array_equal(table, NUMBERS, equal_nan=True)


@pytest.mark.parametrize("options", [NUMBERS, NUMBERS.tolist(), Slate(NUMBERS)])
def test_columns_of_an_array_are_named_by_their_position(options):
    rows = Reader(ignore=frozenset({"1"})).read(options)
    assert rows.names == ("0", "2")
    assert Reader().read(options).names == ("0", "1", "2")


@pytest.mark.parametrize(
    "missing", [None, NAN, np.nan, np.float32("nan"), pd.NA, pd.NaT, decimal.Decimal("nan")]
)
def test_every_kind_of_missing_is_hidden(missing):
    numbers, texts = Reader().read([{"x": 1.5, "y": "a"}, {"x": missing, "y": missing}]).columns
    assert np.isnan(numbers[1])
    assert texts[1] is None


def test_the_index_a_column_or_the_position_is_the_id():
    frame = pd.DataFrame({"sku": ["x", "y"], "price": [1.0, 2.0]}, index=[10, 20])
    assert Reader(ignore=frozenset({"sku"})).read(frame).items == [10, 20]
    by_column = Reader(id="sku")
    tables = (
        frame,
        frame.set_index("sku"),
        pl.from_pandas(frame),
        pa.table(frame.reset_index(drop=True)),
        frame.to_dict("records"),
    )
    for options in (*tables, frame.to_dict("list")):
        rows = by_column.read(options)
        assert (rows.items, rows.names) == (["x", "y"], ("price",))
    assert Reader().read(["low", "high"]).items == ["low", "high"]


def test_rows_may_have_no_columns_but_their_ids():
    for options in (pd.DataFrame({"sku": ["x", "y"]}), pl.DataFrame({"sku": ["x", "y"]})):
        assert Reader(id="sku").read(options) == (["x", "y"], (), [])
    assert Reader().read([{}, {}]).items == [0, 1]


def test_a_column_declared_categorical_has_labels():
    reader = Reader(categorical=frozenset({"zip"}))
    for cells in ([3, None, 3.0], ["3", None, "3"], pd.array([3, None, 3], dtype="Int64")):
        assert reader.read({"zip": cells}).columns == [["3", None, "3"]]


def test_strings_of_a_column_declared_numeric_are_numbers():
    reader, cells = Reader(numeric=frozenset({"price"})), ["3.5", None, " 4 ", ""]
    for table in (
        {"price": cells},
        [{"price": cell} for cell in cells],
        pd.DataFrame({"price": cells}),
        pd.DataFrame({"price": cells}, dtype="category"),
        pl.DataFrame({"price": cells}),
        pl.DataFrame({"price": cells}, schema={"price": pl.Categorical}),
        {"price": [3.5, None, "4", float("nan")]},
    ):
        (prices,) = reader.read(table).columns
        np.testing.assert_array_equal(prices, [3.5, np.nan, 4.0, np.nan])
    with pytest.raises(InvalidTableError, match=r"'price' must be numbers .* got 'cheap' in row 1"):
        reader.read({"price": ["3", "cheap"]})


@pytest.mark.parametrize("cells", [[1.5, 2.5, 3.5], [1, 2, 3]])
def test_masked_cells_of_a_column_are_hidden(cells):
    masked = np.ma.array(cells, mask=[False, True, False])
    rows = Reader().read({"x": masked, "y": [1.0, 2.0, 3.0]})
    assert np.isnan(rows.columns).tolist() == [[False, True, False], [False] * 3]


def test_a_categorical_series_is_a_category_in_a_dict_and_in_a_frame():
    series = pd.Series([3, 1.5, 3], dtype="category")
    in_dict, in_frame = Reader().read({"zip": series}), Reader().read(pd.DataFrame({"zip": series}))
    assert in_dict.columns == in_frame.columns == [["3", "1.5", "3"]]


def test_rows_survive_json():
    rows = Reader().read(DICTS)
    assert plain(Rows.from_dict(rows.to_dict())) == plain(rows)


def test_columns_of_a_frame_may_be_numbered():
    frame = pd.DataFrame({0: [1.5, 2.5], 1: ["a", "b"]})
    rows = Reader().read(frame)
    assert rows.names == ("0", "1")
    assert Reader().read(frame[[0]]).names == ("0",)
    with pytest.raises(InvalidTableError, match="'0' appears twice"):
        Reader().read(frame.assign(**{"0": 3.0}))


DATE = datetime.datetime(2026, 1, 1)
REFUSED = {
    "a date": ([{"day": DATE.date()}], "'day' must not be dates.*age in days"),
    "a column of times": (pd.DataFrame({"day": [DATE]}), "'day' must not be dates"),
    "a duration": (pl.DataFrame({"wait": [datetime.timedelta(1)]}), "'wait' must not be dates"),
    "an object that fails": ([{"x": 1.0}, {"x": Broken()}], "'x' must be numbers, booleans or"),
    "a frame that fails": (Broken(), "cannot be read: RuntimeError: broken inside"),
    "a list": ([{"tags": ["a"]}], "'tags' must not be nested.*its own column"),
    "a column of lists": (pl.DataFrame({"tags": [["a"]]}), "'tags' must not be nested"),
    "bytes": ([{"raw": b"x"}], "'raw' must be numbers, booleans or strings, got bytes"),
    "numbers and texts": ([{"x": 1}, {"x": "n/a"}], "'x' must be.*not both.*'n/a' in row 1.*empty"),
    "a column twice": (pd.DataFrame([[1, 2]], columns=["x", "x"]), "'x' appears twice.*rename"),
    "an id twice": (
        pd.DataFrame({"x": [1, 2]}, index=["k", "k"]),
        "the index has 'k' twice, in rows 0 and 1.*reset_index",
    ),
    "an index of tuples": (
        pd.DataFrame({"x": [1]}, index=pd.MultiIndex.from_tuples([("a", 1)])),
        "the index must hold strings or whole numbers",
    ),
    "a series": (pd.Series([1.0]), r"one column is not a table.*frame\.loc\[\[label\]\]"),
    "a lazy frame": (pl.LazyFrame({"x": [1]}), "collect"),
    "one dict": ({"price": 3.0}, r"'price' of a dict must be a list.*list of dicts"),
    "a column of two dimensions": ({"a": np.zeros((2, 2))}, "'a' of a dict must.* 2 dimensions"),
    "a string too long": ([{"x": "x" * 1001}], "'x' must have strings of at most 1000.*got.*1001"),
    "a name too long": ([{"x" * 1001: 1.0}], "the header must have strings of at most 1000"),
    "half a character": (["a", "\ud800"], "options has a string that is not valid Unicode"),
    "an id of many digits": ([1, 10**5000], "at most 9223372036854775807 as ids, got.*16610 bits"),
    "unequal columns": ({"a": [1], "b": [1, 2]}, "equal lengths, got 2 cells in 'b' and 1 in 'a'"),
    "nothing": ([], "at least one row"),
    "an iterator": (iter([{"x": 1}]), "must be a data frame"),
    "a list that changes its kind": ([{"x": 1}, 3], "every row must be a dict"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_by_name_with_a_remedy(case):
    options, message = REFUSED[case]
    with pytest.raises(InvalidTableError, match=message):
        Reader().read(options)


def test_an_id_column_that_is_absent_is_refused():
    for options in ([{"price": 3.0, "size": 1}], pd.DataFrame({"price": [3.0]})):
        with pytest.raises(
            InvalidTableError, match=r"'sku' is not in the table, which has 'price'.*setting id"
        ):
            Reader(id="sku").read(options)
    with pytest.raises(
        InvalidTableError, match=r"column 'sku' must hold strings.*None in row 1: convert"
    ):
        Reader(id="sku").read([{"sku": "a", "x": 1, "y": 2}, {"x": 3}])


def test_what_is_ignored_is_not_even_checked():
    reader = Reader(ignore=frozenset({"day"}))
    for options in ([{"day": DATE, "x": 1.0}], pd.DataFrame({"day": [DATE], "x": [1.0]})):
        assert reader.read(options).names == ("x",)
