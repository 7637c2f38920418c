"""What everybody may use: range errors, the error tree, named random streams."""

import math
import pickle
import re
import zlib
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen import checks, errors
from halfseen.errors import InvalidSettingError
from halfseen.seeding import stream

NOT_NUMBERS = [None, "1", True, np.True_, 1j, [1], np.ones(1), Decimal(1), math.nan]


# -- checks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.float64(1), np.int64(1), Fraction(1)])
def test_every_kind_of_real_number_becomes_a_float(value):
    number = checks.real("x", value, 0, 2)
    assert type(number) is float
    assert number == 1.0


@pytest.mark.parametrize(
    "value", [*NOT_NUMBERS, math.inf, -math.inf, pytest.param(10**400, id="10**400")]
)
def test_what_is_not_a_finite_real_number_is_refused(value):
    with pytest.raises(InvalidSettingError, match=r"x must be in \(-inf, inf\), got "):
        checks.real("x", value)


@given(st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.booleans())
def test_ends_belong_to_an_interval_unless_it_is_open(value, low_open, high_open):
    def accepts(number):
        try:
            checks.real("x", number, -1.0, 1.0, low_open=low_open, high_open=high_open)
        except InvalidSettingError:
            return False
        return True

    assert accepts(-1.0) is not low_open
    assert accepts(1.0) is not high_open
    inside = -1.0 < value < 1.0
    assert accepts(value) is (inside or (abs(value) == 1.0 and accepts(math.copysign(1.0, value))))


def test_an_error_reaches_another_process_with_its_message():
    error = InvalidSettingError("must be at least 1, got 0", name="rank")
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == "rank must be at least 1, got 0"


def test_an_observation_probability_may_be_one_and_a_failure_probability_may_not():
    assert checks.probability("p", 1) == 1.0
    assert checks.failure_prob("p", 0.5) == 0.5
    for zero_or_less in (0, -0.1):
        with pytest.raises(InvalidSettingError):
            checks.probability("p", zero_or_less)
        with pytest.raises(InvalidSettingError):
            checks.failure_prob("p", zero_or_less)
    with pytest.raises(InvalidSettingError, match=r"must be in \(0, 1\), got 1"):
        checks.failure_prob("p", 1)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 3.0, np.float64(3), math.inf, Fraction(3)])
def test_what_is_not_an_integer_is_refused(value):
    with pytest.raises(InvalidSettingError, match="n must be an integer in"):
        checks.integer("n", value)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(0, 50))
def test_both_ends_belong_to_a_range_of_integers(value, low, span):
    if low <= value <= low + span:
        assert checks.integer("n", value, low, low + span) == value
    else:
        with pytest.raises(InvalidSettingError):
            checks.integer("n", value, low, low + span)


# -- errors ----------------------------------------------------------------------------------------


def test_the_error_tree_is_the_one_drawn_in_its_docstring():
    path, drawn = {0: "HalfseenError"}, {"HalfseenError": "Exception"}
    for line, name in re.findall(r"^(    [│├└ ─]+)(\w+)", errors.__doc__, re.MULTILINE):
        depth = len(line) // 4 - 1
        path[depth], drawn[name] = name, path[depth - 1]
    ours = [each for each in vars(errors).values() if isinstance(each, type)]
    assert {each.__name__: each.__bases__[0].__name__ for each in ours} == drawn


# -- seeding ---------------------------------------------------------------------------------------


def draws(*arguments):
    return stream(*arguments).integers(0, 2**63, 8).tolist()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((7, "policy"), (8, "policy")),
        ((7, "policy"), (7, "world")),
        ((7, "policy"), (7, "Policy")),
        ((7, "policy"), (7,)),
        ((7, "a", "b"), (7, "b", "a")),
        ((7, "a", "b"), (7, "ab")),
        ((7, "a"), (7, "a", "a")),
        ((0, "a"), (2**32, "a")),
        pytest.param((7, "plumless"), (7, "buckeroo"), id="names of equal checksum"),
        pytest.param((7,), (7, ""), id="the empty name"),
        pytest.param((7 + (zlib.crc32(b"a") << 32), "b"), (7, "a", "b"), id="a large seed"),
    ],
)
def test_another_seed_or_name_shares_no_draw(one, other):
    assert not set(draws(*one)) & set(draws(*other))


def test_streams_neither_read_nor_move_the_global_generator():
    np.random.seed(1)
    before = np.random.get_state()[1].tolist()
    first = draws(5, "policy")
    assert np.random.get_state()[1].tolist() == before
    np.random.seed(2)
    assert draws(5, "policy") == first


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True])
def test_a_seed_must_be_a_whole_number_from_zero_on(seed):
    with pytest.raises(InvalidSettingError, match=r"seed must be an integer in \[0, inf\), got"):
        stream(seed, "policy")
