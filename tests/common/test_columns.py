"""Columns of a type: to columns and back, and the results of vectorized functions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.columns import ColumnLayout, ColumnsError, array_in, column_layout
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from firesteel.common.types import Row
from firesteel.errors import TypeMismatchError

_PRIMITIVES: list[tuple[TypeInformation, st.SearchStrategy[Any]]] = [
    (Types.STRING(), st.text()),
    (Types.BOOLEAN(), st.booleans()),
    (Types.BYTE(), st.integers(-(2**7), 2**7 - 1)),
    (Types.SHORT(), st.integers(-(2**15), 2**15 - 1)),
    (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
    (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
    (Types.FLOAT(), st.floats(width=32, allow_nan=False)),
    (Types.DOUBLE(), st.floats(allow_nan=False)),
]
PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Stream:
    """Data of a library that speaks the Arrow C stream interface."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._data.__arrow_c_stream__(requested_schema)


class Array:
    """Data of a library that speaks the Arrow C data interface."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._data.__arrow_c_array__(requested_schema)


@st.composite
def types_with_values(draw: st.DrawFn) -> tuple[TypeInformation, list[Any]]:
    fields = draw(st.lists(st.sampled_from(_PRIMITIVES), min_size=1, max_size=4))
    kinds = [kind for kind, _ in fields]
    values = [strategy for _, strategy in fields]
    match draw(st.sampled_from(["primitive", "tuple", "row"])):
        case "primitive":
            return kinds[0], draw(st.lists(values[0]))
        case "tuple":
            return Types.TUPLE(kinds), draw(st.lists(st.tuples(*values)))
        case _:
            names = [f"field{place}" for place in range(len(kinds))]
            rows = draw(st.lists(st.tuples(*[st.none() | one for one in values])))
            type_info = Types.ROW_NAMED(names, kinds)
            return type_info, type_info.convert_batch(rows)


@given(types_with_values())
def test_columns_give_the_records_back(typed: tuple[TypeInformation, list[Any]]) -> None:
    type_info, values = typed
    layout = column_layout(type_info)
    assert layout is not None
    columns = layout.columns_of(values)
    assert columns.num_rows == len(values)
    back = layout.values_of(columns)
    assert back == values
    assert list(map(type, back)) == list(map(type, values))
    assert layout.values_of(layout.fitted(columns)) == values


def test_a_value_without_fields_is_a_column() -> None:
    columns = ColumnLayout(Types.LONG()).columns_of([1, 2])
    assert columns.schema.names == ["value"]


@pytest.mark.parametrize(
    "type_info",
    [
        Types.PICKLED_BYTE_ARRAY(),
        Types.BIG_DEC(),
        Types.LIST(Types.INT()),
        Types.ROW([]),
        Types.ROW_NAMED(["inner"], [PERSON]),
        Types.TUPLE([Types.LONG(), Types.SQL_DATE()]),
    ],
    ids=repr,
)
def test_types_of_other_values_have_no_columns(type_info: TypeInformation) -> None:
    assert column_layout(type_info) is None


def test_a_record_of_another_type_is_an_error_that_names_it() -> None:
    with pytest.raises(TypeMismatchError, match="field age"):
        ColumnLayout(PERSON).columns_of([Row("ann", 1), Row("bob", "old")])


def fitted(type_info: RowTypeInfo | TupleTypeInfo | TypeInformation, result: Any) -> list[Any]:
    layout = ColumnLayout(type_info)
    return layout.values_of(layout.fitted(result))


@pytest.mark.parametrize(
    "wrap", [lambda batch: batch, pa.table, Stream, Array, lambda b: Stream(pa.table(b))]
)
def test_results_are_anything_that_speaks_arrow(wrap: Any) -> None:
    batch = pa.record_batch({"f0": ["a", "b"], "f1": [1, 2]})
    if wrap is pa.table:
        batch = [batch, batch.slice(2)]
        wrap = pa.Table.from_batches
    assert fitted(PAIR, wrap(batch)) == [("a", 1), ("b", 2)]


def test_a_table_without_chunks_is_empty() -> None:
    empty = pa.schema([("f0", pa.string()), ("f1", pa.int64())]).empty_table()
    assert fitted(PAIR, Stream(empty)) == []
    assert fitted(PAIR, empty) == []


@pytest.mark.parametrize(
    "result",
    [
        pa.array([1, 2]),
        pa.chunked_array([[1], [2]]),
        Stream(pa.chunked_array([[1, 2]])),
        Array(pa.array([1, 2], pa.int8())),
    ],
)
def test_values_without_fields_may_be_an_array(result: Any) -> None:
    assert fitted(Types.LONG(), result) == [1, 2]
    assert array_in(result).to_pylist() == [1, 2]


def test_columns_of_rows_are_found_by_name() -> None:
    batch = pa.record_batch({"age": [7], "shoes": [39], "name": ["ann"]})
    assert fitted(PERSON, batch) == [Row(name="ann", age=7)]


def test_columns_of_tuples_are_found_by_position() -> None:
    batch = pa.record_batch({"age": ["ann"], "name": [7]})
    assert fitted(PAIR, batch) == [("ann", 7)]


def test_other_widths_and_encodings_fit() -> None:
    names = pa.array(["ann"]).dictionary_encode()
    batch = pa.record_batch({"name": names, "age": pa.array([7], pa.int64())})
    assert fitted(PERSON, batch) == [Row(name="ann", age=7)]
    assert fitted(Types.STRING(), pa.array(["a"], pa.large_string())) == ["a"]
    assert fitted(Types.STRING(), pa.array(["a"], pa.string_view())) == ["a"]
    assert fitted(Types.DOUBLE(), pa.array([2**53 + 1])) == [float(2**53 + 1)]


@pytest.mark.parametrize(
    ("type_info", "result", "message"),
    [
        (PERSON, pa.record_batch({"name": ["a"]}), "expected one column 'age'.*got name: string"),
        (PAIR, pa.record_batch({"f0": ["a"]}), "expected the columns f0: string, f1: int64"),
        (PAIR, pa.array([1]), "got an array of int64"),
        (Types.LONG(), pa.array(["1"]), "column 'value': expected int64, got string"),
        (Types.LONG(), pa.array([1.5]), "expected int64, got double"),
        (Types.BYTE(), pa.array([300]), "column 'value': expected int8: .*300"),
        (Types.LONG(), pa.array([None]), "has a null.*declare a ROW"),
        (PAIR, [("a", 1)], "expected a pyarrow.RecordBatch.*got \\[\\('a', 1\\)\\]"),
        (Types.LONG(), None, "got None"),
    ],
)
def test_results_that_do_not_fit(type_info: TypeInformation, result: Any, message: str) -> None:
    with pytest.raises(ColumnsError, match=message):
        ColumnLayout(type_info).fitted(result)
