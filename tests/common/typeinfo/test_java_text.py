"""The text of values in print() and toString()."""

# ruff: noqa: DTZ001  # SQL timestamps have no time zone

import datetime as dt
import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Instant, Row, RowKind, Types
from firesteel.common.typeinfo.java_text import java_double, java_float, java_instant

T = Types
PAIR = T.TUPLE([T.STRING(), T.INT()])
ROW = T.ROW([T.STRING(), T.INT()])

JAVA_TEXTS = [
    (T.STRING(), "a b", "a b"),
    (T.CHAR(), "x", "x"),
    (T.INT(), -5, "-5"),
    (T.BIG_INT(), 2**70, str(2**70)),
    (T.BOOLEAN(), True, "true"),
    (T.BOOLEAN(), False, "false"),
    (T.DOUBLE(), 1.0, "1.0"),
    (T.DOUBLE(), 1e10, "1.0E10"),
    (T.DOUBLE(), 9999999.0, "9999999.0"),
    (T.DOUBLE(), 1e7, "1.0E7"),
    (T.DOUBLE(), 0.001, "0.001"),
    (T.DOUBLE(), 0.00012, "1.2E-4"),
    (T.DOUBLE(), -0.0, "-0.0"),
    (T.DOUBLE(), 123456.789, "123456.789"),
    (T.DOUBLE(), 1.7976931348623157e308, "1.7976931348623157E308"),
    (T.DOUBLE(), math.nan, "NaN"),
    (T.DOUBLE(), -math.inf, "-Infinity"),
    (T.FLOAT(), 0.10000000149011612, "0.1"),
    (T.FLOAT(), 16777216.0, "1.6777216E7"),
    (T.FLOAT(), math.inf, "Infinity"),
    (T.BIG_DEC(), Decimal("1.50"), "1.50"),
    (T.BIG_DEC(), Decimal("1E+3"), "1E+3"),
    (T.SQL_DATE(), dt.date(2021, 1, 9), "2021-01-09"),
    (T.SQL_TIME(), dt.time(12, 0, 0, 123000), "12:00:00"),
    (T.SQL_TIMESTAMP(), dt.datetime(2021, 1, 9, 12, 0, 0, 123000), "2021-01-09 12:00:00.123"),
    (T.SQL_TIMESTAMP(), dt.datetime(2021, 1, 9, 12), "2021-01-09 12:00:00.0"),
    (T.INSTANT(), Instant.of_epoch_milli(1610193600123), "2021-01-09T12:00:00.123Z"),
    (T.INSTANT(), Instant(0, 0), "1970-01-01T00:00:00Z"),
    (T.INSTANT(), Instant(0, 1000), "1970-01-01T00:00:00.000001Z"),
    (T.INSTANT(), Instant(0, 1), "1970-01-01T00:00:00.000000001Z"),
    (T.INSTANT(), Instant(253402300800, 0), "+10000-01-01T00:00:00Z"),
    (T.INSTANT(), Instant(-62198755200, 0), "-0001-01-01T00:00:00Z"),
    (T.LIST(T.STRING()), ["a", "b"], "[a, b]"),
    (T.LIST(T.STRING()), [], "[]"),
    (T.BASIC_ARRAY(T.DOUBLE()), [1.0, None], "[1.0, null]"),
    (T.PRIMITIVE_ARRAY(T.BYTE()), b"\x01\xff", "[1, -1]"),
    (T.MAP(T.STRING(), T.INT()), {"a": 1, "b": None}, "{a=1, b=null}"),
    (PAIR, ("a", 1), "(a,1)"),
    (T.TUPLE([PAIR, T.BOOLEAN()]), (("a", 1), True), "((a,1),true)"),
    (ROW, Row("a", 1), "+I[a, 1]"),
    (ROW, Row.of_kind(RowKind.DELETE, "a", None), "-D[a, null]"),
    (T.TUPLE([ROW, T.LIST(T.LONG())]), (Row("a", 1), [1, 2]), "(+I[a, 1],[1, 2])"),
    (T.PICKLED_BYTE_ARRAY(), ("a", True, None), "('a', True, None)"),
]  # fmt: skip


@pytest.mark.parametrize(("type_info", "value", "text"), JAVA_TEXTS, ids=str)
def test_java_string(type_info, value, text):
    assert type_info.to_java_string(value) == text


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        # PyFlink makes text of a top-level row in Python: no blank, and Python's str().
        (ROW, Row("a", 1), "+I[a,1]"),
        (T.ROW([T.BOOLEAN(), T.STRING()]), Row(True, None), "+I[True,None]"),
        (T.ROW([T.DOUBLE()]), Row(1e10), "+I[10000000000.0]"),
        # Everything else with a type is printed by Java ...
        (PAIR, ("a", 1), "(a,1)"),
        (T.TUPLE([ROW]), (Row("a", 1),), "(+I[a, 1])"),
        (T.BOOLEAN(), True, "true"),
        # ... and what has no type by Python.
        (T.PICKLED_BYTE_ARRAY(), "a", "a"),
        (T.PICKLED_BYTE_ARRAY(), ("a", 1.0), "('a', 1.0)"),
        (T.PICKLED_BYTE_ARRAY(), Row(a=1), "Row(a=1)"),
    ],
    ids=str,
)
def test_print_string(type_info, value, text):
    assert type_info.to_print_string(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value):
    text = java_double(value)
    assert float(text) == value
    assert "." in text
    assert ("E" in text) == (value != 0 and not 1e-3 <= abs(value) < 1e7)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back_with_few_digits(value):
    text = java_float(value)
    assert struct.pack("f", float(text)) == struct.pack("f", value)
    # Zeros in front, as in 0.0019377498, are no digits that one could save.
    digits = text.split("E")[0].lstrip("-0.")
    assert sum(character.isdigit() for character in digits) <= 10


@given(st.datetimes())
def test_instants_agree_with_datetime(moment):
    delta = moment - dt.datetime(1970, 1, 1)
    seconds = delta // dt.timedelta(seconds=1)
    text = java_instant(Instant(seconds, moment.microsecond * 1000))
    assert text.startswith(moment.strftime("%Y").zfill(4) + moment.strftime("-%m-%dT%H:%M:%S"))
