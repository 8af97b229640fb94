"""Columns of DataFrames: values of any type go into Arrow and come back as they were."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Instant, Row, Types
from firesteel.common.arrow_values import MISFITS, arrow_reader, arrow_writer, misfit
from firesteel.common.typeinfo import TypeInformation

Typed = tuple[TypeInformation, st.SearchStrategy[Any]]


def _instant(micros: int) -> Instant:
    return Instant(micros // 10**6, micros % 10**6 * 1000)


_MILLIS = st.integers(0, 999).map(lambda millis: millis * 1000)
_LEAVES: list[Typed] = [
    (Types.STRING(), st.text(st.characters(exclude_categories=["Cs"]), max_size=4)),
    (Types.BOOLEAN(), st.booleans()),
    (Types.BYTE(), st.integers(-128, 127)),
    (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
    (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
    (Types.FLOAT(), st.floats(width=32, allow_nan=False)),
    (Types.DOUBLE(), st.floats(allow_nan=False)),
    (Types.BIG_INT(), st.integers(-(10**38) + 1, 10**38 - 1)),
    (Types.BIG_DEC(), st.decimals(-(10**19), 10**19, places=18)),
    (Types.INSTANT(), st.integers(-(2**62), 2**62).map(_instant)),
    (Types.SQL_DATE(), st.dates()),
    (Types.SQL_TIME(), st.builds(dt.time.replace, st.times(), microsecond=_MILLIS)),
    (Types.SQL_TIMESTAMP(), st.builds(dt.datetime.replace, st.datetimes(), microsecond=_MILLIS)),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary(max_size=4)),
    (Types.PRIMITIVE_ARRAY(Types.LONG()), st.lists(st.integers(-9, 9), max_size=3)),
]
_KEYS = [leaf for leaf in _LEAVES if leaf[0] in (Types.STRING(), Types.LONG(), Types.BIG_INT())]


def _or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


def _list(element: Typed) -> Typed:
    return Types.LIST(element[0]), st.lists(element[1], max_size=3)


def _array(element: Typed) -> Typed:
    return Types.OBJECT_ARRAY(element[0]), st.lists(_or_none(element[1]), max_size=3)


def _map(key: Typed, value: Typed) -> Typed:
    values = st.dictionaries(key[1], _or_none(value[1]), max_size=3)
    return Types.MAP(key[0], value[0]), values


def _tuple(fields: list[Typed]) -> Typed:
    return Types.TUPLE([field[0] for field in fields]), st.tuples(*[field[1] for field in fields])


def _row(fields: list[Typed]) -> Typed:
    names = [f"c{position}" for position in range(len(fields))]
    row = Row(*names)
    values = st.tuples(*[_or_none(field[1]) for field in fields]).map(lambda args: row(*args))
    return Types.ROW_NAMED(names, [field[0] for field in fields]), values


def _nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(_list),
        inner.map(_array),
        st.builds(_map, st.sampled_from(_KEYS), inner),
        st.lists(inner, min_size=1, max_size=3).map(_tuple),
        st.lists(inner, max_size=3).map(_row),
    )


_TYPES = st.recursive(st.sampled_from(_LEAVES), _nested, max_leaves=6)


@given(_TYPES, st.data())
def test_values_of_any_nested_type_come_back_from_arrow_as_they_were(
    typed: Typed, data: st.DataObject
) -> None:
    type_info, values_of = typed
    values = data.draw(st.lists(_or_none(values_of), max_size=5))
    column = arrow_writer(type_info)(values)
    column.validate(full=True)
    assert column.type == type_info.to_arrow_type()
    read = arrow_reader(type_info)
    assert read(column) == values
    # A part of a column, as Spark's batches may have it.
    assert read(column.slice(1)) == values[1:]
    present = [value for value in values if value is not None]
    assert type_info.convert_batch(read(arrow_writer(type_info)(present))) == present


def test_decimals_are_rounded_half_up_to_what_spark_holds() -> None:
    numbers = [Decimal("0.1234567890123456785"), None, Decimal(1) / Decimal(3), Decimal("-2E-19")]
    assert arrow_writer(Types.BIG_DEC())(numbers).to_pylist() == [
        Decimal("0.123456789012345679"),
        None,
        Decimal("0.333333333333333333"),
        Decimal(0),
    ]


def test_instants_keep_their_microseconds() -> None:
    column = arrow_writer(Types.INSTANT())([Instant(-1, 1_999)])
    assert arrow_reader(Types.INSTANT())(column) == [Instant(-1, 1_000)]


def test_a_list_of_bytes_is_signed_in_a_dataframe() -> None:
    column = arrow_writer(Types.LIST(Types.BYTE()))([b"\x01\xff", [2, -2], None])
    assert column.to_pylist() == [[1, -1], [2, -2], None]


@pytest.mark.parametrize(
    ("type_info", "value", "reason"),
    [
        (Types.LONG(), "many", "expected int, got str"),
        (Types.BIG_DEC(), Decimal(10**20), "at most 20 digits before the decimal point"),
        (Types.BIG_INT(), 10**38, "precision 39"),
        (Types.INSTANT(), Instant(2**60, 0), "too large"),
        (
            Types.ROW_NAMED(["n", "d"], [Types.INT(), Types.LIST(Types.BIG_DEC())]),
            Row(1, [Decimal("1E+20")]),
            "field d: a decimal in a DataFrame",
        ),
        (Types.ROW_NAMED(["n"], [Types.INT()]), Row(1, 2), "expected 1 fields, got 2"),
    ],
)
def test_the_first_value_that_does_not_fit_is_named(
    type_info: TypeInformation, value: Any, reason: str
) -> None:
    write = arrow_writer(type_info)
    with pytest.raises(MISFITS):
        write([value])
    error = misfit([value], type_info, write)
    assert error is not None
    assert reason in error.reason
    assert error.value == repr(value)
