"""Slate and Decision: what may cross a border, and what is turned away there."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from halfseen.errors import InvalidInputError, InvalidSlateError
from halfseen.linear.covariance import Moments
from halfseen.values import LARGEST, SMALLEST, Decision, Note, Slate
from robustness.hostile import bad_slates

NAN, INF = math.nan, math.inf
POISON = [NAN, INF, -INF, 1e300, -1e300]
TABLE = np.array([[1.0, -2.0, 3.0], [4.0, 5.5, -0.25]])
SEEN = np.array([[True, False, True], [False, True, True]])
PLAIN = np.where(SEEN, TABLE, 0.0)

entries = st.floats(-LARGEST, LARGEST).filter(lambda x: x == 0.0 or abs(x) >= SMALLEST)
shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
tables = shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=entries))


# -- Slate: what is seen ---------------------------------------------------------------------------


@given(tables, st.data())
def test_seen_values_are_kept_bit_by_bit_and_hidden_ones_are_zero(values, data):
    mask = data.draw(hnp.arrays(np.bool_, values.shape))
    poison = data.draw(hnp.arrays(np.float64, values.shape, elements=st.sampled_from(POISON)))
    slate = Slate(np.where(mask, values, poison), mask)
    assert slate.values.tobytes() == np.where(mask, values, 0.0).tobytes()
    np.testing.assert_array_equal(slate.mask, mask)
    assert slate == Slate(np.where(mask, values, NAN))


def test_the_mask_of_a_masked_array_hides():
    for poison in POISON:
        masked = np.ma.array(np.where(SEEN, TABLE, poison), mask=~SEEN)
        assert Slate(masked) == Slate(TABLE, SEEN)
    masked = np.ma.array([[INF, 1.0, -INF]], mask=[[True, False, False]])
    with pytest.raises(InvalidSlateError, match=r"got -inf at arm 0, feature 2"):
        Slate(masked)


# -- Slate: what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("wild", [INF, -INF, math.nextafter(LARGEST, INF)])
def test_a_wild_seen_entry_is_refused_with_arm_feature_and_value(wild):
    values = np.zeros((4, 3))
    values[2, 1] = wild
    for mask in (None, np.ones((4, 3), dtype=bool)):
        with pytest.raises(InvalidSlateError) as refusal:
            Slate(values, mask)
        assert f"got {wild} at arm 2, feature 1" in str(refusal.value)
    with pytest.raises(InvalidSlateError, match="got nan at arm 1, feature 0"):
        Slate([[NAN, 1.0], [NAN, 1.0]], np.array([[False, True], [True, True]]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_no_arms_or_no_features_are_refused(shape):
    with pytest.raises(InvalidSlateError, match="at least one arm and one feature"):
        Slate(np.zeros(shape))


def test_what_is_not_a_table_of_real_numbers_is_refused():
    for values in bad_slates(2):
        with pytest.raises(InvalidSlateError):
            Slate.of(values, dim=2)


@pytest.mark.parametrize(
    "mask",
    [
        pytest.param(SEEN[:1], id="one row, which would broadcast"),
        pytest.param(SEEN.T, id="transposed"),
        pytest.param(True, id="a single flag"),
    ],
)
def test_a_mask_of_another_shape_is_refused(mask):
    with pytest.raises(InvalidSlateError, match=r"must have the shape of the values \(2, 3\)"):
        Slate(TABLE, mask)


@pytest.mark.parametrize("dtype", [float, np.uint8, object])
def test_a_mask_that_is_not_boolean_is_refused_and_never_cast(dtype):
    with pytest.raises(InvalidSlateError, match=r"must be of type bool \(True = seen\), got"):
        Slate(TABLE, SEEN.astype(dtype))


# -- Slate: forms of the same numbers --------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(np.ndarray.tolist, id="list"),
        pytest.param(np.asfortranarray, id="Fortran order"),
        pytest.param(lambda values: np.repeat(values, 2, axis=1)[:, ::2], id="strided"),
        pytest.param(lambda values: values.astype(">f8"), id="big-endian"),
        pytest.param(lambda values: values.astype(np.float32), id="single precision"),
        pytest.param(lambda values: values.astype(object), id="objects"),
    ],
)
def test_the_form_of_the_numbers_never_matters(form):
    for mask in (None, SEEN, SEEN.tolist()):
        assert Slate(form(TABLE), mask) == Slate(TABLE, mask)
    hidden = np.where(SEEN, TABLE, NAN)
    assert Slate(form(hidden)) == Slate(hidden)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_callers_arrays_are_neither_changed_nor_shared(order):
    values, mask = np.array(np.where(SEEN, TABLE, NAN), order=order), SEEN.copy()
    before = values.tobytes()
    slates = Slate(values), Slate(values, mask)
    assert (values.tobytes(), mask.tobytes()) == (before, SEEN.tobytes())
    values[:], mask[:] = 7.0, True
    assert slates == (Slate(TABLE, SEEN), Slate(TABLE, SEEN))


# -- Slate: immutable, comparable ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["table", "values", "mask", "context", "items"])
def test_a_slate_and_what_is_made_of_it_cannot_be_changed(name):
    slate = Slate(TABLE, context=TABLE[0], items=[0, 1])
    derived = slate.some([1, 0]), slate.some(slice(1)), Slate.of(slate, context=TABLE[1])
    for each in (slate, *derived, copy.deepcopy(slate), pickle.loads(pickle.dumps(slate))):
        with pytest.raises(AttributeError):
            setattr(each, name, 1)
        with pytest.raises(ValueError, match="read-only"):
            getattr(each, name)[..., 0] = 0
    assert slate == copy.deepcopy(slate) == Slate(TABLE, context=TABLE[0], items=[0, 1])


def test_an_in_place_line_of_a_policy_raises_and_changes_no_sums():
    """Moments keep the table of a slate until it enters their sums."""
    slate, sums = Slate(TABLE, SEEN), Moments(3)
    sums.absorb(slate)
    before = sums.sums().products
    with pytest.raises(ValueError, match="read-only"):
        slate.table[np.isnan(slate.table)] = 0.0
    assert (sums.sums().products == before).all()


def test_slates_are_equal_when_the_same_is_seen():
    assert Slate(TABLE, SEEN) == Slate(TABLE.copy(), SEEN.copy())
    assert Slate(TABLE, SEEN) != Slate(TABLE)
    assert Slate(TABLE) != Slate(TABLE + 1.0)
    assert Slate(TABLE) != Slate(TABLE[:1])
    assert Slate([[0.0, 1.0]]) != Slate([[NAN, 1.0]])
    assert Slate(TABLE) != "a slate"
    assert hash(Slate([[0.0, NAN]])) == hash(Slate([[-0.0, NAN]]))
    assert len({Slate(TABLE), Slate(TABLE.copy()), Slate(TABLE + 1.0)}) == 2


def test_of_returns_a_slate_as_it_is_and_makes_one_of_anything_else():
    slate = Slate(TABLE, SEEN)
    assert Slate.of(slate) is slate
    assert Slate.of(slate, dim=3) is slate
    assert Slate.of(TABLE.tolist(), dim=3) == Slate(TABLE)
    with pytest.raises(InvalidSlateError, match="must have 4 features per arm, got 3"):
        Slate.of(slate, dim=4)


# -- Decision --------------------------------------------------------------------------------------


def decide(**changes):
    fields = {
        "policy": "Uniform",
        "arm": 1,
        "note": Note(7, 2, np.array([0.1, NAN, -0.0])),
        "parts": np.array([[0.5, 0.75], [0.25, 0.5], [0.25, 0.25]]),
    }
    return Decision(**(fields | changes))


def plain(**changes):
    return decide().to_dict() | changes


def test_a_decision_shows_the_chosen_arm_as_seen():
    decision = decide()
    assert decision.values.tolist() == [0.1, 0.0, 0.0]
    assert decision.mask.tolist() == [True, False, True]
    assert (decision.id, decision.arm, decision.round, decision.epoch) == ("", 1, 7, 2)
    assert decision.scores.tolist() == [0.5, 0.75]
    assert decision.estimates.tolist() == [0.25, 0.5]
    assert decision.widths.tolist() == [0.25, 0.25]
    assert decision.probabilities.tolist() == [0.0, 1.0]
    assert decision.probability == 1.0
    drawn = decide(probabilities=np.array([0.25, 0.75]))
    assert (drawn.probability, drawn.probabilities.tolist()) == (0.75, [0.25, 0.75])


ARRAYS = ["values", "mask", "scores", "estimates", "widths", "probabilities"]


@pytest.mark.parametrize("name", ["id", "arm", "round", "epoch", *ARRAYS])
def test_a_decision_cannot_be_changed(name):
    decision = decide()
    with pytest.raises(AttributeError):
        setattr(decision, name, 1)
    if name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(decision, name)[0] = 1


def test_a_decision_is_plain_json_with_null_for_hidden():
    text = json.dumps(decide().to_dict(), allow_nan=False)
    assert json.loads(text) == {
        "policy": "Uniform",
        "arm": 1,
        "round": 7,
        "epoch": 2,
        "values": [0.1, None, 0.0],
        "context": None,
        "item": None,
        "inner": None,
        "scores": [0.5, 0.75],
        "estimates": [0.25, 0.5],
        "widths": [0.25, 0.25],
        "probability": 1.0,
        "probabilities": [0.0, 1.0],
    }


rows = hnp.arrays(np.float64, st.integers(1, 6), elements=entries | st.just(NAN))
notes = st.builds(
    Note,
    round=st.integers(1, 2**62),
    epoch=st.integers(-1, 60),
    arm=rows,
    context=st.none() | rows,
    item=st.none() | st.integers(0, 2**53 - 1),
    inner=st.none(),
)
decisions = st.builds(
    Decision,
    policy=st.text(min_size=1, max_size=8),
    arm=st.just(0),
    note=notes | st.builds(lambda outer, inner: outer._replace(inner=inner), notes, notes),
    parts=hnp.arrays(
        np.float64,
        st.tuples(st.just(3), st.integers(1, 5)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
)


@given(decisions, st.data())
def test_a_decision_comes_back_from_json_bit_by_bit(decision, data):
    arm = data.draw(st.integers(0, len(decision.scores) - 1))
    law = np.array(data.draw(st.lists(st.floats(0.1, 1.0), min_size=arm + 1, max_size=arm + 1)))
    law = np.pad(law / law.sum(), (0, len(decision.scores) - len(law)))
    changes = {"arm": arm, "probabilities": law.tolist()}
    decision = Decision.from_dict(decision.to_dict() | changes)
    back = Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert back == decision
    assert hash(back) == hash(decision)


@pytest.mark.parametrize("plain", [None, 7, [], {}, "id", [1, 2]])
def test_what_is_no_decision_is_refused(plain):
    with pytest.raises(InvalidInputError, match="not a decision"):
        Decision.from_dict(plain)


@pytest.mark.parametrize(
    "name", sorted(plain().keys() - {"probability", "context", "item", "inner"})
)
def test_a_decision_with_a_missing_field_is_refused(name):
    fields = plain()
    del fields[name]
    with pytest.raises(InvalidInputError, match=f"not a decision.*{name}"):
        Decision.from_dict(fields)


NONSENSE = {
    "policy": [7, None, ["run"], True],
    "inner": [7, [], {"round": 1}, "x"],
    "context": [[], 7, ["x"], [INF]],
    "item": [-1, 0.5, "x", 2**53],
    "arm": [-1, 2, 0.0, "0", None, True, [0]],
    "round": [0, -3, 1.0, "1", None, True, [1]],
    "epoch": [-2, 0.0, "0", None, False, [0]],
    "values": [None, 1.0, "12", [], {"1": 2.0}, [[1.0]], [INF], [1e101], [10**400], ["x"], [True]],
    "scores": [None, [], [1.0], [[1.0, 2.0]], [1.0, INF], [1.0, None], ["1", "2"], [True, True]],
    "probabilities": [1.0, [], [1.0], [0.5, 0.6], [1.5, -0.5], [1.0, 0.0], [NAN, 1.0], ["0", "1"]],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}={value!r:.20}")
        for name, values in NONSENSE.items()
        for value in values
    ]
    + [("estimates", [0.5]), ("widths", [0.5]), ("estimates", [NAN, 0.5]), ("widths", [INF, 0.5])],
)
def test_a_field_that_makes_no_sense_is_refused(name, value):
    with pytest.raises(InvalidInputError, match="not a decision"):
        Decision.from_dict(plain(**{name: value}))


def test_decisions_are_equal_only_if_every_field_is():
    assert decide() == decide() != "a decision"
    for change in ({"policy": "Greedy"}, {"arm": 0}, {"probabilities": np.array([0.1, 0.9])}):
        assert decide(**change) != decide()


def test_values_survive_copy_and_pickle():
    for copied in (copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        assert copied(decide()) == decide()
        assert copied(Slate(TABLE, SEEN)) == Slate(TABLE, SEEN)
