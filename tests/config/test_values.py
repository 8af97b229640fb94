"""Flink's notations for values."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.config.values import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT,
    LIST,
    MAP,
    MEMORY_SIZE,
    choice,
    format_value,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100 ms", timedelta(milliseconds=100)),
        ("100ms", timedelta(milliseconds=100)),
        (100, timedelta(milliseconds=100)),
        ("100", timedelta(milliseconds=100)),
        ("10 min", timedelta(minutes=10)),
        ("10 m", timedelta(minutes=10)),
        ("1 h", timedelta(hours=1)),
        ("2 days", timedelta(days=2)),
        ("3 seconds", timedelta(seconds=3)),
        ("5 µs", timedelta(microseconds=5)),
        ("5 micros", timedelta(microseconds=5)),
        ("5000 ns", timedelta(microseconds=5)),
        ("PT10M", timedelta(minutes=10)),
        ("P1DT2H3M4.5S", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
        ("0 ms", timedelta(0)),
        (timedelta(seconds=1), timedelta(seconds=1)),
    ],
)
def test_durations(text, expected):
    assert DURATION.parse(text) == expected


@pytest.mark.parametrize("text", ["", "ms", "10 parsecs", "-1 s", "1.5 s", True, "P", "PT"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="expected a duration"):
        DURATION.parse(text)


@given(st.timedeltas(min_value=timedelta(0)))
def test_durations_come_back_from_their_text(duration):
    assert DURATION.parse(format_value(duration)) == duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64 kb", 65536),
        ("64k", 65536),
        ("64 mb", 64 << 20),
        ("1 gb", 1 << 30),
        ("1t", 1 << 40),
        ("10 b", 10),
        (1024, 1024),
        ("1 Mebibytes", 1 << 20),
    ],
)
def test_memory_sizes(text, expected):
    assert MEMORY_SIZE.parse(text) == expected


@pytest.mark.parametrize("text", ["", "mb", "1.5 mb", "-1", "1 zb"])
def test_what_is_no_memory_size(text):
    with pytest.raises(ValueError, match="expected a memory size"):
        MEMORY_SIZE.parse(text)


def test_numbers_and_booleans():
    assert INT.parse(" 7 ") == 7
    assert DOUBLE.parse("1.5") == 1.5
    assert BOOLEAN.parse("False") is False
    for value_type, text in ((INT, "1.5"), (INT, True), (DOUBLE, "x"), (BOOLEAN, "yes")):
        with pytest.raises(ValueError, match="expected"):
            value_type.parse(text)


def test_choices_ignore_case_and_dashes():
    mode = choice("EXACTLY_ONCE", "AT_LEAST_ONCE")
    assert mode.parse("exactly-once") == "EXACTLY_ONCE"
    assert mode.parse("AT_LEAST_ONCE") == "AT_LEAST_ONCE"
    with pytest.raises(ValueError, match="expected one of EXACTLY_ONCE, AT_LEAST_ONCE"):
        mode.parse("twice")


def test_lists():
    assert LIST.parse("a;b; c") == ["a", "b", "c"]
    assert LIST.parse("[a, 'b;c']") == ["a", "b;c"]
    assert LIST.parse(["a", 1]) == ["a", "1"]
    assert LIST.parse("") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1,b:2", {"a": "1", "b": "2"}),
        ("a:'x:y,z'", {"a": "x:y,z"}),
        ("{a: 1, b: true}", {"a": "1", "b": "true"}),
        ({"a": 1}, {"a": "1"}),
        ("", {}),
    ],
)
def test_maps(text, expected):
    assert MAP.parse(text) == expected


def test_what_is_no_map():
    with pytest.raises(ValueError, match="expected a map"):
        MAP.parse("abc")


@given(st.dictionaries(st.text(), st.text(), max_size=4))
def test_maps_come_back_from_their_text(entries):
    assert MAP.parse(format_value(entries)) == entries


@given(st.lists(st.text(), max_size=4))
def test_lists_come_back_from_their_text(elements):
    assert LIST.parse(format_value(elements)) == elements
