"""convert_batch: the values that the next operator receives, checked against PyFlink's coders."""

# ruff: noqa: DTZ001  # SQL timestamps have no time zone

import datetime as dt
import math
import struct
from array import array
from decimal import Decimal
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Instant, Row, RowKind, Types
from firesteel.errors import InvalidProgramError, TypeMismatchError
from tests.parameter_ids import without_address

T = Types
PAIR = T.TUPLE([T.INT(), T.STRING()])
ROW = T.ROW_NAMED(["a", "b"], [T.INT(), T.STRING()])
UTC_PLUS_2 = dt.timezone(dt.timedelta(hours=2))


class NamedPair(NamedTuple):
    x: int
    y: str


class Dataish:
    def __init__(self):
        self.a = 1
        self.b = "x"


CONVERSIONS = [
    # ints: bools count, fractions are cut
    (T.INT(), True, 1),
    (T.INT(), 1.5, 1),
    (T.INT(), Decimal(2), 2),
    (T.BYTE(), -128, -128),
    (T.LONG(), 2**63 - 1, 2**63 - 1),
    (T.BIG_INT(), 2**200, 2**200),
    # booleans: any unsigned byte
    (T.BOOLEAN(), 0, False),
    (T.BOOLEAN(), 255, True),
    (T.BOOLEAN(), 0.0, False),
    # floats: whatever has __float__
    (T.DOUBLE(), 1, 1.0),
    (T.DOUBLE(), True, 1.0),
    (T.DOUBLE(), Decimal("1.5"), 1.5),
    (T.FLOAT(), 0.1, 0.10000000149011612),
    (T.FLOAT(), 1e40, math.inf),
    # decimals: by their text
    (T.BIG_DEC(), Decimal("1.50"), Decimal("1.50")),
    (T.BIG_DEC(), 1, Decimal(1)),
    (T.BIG_DEC(), 1.5, Decimal("1.5")),
    (T.BIG_DEC(), "2.5", Decimal("2.5")),
    # times: milliseconds, no zone
    (T.SQL_DATE(), dt.datetime(2020, 1, 2, 3), dt.date(2020, 1, 2)),
    (T.SQL_TIME(), dt.time(1, 2, 3, 456789), dt.time(1, 2, 3, 456000)),
    (T.SQL_TIME(), dt.datetime(2020, 1, 2, 3, 4), dt.time(3, 4)),
    (T.SQL_TIME(), dt.time(1, tzinfo=dt.UTC), dt.time(1)),
    (
        T.SQL_TIMESTAMP(),
        dt.datetime(2020, 1, 2, 3, 4, 5, 678901),
        dt.datetime(2020, 1, 2, 3, 4, 5, 678000),
    ),
    (T.SQL_TIMESTAMP(), dt.datetime(2020, 1, 1, tzinfo=UTC_PLUS_2), dt.datetime(2020, 1, 1)),
    (T.SQL_TIMESTAMP(), dt.datetime(1960, 1, 1, 0, 0, 0, 500000), dt.datetime(1960, 1, 1, 0, 0, 0, 500000)),
    (T.SQL_TIMESTAMP(), dt.datetime(2039, 1, 1), dt.datetime(2039, 1, 1)),
    (T.INSTANT(), None, None),
    # collections
    (T.LIST(T.INT()), (1, True), [1, 1]),
    (T.LIST(T.DOUBLE()), [], []),
    (T.PRIMITIVE_ARRAY(T.INT()), array("i", [1, 2]), [1, 2]),
    (T.PRIMITIVE_ARRAY(T.BYTE()), bytearray(b"ab"), b"ab"),
    (T.LIST(T.BYTE()), b"ab", b"ab"),
    (T.BASIC_ARRAY(T.INT()), [1, None], [1, None]),
    (T.OBJECT_ARRAY(PAIR), [[1, "a"], None], [(1, "a"), None]),
    (T.MAP(T.STRING(), T.DOUBLE()), {"a": 1, "b": None}, {"a": 1.0, "b": None}),
    (T.MAP(T.STRING(), T.DOUBLE()), {}, {}),
    # tuples
    (PAIR, [1, "a"], (1, "a")),
    (PAIR, Row(1, "a"), (1, "a")),
    (PAIR, NamedPair(True, "a"), (1, "a")),
    (T.TUPLE([T.INSTANT(), T.PICKLED_BYTE_ARRAY()]), (None, None), (None, None)),
    # rows
    (ROW, Row(1, "x"), Row(a=1, b="x")),
    (ROW, Row(b="x", a=1), Row(a=1, b="x")),
    (ROW, Row(a=1, b="x", c=3), Row(a=1, b="x")),
    (ROW, (1, "x"), Row(a=1, b="x")),
    (ROW, [None, None], Row(a=None, b=None)),
    (ROW, {"b": "x"}, Row(a=None, b="x")),
    (ROW, Dataish(), Row(a=1, b="x")),
    (T.ROW([T.INT(), T.STRING()]), Row(1, "x"), Row(f0=1, f1="x")),
    (ROW, Row.of_kind(RowKind.DELETE, 1, "x"), Row.of_kind(RowKind.DELETE, a=1, b="x")),
]  # fmt: skip


@pytest.mark.parametrize(("type_info", "value", "expected"), CONVERSIONS, ids=without_address)
def test_a_value_becomes_what_pyflink_shows(type_info, value, expected):
    [converted] = type_info.convert_batch([value])
    assert converted == expected
    assert type(converted) is type(expected)
    # What came out fits, and goes through unchanged from then on.
    batch = [converted]
    assert type_info.convert_batch(batch) is batch


MISFITS = [
    (T.BYTE(), 128),
    (T.SHORT(), -(2**15) - 1),
    (T.INT(), 2**31),
    (T.LONG(), 2**63),
    (T.INT(), "1"),
    (T.INT(), None),
    (T.INT(), math.nan),
    (T.BIG_INT(), "1"),
    (T.BOOLEAN(), 256),
    (T.BOOLEAN(), -1),
    (T.BOOLEAN(), "true"),
    (T.BOOLEAN(), None),
    (T.DOUBLE(), "1.0"),
    (T.DOUBLE(), None),
    (T.DOUBLE(), 10**400),
    (T.STRING(), 1),
    (T.STRING(), b"a"),
    (T.STRING(), None),
    (T.BIG_DEC(), "x"),
    (T.BIG_DEC(), True),
    (T.BIG_DEC(), Decimal("NaN")),
    (T.SQL_DATE(), dt.time(1)),
    (T.SQL_TIME(), dt.date(2020, 1, 1)),
    (T.SQL_TIMESTAMP(), dt.date(2020, 1, 1)),
    (T.INSTANT(), 1),
    (T.LIST(T.INT()), "12"),
    (T.LIST(T.INT()), {1: 2}),
    (T.LIST(T.INT()), [1, None]),
    (T.LIST(T.INT()), None),
    (T.PRIMITIVE_ARRAY(T.BYTE()), [1]),
    (T.MAP(T.STRING(), T.INT()), [1]),
    (T.MAP(T.STRING(), T.INT()), {None: 1}),
    (T.MAP(T.STRING(), T.INT()), {"a": "b"}),
    (PAIR, (1,)),
    (PAIR, (1, "a", 2)),
    (PAIR, (1, None)),
    (PAIR, "ab"),
    (PAIR, None),
    (ROW, None),
    (ROW, 5),
    (ROW, (1,)),
    (ROW, Row(1, "a", 3)),
    (ROW, Row(b="x", c=1)),
    (ROW, Row(a="x", b="x")),
]


@pytest.mark.parametrize(("type_info", "value"), MISFITS, ids=str)
def test_a_value_that_does_not_fit_is_an_error(type_info, value):
    with pytest.raises(TypeMismatchError) as caught:
        type_info.convert_batch([value])
    assert caught.value.type == str(type_info)


@pytest.mark.parametrize(
    ("type_info", "batch", "bad", "reason"),
    [
        (T.BYTE(), [1, 2, 300, 400], "300", "from -128 to 127"),
        (T.STRING(), ["a", 1, None], "1", "expected str, got int"),
        (PAIR, [(1, "a"), (2, 3), ("x", "y")], "(2, 3)", "field f1: expected str, got int"),
        (ROW, [Row(1, "a"), Row("x", "y")], "<Row('x', 'y')>", "field a: expected int"),
        (T.LIST(T.INT()), [[1], [2, "x"]], "[2, 'x']", "element 1: expected int, got str"),
        (T.MAP(T.STRING(), T.INT()), [{}, {"k": "v"}], "{'k': 'v'}", "value of 'k': expected int"),
        (
            T.TUPLE([T.LIST(PAIR)]),
            [([(1, "a"), (1, 2)],)],
            "([(1, 'a'), (1, 2)],)",
            "field f0: element 1: field f1: expected str",
        ),
    ],
    ids=str,
)
def test_the_error_names_the_first_bad_value_and_the_place(type_info, batch, bad, reason):
    with pytest.raises(TypeMismatchError) as caught:
        type_info.convert_batch(batch)
    assert caught.value.value == bad
    assert reason in caught.value.reason


def test_none_is_allowed_where_the_container_says_so():
    batch = [1, None, True]
    assert T.INT().convert_batch(batch, nullable=True) == [1, None, 1]
    unchanged = [1, None]
    assert T.INT().convert_batch(unchanged, nullable=True) is unchanged


def test_a_row_that_changes_is_a_new_row():
    mine = Row(1, "a")
    [converted] = ROW.convert_batch([mine])
    converted[0] = 2
    assert mine == Row(1, "a")


def test_pickled_types_let_everything_through():
    type_info = T.PICKLED_BYTE_ARRAY()
    batch = [None, object(), 1]
    assert type_info.is_pickled
    assert type_info.convert_batch(batch) is batch
    assert not T.INT().is_pickled


def test_an_empty_batch_is_fine_for_every_type():
    for type_info in (T.INT(), T.FLOAT(), PAIR, ROW, T.LIST(ROW), T.MAP(T.INT(), ROW)):
        assert type_info.convert_batch([]) == []


def test_arrays_refuse_types_that_java_has_no_array_for():
    with pytest.raises(InvalidProgramError, match="OBJECT_ARRAY"):
        T.PRIMITIVE_ARRAY(T.STRING())
    with pytest.raises(InvalidProgramError, match="OBJECT_ARRAY"):
        T.BASIC_ARRAY(PAIR)


def test_row_types_check_their_names():
    with pytest.raises(InvalidProgramError, match="got 1 and 2"):
        T.ROW_NAMED(["a"], [T.INT(), T.INT()])
    with pytest.raises(InvalidProgramError, match="must be unique"):
        T.ROW_NAMED(["a", "a"], [T.INT(), T.INT()])


# Properties: a value that fits exactly goes through unchanged, in batches of any shape.

millis_times = st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))
millis_datetimes = st.datetimes().map(
    lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000, fold=0)
)
LEAVES = [
    (T.STRING(), st.text()),
    (T.BOOLEAN(), st.booleans()),
    (T.BYTE(), st.integers(-128, 127)),
    (T.SHORT(), st.integers(-(2**15), 2**15 - 1)),
    (T.INT(), st.integers(-(2**31), 2**31 - 1)),
    (T.LONG(), st.integers(-(2**63), 2**63 - 1)),
    (T.BIG_INT(), st.integers()),
    (T.FLOAT(), st.floats(width=32, allow_nan=False)),
    (T.DOUBLE(), st.floats(allow_nan=False)),
    (T.BIG_DEC(), st.decimals(allow_nan=False, allow_infinity=False)),
    (T.SQL_DATE(), st.dates()),
    (T.SQL_TIME(), millis_times),
    (T.SQL_TIMESTAMP(), millis_datetimes),
    (T.INSTANT(), st.builds(Instant, st.integers(-(10**12), 10**12), st.integers(0, 999_999_999))),
    (T.PICKLED_BYTE_ARRAY(), st.one_of(st.none(), st.integers(), st.text())),
    (T.PRIMITIVE_ARRAY(T.BYTE()), st.binary()),
]
NAMES = ["a", "b", "c"]


def _list(inner):
    return T.LIST(inner[0]), st.lists(inner[1], max_size=3)


def _array(inner):
    return T.OBJECT_ARRAY(inner[0]), st.lists(st.none() | inner[1], max_size=3)


def _map(inner):
    values = st.none() | inner[1]
    return T.MAP(T.STRING(), inner[0]), st.dictionaries(st.text(), values, max_size=3)


def _tuple(inners):
    return T.TUPLE([kind for kind, _ in inners]), st.tuples(*(values for _, values in inners))


def _row(inners):
    names = NAMES[: len(inners)]
    values = st.tuples(*(st.none() | values for _, values in inners))
    kinds = st.sampled_from(RowKind)
    rows = st.builds(
        lambda kind, fields: Row.of_kind(kind, **dict(zip(names, fields, strict=True))),
        kinds,
        values,
    )
    return T.ROW_NAMED(names, [kind for kind, _ in inners]), rows


typed = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        inner.map(_list),
        inner.map(_array),
        inner.map(_map),
        st.lists(inner, min_size=1, max_size=3).map(_tuple),
        st.lists(inner, min_size=1, max_size=3).map(_row),
    ),
    max_leaves=5,
)


@given(typed.flatmap(lambda pair: st.tuples(st.just(pair[0]), st.lists(pair[1], max_size=6))))
def test_values_that_fit_exactly_come_back_as_they_are(case):
    type_info, batch = case
    assert type_info.convert_batch(batch) is batch


@given(st.lists(st.floats() | st.integers(-(2**60), 2**60) | st.booleans(), min_size=1))
def test_float_rounds_to_32_bits(batch):
    def single(value):
        try:
            return struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)

    for got, value in zip(T.FLOAT().convert_batch(batch), batch, strict=True):
        assert type(got) is float
        assert got == single(value) or (math.isnan(got) and math.isnan(value))


@given(st.lists(st.tuples(st.booleans() | st.integers(0, 9), st.text()), min_size=1))
def test_converting_again_changes_nothing(batch):
    for type_info in (PAIR, ROW):
        once = type_info.convert_batch(batch)
        assert type_info.convert_batch(once) is once
        assert [tuple(value) for value in once] == [(int(n), text) for n, text in batch]
