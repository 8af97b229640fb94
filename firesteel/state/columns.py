"""One column of state as bytes: Arrow where the type is known and fits, pickle elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pyarrow as pa

from firesteel import pickling
from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from firesteel.common.typeinfo.basic import BasicType
from firesteel.common.typeinfo.temporal import DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from firesteel.common.types import RowKind, new_rows
from firesteel.unpicklable import unpicklable_record

PICKLE, ARROW = "pickle", "arrow"

# Types whose values come back from Arrow as they went in.
_EXACT = frozenset(BasicType) - {BasicType.BIG_INT, BasicType.BIG_DEC, BasicType.INSTANT}
_TEMPORAL = (DateTypeInfo, TimeTypeInfo, TimestampTypeInfo)
_SEQUENCES = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)
_KINDS = tuple(RowKind)


def encode_column(values: list[Any], type_info: TypeInformation | None) -> tuple[str, bytes]:
    """The encoding that was chosen, and the bytes."""
    if type_info is not None and has_arrow_form(type_info):
        try:
            return ARROW, _write(_to_arrow(values, type_info))
        except (pa.ArrowException, TypeError, UnicodeEncodeError, OverflowError):
            # For example a lone surrogate, which is no text to Arrow.
            pass
    try:
        return PICKLE, pickling.dumps(values)
    except Exception as error:
        raise unpicklable_record(error, values, what="value in the state") from error


def decode_column(
    encoding: str, payload: bytes | memoryview, type_info: TypeInformation | None
) -> list[Any]:
    if encoding == PICKLE:
        values: list[Any] = pickling.loads(payload)
        return values
    assert type_info is not None
    return _from_arrow(_read(payload), type_info)


def has_arrow_form(type_info: TypeInformation) -> bool:
    """Whether values of the type survive Arrow unchanged."""
    if isinstance(type_info, BasicTypeInfo):
        return type_info.basic_type in _EXACT
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        # Arrow has no struct without fields; a row has its kind at least.
        fields = type_info.get_field_types()
        return all(map(has_arrow_form, fields)) and bool(
            fields or isinstance(type_info, RowTypeInfo)
        )
    if isinstance(type_info, MapTypeInfo):
        return has_arrow_form(type_info.get_key_type()) and has_arrow_form(
            type_info.get_value_type()
        )
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return True
    if isinstance(type_info, _SEQUENCES):
        # A list of BYTE may also be bytes: the difference would be lost.
        element = type_info.get_element_type()
        is_bytes = isinstance(element, BasicTypeInfo) and element.basic_type is BasicType.BYTE
        return not is_bytes and has_arrow_form(element)
    return isinstance(type_info, _TEMPORAL)


def _to_arrow(values: list[Any], type_info: TypeInformation) -> pa.Array:
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return _rows_to_arrow(values, type_info)
    if isinstance(type_info, _SEQUENCES):
        return _lists_to_arrow(values, lambda flat: _to_arrow(flat, type_info.get_element_type()))
    if isinstance(type_info, MapTypeInfo):
        keys = _lists_to_arrow(values, lambda flat: _to_arrow(flat, type_info.get_key_type()))
        elements = _lists_to_arrow(
            [None if value is None else list(value.values()) for value in values],
            lambda flat: _to_arrow(flat, type_info.get_value_type()),
        )
        return pa.StructArray.from_arrays([keys, elements], names=["keys", "values"])
    return pa.array(values, type_info.to_arrow_type())


def _from_arrow(array: pa.Array, type_info: TypeInformation) -> list[Any]:
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return _rows_from_arrow(array, type_info)
    if isinstance(type_info, _SEQUENCES):
        return _lists_from_arrow(
            array, lambda flat: _from_arrow(flat, type_info.get_element_type())
        )
    if isinstance(type_info, MapTypeInfo):
        keys = _lists_from_arrow(
            array.field("keys"), lambda flat: _from_arrow(flat, type_info.get_key_type())
        )
        elements = _lists_from_arrow(
            array.field("values"), lambda flat: _from_arrow(flat, type_info.get_value_type())
        )
        return [
            None if names is None else dict(zip(names, inner, strict=True))
            for names, inner in zip(keys, elements, strict=True)
        ]
    values: list[Any] = array.to_pylist()
    return values


def _rows_to_arrow(values: list[Any], type_info: RowTypeInfo | TupleTypeInfo) -> pa.Array:
    absent = [value is None for value in values]
    mask = pa.array(absent) if any(absent) else None
    columns = [
        _to_arrow([None if value is None else value[position] for value in values], field)
        for position, field in enumerate(type_info.get_field_types())
    ]
    if isinstance(type_info, RowTypeInfo):
        kinds = [None if row is None else row.get_row_kind().value for row in values]
        columns.append(pa.array(kinds, pa.int8()))
    names = [f"f{position}" for position in range(len(columns))]
    return pa.StructArray.from_arrays(columns, names=names, mask=mask)


def _rows_from_arrow(array: pa.Array, type_info: RowTypeInfo | TupleTypeInfo) -> list[Any]:
    fields = type_info.get_field_types()
    columns = [_from_arrow(array.field(position), field) for position, field in enumerate(fields)]
    if isinstance(type_info, RowTypeInfo):
        kinds = [_KINDS[kind or 0] for kind in array.field(len(fields)).to_pylist()]
        records = map(list, zip(*columns, strict=True)) if columns else ([] for _ in kinds)
        rows: list[Any] = list(new_rows(records, type_info.get_field_names(), kinds))
    else:
        rows = list(zip(*columns, strict=True))
    if not array.null_count:
        return rows
    present = array.is_valid().to_pylist()
    return [row if here else None for row, here in zip(rows, present, strict=True)]


def _lists_to_arrow(values: list[Any], inner: Callable[[list[Any]], pa.Array]) -> pa.Array:
    offsets: list[int | None] = []
    end = 0
    for value in values:
        # Where no list is, no offset is either: that is Arrow's way to say it.
        offsets.append(None if value is None else end)
        end += 0 if value is None else len(value)
    offsets.append(end)
    flat = inner(list(chain.from_iterable(value for value in values if value is not None)))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)


def _lists_from_arrow(array: pa.Array, inner: Callable[[pa.Array], list[Any]]) -> list[Any]:
    flat = inner(array.flatten())
    results: list[Any] = []
    start = 0
    for length in array.value_lengths().to_pylist():
        results.append(None if length is None else flat[start : start + length])
        start += length or 0
    return results


def _write(array: pa.Array) -> bytes:
    batch = pa.record_batch([array], names=["c"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def _read(payload: bytes | memoryview) -> pa.Array:
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_next_batch().column(0)
