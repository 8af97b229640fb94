"""Expressions: the value for a record is the value for columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.columns import ColumnLayout
from firesteel.common.expression_evaluation import evaluation_of, name_of
from firesteel.common.expressions import Expression, col, lit
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.common.types import Row
from firesteel.errors import InvalidProgramError

TYPE = Types.ROW_NAMED(
    ["i", "l", "f", "d", "s", "b"],
    [Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(), Types.STRING(), Types.BOOLEAN()],
)
LAYOUT = ColumnLayout(TYPE)
_LONG = st.integers(-(2**63), 2**63 - 1)
_TEXT = st.text("aß𝄞b", max_size=3)
_DOUBLES = st.sampled_from([0.0, -0.0, 1.5, -2.0, 3.0, 1e308, float("inf"), float("nan"), 2.0**53])
_SMALL = st.integers(-3, 3)
RECORDS = st.lists(
    st.builds(
        lambda *values: TYPE.convert_batch([values])[0],
        st.none() | _SMALL | st.integers(-(2**31), 2**31 - 1),
        st.none() | _SMALL | _LONG | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1]),
        st.none() | st.floats(width=32),
        st.none() | _DOUBLES,
        st.none() | _TEXT,
        st.none() | st.booleans(),
    ),
    min_size=1,
    max_size=6,
)

integers: st.SearchStrategy[Expression] = st.deferred(
    lambda: st.one_of(
        st.sampled_from([col("i"), col("l"), col(1)]),
        (_SMALL | _LONG).map(lit),
        st.builds(
            lambda left, right, combine: combine(left, right),
            integers,
            integers,
            st.sampled_from(
                [
                    lambda a, b: a + b,
                    lambda a, b: a - b,
                    lambda a, b: a * b,
                    lambda a, b: a // b,
                    lambda a, b: a % b,
                    lambda a, b: a.fill_null(b),
                ]
            ),
        ),
        integers.map(lambda a: -a),
        integers.map(abs),
        strings.map(lambda a: a.length()),
    )
)
numbers: st.SearchStrategy[Expression] = st.deferred(
    lambda: st.one_of(
        integers,
        st.sampled_from([col("f"), col("d")]),
        _DOUBLES.map(lit),
        st.builds(
            lambda left, right, combine: combine(left, right),
            numbers,
            numbers,
            st.sampled_from(
                [
                    lambda a, b: a + b,
                    lambda a, b: a - b,
                    lambda a, b: a * b,
                    lambda a, b: a / b,
                    lambda a, b: a.fill_null(b),
                ]
            ),
        ),
        numbers.map(lambda a: -a),
        numbers.map(abs),
    )
)
strings: st.SearchStrategy[Expression] = st.sampled_from(
    [col("s"), lit("ß"), col("s").fill_null("b")]
)
_COMPARISONS = st.sampled_from(
    [
        lambda a, b: a == b,
        lambda a, b: a != b,
        lambda a, b: a < b,
        lambda a, b: a <= b,
        lambda a, b: a > b,
        lambda a, b: a >= b,
    ]
)
booleans: st.SearchStrategy[Expression] = st.deferred(
    lambda: st.one_of(
        st.sampled_from([col("b"), lit(True), lit(False)]),
        st.builds(lambda a, b, compare: compare(a, b), numbers, numbers, _COMPARISONS),
        st.builds(lambda a, b, compare: compare(a, b), strings, strings, _COMPARISONS),
        st.builds(lambda a, b, compare: compare(a, b), booleans, booleans, _COMPARISONS),
        st.builds(lambda a, b: a & b, booleans, booleans),
        st.builds(lambda a, b: a | b, booleans, booleans),
        booleans.map(lambda a: ~a),
        numbers.map(lambda a: a.is_null()),
        strings.map(lambda a: a.is_not_null()),
        st.builds(lambda a, b: a.is_in(b), integers, st.lists(_SMALL, max_size=3)),
        st.builds(lambda a, b: a.is_in(b), strings, st.lists(_TEXT, max_size=3)),
        st.builds(lambda a, text: a.starts_with(text), strings, _TEXT),
        st.builds(lambda a, text: a.ends_with(text), strings, _TEXT),
        st.builds(lambda a, text: a.contains(text), strings, _TEXT),
    )
)


def text_of(values: list[Any]) -> list[str]:
    """The values as text, which tells -0.0 from 0.0, and in which NaN equals itself."""
    return list(map(repr, values))


@given(integers | numbers | booleans | strings, RECORDS)
def test_columns_and_records_give_the_same(expression: Expression, records: list[Row]) -> None:
    evaluation = evaluation_of(expression, TYPE)
    columns = LAYOUT.columns_of(records)
    try:
        found = [evaluation.of_record(record) for record in records]
    except (ArithmeticError, OverflowError):
        with pytest.raises(pa.ArrowException):
            evaluation.array_of(columns)
        return
    try:
        array = evaluation.array_of(columns)
    except pa.ArrowException:
        # The record by record way is taken then.
        return
    assert array.type == evaluation.type_info.to_arrow_type()
    assert text_of(array.to_pylist()) == text_of(found)


@pytest.mark.parametrize(
    ("expression", "type_info", "value"),
    [
        (col("price") * 0.5, Types.DOUBLE(), 2.0),
        (col("count") + 1, Types.LONG(), 8),
        (10 - col("count"), Types.LONG(), 3),
        (col("count") / 2, Types.DOUBLE(), 3.5),
        (-7 // col("count").fill_null(2), Types.LONG(), -1),
        (-8 % col("count"), Types.LONG(), 6),
        ((col("price") > 3) & ~(col("item") == "ink"), Types.BOOLEAN(), True),
        (col(0).length(), Types.LONG(), 3),
        (col(-1), Types.INT(), 7),
    ],
    ids=repr,
)
def test_values_and_types(expression: Expression, type_info: TypeInformation, value: Any) -> None:
    order = Types.ROW_NAMED(
        ["item", "price", "count"], [Types.STRING(), Types.FLOAT(), Types.INT()]
    )
    evaluation = evaluation_of(expression, order)
    record = Row("pen", 4.0, 7)
    assert evaluation.type_info == type_info
    assert evaluation.of_record(record) == value
    assert evaluation.array_of(ColumnLayout(order).columns_of([record])).to_pylist() == [value]


@pytest.mark.parametrize(
    ("type_info", "record"),
    [(Types.LONG(), 4), (Types.TUPLE([Types.LONG()]), (4,)), (Types.ROW([Types.LONG()]), Row(4))],
)
def test_fields_of_other_records(type_info: TypeInformation, record: Any) -> None:
    names = ["value" if type_info == Types.LONG() else "f0", 0]
    for name in names:
        evaluation = evaluation_of(col(name) + 1, type_info)
        assert evaluation.of_record(record) == 5
        assert evaluation.array_of(ColumnLayout(type_info).columns_of([record])).to_pylist() == [5]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("x"), r"col\('x'\): the record has the fields i, l, f, d, s, b"),
        (col(6), "the record has the fields"),
        (col("s") + 1, r"\(col\('s'\) \+ 1\): expected numbers, got String"),
        (col("d") % 2, "expected integers, got Double"),
        (col("s") < 1, "cannot compare String with Long"),
        (col("i") & True, "expected booleans, got Integer"),
        (~col("i"), "expected a boolean"),
        (col("i").length(), "expected a string"),
        (col("d").is_in([1.5]), "expected an integer, a string or a boolean"),
        (col("i").is_in(["a"]), "expected constants of type Long"),
        (col("s").fill_null(0), "a String cannot become a Long"),
    ],
    ids=repr,
)
def test_operations_that_do_not_fit_are_refused(expression: Expression, message: str) -> None:
    with pytest.raises(InvalidProgramError, match=message):
        evaluation_of(expression, TYPE)


def test_a_stream_without_a_type_is_refused() -> None:
    with pytest.raises(InvalidProgramError, match="the stream has no declared type"):
        evaluation_of(col("i"), Types.PICKLED_BYTE_ARRAY())


def test_names() -> None:
    assert name_of(col("i"), TYPE) == "i"
    assert name_of(col(1), TYPE) == "l"
    assert name_of((col("i") + 1).alias("more"), TYPE) == "more"
    with pytest.raises(InvalidProgramError, match=r"\(col\('i'\) \+ 1\) has no name"):
        name_of(col("i") + 1, TYPE)


def test_conditions_cannot_be_joined_by_and() -> None:
    with pytest.raises(InvalidProgramError, match="combine conditions with &"):
        (col("i") > 1) and (col("i") < 3)


@pytest.mark.parametrize("value", [None, b"x", 2**63, [1]])
def test_other_constants_are_refused(value: Any) -> None:
    with pytest.raises(InvalidProgramError):
        lit(value)
    with pytest.raises(InvalidProgramError):
        col("i") + value
