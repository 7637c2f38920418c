"""Columns and levels become features: by name, in the order of their rows, and none is lost."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen import HalfseenError, InvalidTableError
from halfseen.frames import Encoder, EncoderField, Reader, Rows
from halfseen.state import Sizes

NAN = float("nan")


def encode(encoder, options, **how):
    return encoder.encode(Reader().read(options), **how)


def table(encoded):
    return np.where(encoded.slate.mask, encoded.slate.values, NAN)


def test_a_category_has_one_feature_per_level_hidden_where_its_value_is():
    encoded = encode(Encoder(), [{"colour": "red"}, {"colour": None}, {"colour": "blue"}])
    assert np.array_equal(table(encoded), [[1, 0], [NAN, NAN], [0, 1]], equal_nan=True)
    assert encoded.encoder.levels(0) == {1: 0}


def test_names_decide_and_not_positions():
    known = encode(Encoder(), [{"a": 1.0, "b": 2.0, "colour": "red"}]).encoder
    for options in (
        [{"b": 2.0, "colour": "red", "a": 1.0}],
        {"colour": ["red"], "b": [2], "a": [1]},
    ):
        encoded = encode(known, options)
        assert table(encoded).tolist() == [[1.0, 2.0, 1.0]]
        assert encoded.encoder is known


def test_a_new_column_and_a_new_level_enter_at_the_end():
    known = encode(Encoder(), [{"a": 1.0, "colour": "red"}]).encoder
    encoded = encode(known, [{"size": 3.0, "colour": "blue"}])
    assert np.array_equal(table(encoded), [[NAN, 0.0, 3.0, 1.0]], equal_nan=True)
    assert encoded.encoder.levels(2) == {3: 1}
    assert (known.width, encoded.encoder.width) == (2, 4)


def test_a_column_enters_with_its_first_seen_value():
    known = encode(Encoder(), [{"a": 1.0, "b": None, "c": NAN}]).encoder
    assert list(known.columns) == ["a"]
    assert encode(known, [{"b": "text", "c": 2.0}]).encoder.columns["b"].kind == "category"


def test_features_that_no_column_has_are_hidden():
    encoded = encode(Encoder(), [{"a": 1.0}], dim=3)
    assert np.array_equal(table(encoded), [[1.0, NAN, NAN]], equal_nan=True)


def test_levels_beyond_the_limit_share_features_and_say_so(caplog):
    cells = [f"level {index}" for index in range(40)]
    with caplog.at_level(logging.WARNING, logger="halfseen"):
        encoded = encode(Encoder(max_levels=3), {"city": cells})
        again = encode(encoded.encoder, {"city": cells})
    assert "column 'city' has more than 3 levels" in caplog.text
    assert len(caplog.records) == 1
    assert encoded.slate == again.slate
    assert encoded.encoder.width == again.encoder.width == 3 + 16
    assert (encoded.slate.values.sum(axis=1) == 1.0).all()
    assert str(encoded.encoder.columns["city"]) == (
        "city: category of 3 levels, all others share 16 features"
    )


ROW = st.fixed_dictionaries(
    {},
    optional={
        "a": st.sampled_from([1.0, None]),
        "b": st.sampled_from([2.0, NAN]),
        "colour": st.sampled_from(["red", "green", "blue", "black", None]),
        "size": st.sampled_from(["S", "L"]),
    },
)


@given(st.lists(ROW, min_size=1, max_size=12), st.data())
@settings(max_examples=60, deadline=None)
def test_in_whatever_parts_rows_come_their_features_are_the_same(rows, data):
    columns = {name: [row.get(name) for row in rows] for name in ("a", "b", "colour", "size")}
    cut = data.draw(st.integers(0, len(rows)))
    whole = parts = Encoder(max_levels=3)
    read = Reader().read(columns)
    whole = whole.encode(read, dim=1).encoder
    for start, stop in ((0, cut), (cut, len(rows))):
        if start < stop:
            some = {name: cells[start:stop] for name, cells in columns.items()}
            parts = parts.encode(Reader().read(some), dim=1).encoder
    assert parts.columns == whole.columns
    assert parts.encode(read, dim=1).slate == whole.encode(read, dim=1).slate


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({"x": 1.0}, {"x": "cheap"}, "'x' held numbers before, got 'cheap' in row 0.*categorical"),
        ({"x": "cheap"}, {"x": 1.0}, "'x' held strings before, got .*1.0.* in row 0.*categorical"),
        ({"x": 1.0}, {"x": float("inf")}, "'x' must be finite.*got inf in row 0.*leave it empty"),
        ({"x": 1.0, "y": 1.0}, {"y": 1.0, "x": -1e300}, "'x' must be finite.*got -1e"),
        ({"x": 1.0}, {"x": 10**400}, "'x' must be finite"),
        ({"x": 1.0}, {"x": np.longdouble("1e4000")}, "'x' must be finite"),
    ],
)
def test_a_column_that_changes_its_kind_or_is_out_of_range_is_refused(before, after, message):
    known = encode(Encoder(), [before]).encoder
    with pytest.raises(InvalidTableError, match=message):
        encode(known, [after])


def test_the_number_of_columns_is_bounded():
    with pytest.raises(InvalidTableError, match=r"'c' is one too many.*max_columns is 2"):
        encode(Encoder(max_columns=2), [{"a": 1.0, "b": 1.0, "c": 1.0}])


def test_options_without_any_seen_value_need_known_columns():
    with pytest.raises(InvalidTableError, match="at least one column"):
        encode(Encoder(), [{"a": None}])
    known = encode(Encoder(), [{"a": 1.0}]).encoder
    assert not encode(known, [{}, {"a": None}]).slate.mask.any()


def test_an_encoder_is_restored_from_its_state():
    owner = SimpleNamespace(max_levels=2, max_columns=9)
    known = encode(Encoder(2, 9), {"a": [1.0] * 4, "colour": ["w", "", "y", "z"]}).encoder
    field, sizes = EncoderField(), Sizes(owner)
    assert field.load("options", field.dump(known), sizes) == known
    for edit, message in (
        ({"features": [1]}, "each feature exactly once"),
        ({"kind": "category"}, "must have 0 features"),
        ({"kind": "id"}, "kind must be"),
        ({"name": 3}, "name must be a string, got 3"),
    ):
        broken = field.dump(known)
        broken[0] |= edit
        with pytest.raises(HalfseenError, match=message):
            field.load("options", broken, sizes)


@pytest.mark.parametrize("codes", [["3", "3;4", None], ["19", "20", None], ["nan", "inf", None]])
def test_a_column_of_strings_is_a_category_whatever_its_strings_look_like(codes):
    read = Reader().read({"code": codes})
    known = Encoder().encode(read).encoder.columns["code"]
    assert (known.kind, known.levels) == ("category", tuple(codes[:2]))
    assert Encoder().encode(Rows.from_dict(read.to_dict())).slate.dim == 2


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        (["12.5", " 3e2"], "all are numbers, such as '12.5'"),
        (["1", "2", "3", "1,5"], "3 of 4 are numbers, such as '1', but not '1,5'"),
        (["3", "3;4"], None),
    ],
)
def test_one_warning_says_how_a_category_becomes_numbers(caplog, codes, found):
    encoder = Encoder().encode(Reader().read({"price": codes})).encoder
    encoder.encode(Reader().read({"price": ["7", "8", "9"]}))
    settings = {"categorical": frozenset({"price"})}, {"numeric": frozenset({"price"})}
    for declared in settings[: 1 if "1,5" in codes or "3;4" in codes else 2]:
        Encoder().encode(Reader(**declared).read({"price": codes}))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == (found is not None)
    if found:
        assert messages[0].startswith("column 'price' is a category, because it holds strings, al")
        assert found in messages[0]
        assert "setting numeric" in messages[0]
