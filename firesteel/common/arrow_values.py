"""Conversion between values of a declared type and Arrow arrays, the columns of DataFrames.

Rows and tuples become structs, lists become lists, and dicts become maps. A column is converted as a
whole, field by field. Values that Arrow reads and writes without help are passed on unchanged, at
any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from itertools import chain, pairwise, repeat
from typing import Any

import pyarrow as pa

from firesteel.common.time import Instant
from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.types import RowKind, new_rows
from firesteel.errors import TypeMismatchError

__all__ = ["MISFITS", "FromArrow", "ToArrow", "arrow_reader", "arrow_writer", "misfit"]

ToArrow = Callable[[Sequence[Any]], pa.Array]
FromArrow = Callable[[pa.Array], list[Any]]

MISFITS = (pa.ArrowException, TypeError, ValueError, ArithmeticError, AttributeError)
"""Errors of values that Arrow, or Python on the way back, cannot represent."""

_SEQUENCES = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)
_BYTE = Types.BYTE()
_INSTANT = Types.INSTANT().to_arrow_type()
_DECIMAL = Types.BIG_DEC().to_arrow_type()
_WHOLE_DIGITS = _DECIMAL.precision - _DECIMAL.scale
_LAST_DECIMAL = Decimal(1).scaleb(-_DECIMAL.scale)
_WIDE = Context(prec=_DECIMAL.precision + 1)
_MICROS = 1_000_000


def arrow_writer(type_info: TypeInformation) -> ToArrow:
    """Returns the function that makes a column of such values. Values may be None."""
    return _special_writer(type_info) or partial(pa.array, type=type_info.to_arrow_type())


def arrow_reader(type_info: TypeInformation) -> FromArrow:
    """Returns the function that makes values of such a column."""
    return _special_reader(type_info) or _plain_values


def misfit(
    values: Iterable[Any], type_info: TypeInformation, write: ToArrow
) -> TypeMismatchError | None:
    """Returns the error for the first value that ``write`` rejects."""
    for value in values:
        reason = _reason(value, type_info, write)
        if reason is not None:
            return TypeMismatchError(value, type_info, reason)
    return None


def _reason(value: Any, type_info: TypeInformation, write: ToArrow) -> str | None:
    try:
        write([value])
    except MISFITS as error:
        try:
            # Its error is the most precise, and names the place in the value.
            type_info.convert_batch([value])
        except TypeMismatchError as mismatch:
            return mismatch.reason
        return _reason_in_field(value, type_info) or _text(error)
    return None


def _reason_in_field(value: Any, type_info: TypeInformation) -> str | None:
    if not isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return None
    names = [field.name for field in type_info.to_arrow_type()]
    for name, field, kind in zip(names, value, type_info.get_field_types(), strict=True):
        try:
            arrow_writer(kind)([field])
        except MISFITS as error:
            return f"field {name}: {_text(error)}"
    return None


def _text(error: BaseException) -> str:
    return error.reason if isinstance(error, TypeMismatchError) else f"{error}."


# From values to Arrow. The writer is None for types that ``pa.array`` converts itself.


def _special_writer(type_info: TypeInformation) -> ToArrow | None:
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return _struct_writer(type_info)
    if isinstance(type_info, BasicTypeInfo):
        return _BASIC_WRITERS.get(type_info.basic_type)
    if isinstance(type_info, MapTypeInfo):
        of_keys, of_values = type_info.get_key_type(), type_info.get_value_type()
        if _special_writer(of_keys) or _special_writer(of_values):
            return _map_writer(type_info)
    if isinstance(type_info, _SEQUENCES):
        element = type_info.get_element_type()
        if _special_writer(element):
            return _list_writer(type_info.to_arrow_type(), arrow_writer(element))
        if element == _BYTE:
            return _byte_list_writer(type_info.to_arrow_type())
    return None


def _struct_writer(type_info: RowTypeInfo | TupleTypeInfo) -> ToArrow:
    arrow_type = type_info.to_arrow_type()
    fields = list(arrow_type)
    writers = list(map(arrow_writer, type_info.get_field_types()))
    nothing = (None,) * len(fields)

    def write(rows: Sequence[Any]) -> pa.Array:
        if not fields:
            return pa.array([None if row is None else {} for row in rows], arrow_type)
        mask = None
        try:
            columns = list(zip(*rows, strict=True))
        except TypeError:
            # A None has no fields. They are rare, so the normal case does not look for them.
            absent = [row is None for row in rows]
            if not any(absent):
                raise
            mask = pa.array(absent)
            columns = list(zip(*[nothing if row is None else row for row in rows], strict=True))
        arrays = [
            write_field(column)
            for write_field, column in zip(writers, columns or [()] * len(fields), strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

    return write


def _list_writer(arrow_type: pa.DataType, write_elements: ToArrow) -> ToArrow:
    def write(lists: Sequence[Any]) -> pa.Array:
        elements = write_elements(list(chain.from_iterable(filter(None, lists))))
        return pa.ListArray.from_arrays(_offsets(lists), elements, type=arrow_type)

    return write


def _byte_list_writer(arrow_type: pa.DataType) -> ToArrow:
    """Writes lists of BYTE, which may be bytes. Bytes are not signed in Python."""

    def write(lists: Sequence[Any]) -> pa.Array:
        signed = [
            memoryview(value).cast("b").tolist() if isinstance(value, bytes) else value
            for value in lists
        ]
        return pa.array(signed, arrow_type)

    return write


def _map_writer(type_info: MapTypeInfo) -> ToArrow:
    arrow_type = type_info.to_arrow_type()
    write_keys = arrow_writer(type_info.get_key_type())
    write_values = arrow_writer(type_info.get_value_type())

    def write(maps: Sequence[Any]) -> pa.Array:
        present = list(filter(None, maps))
        keys = write_keys(list(chain.from_iterable(present)))
        values = write_values(list(chain.from_iterable(map(dict.values, present))))
        return pa.MapArray.from_arrays(_offsets(maps), keys, values, type=arrow_type)

    return write


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Returns the position of each value's first element. None has no offset, as Arrow expects."""
    offsets: list[int | None] = []
    end = 0
    for value in values:
        if value is None:
            offsets.append(None)
        else:
            offsets.append(end)
            end += len(value)
    offsets.append(end)
    return pa.array(offsets, pa.int32())


def _write_instants(instants: Sequence[Any]) -> pa.Array:
    """Writes microseconds, which is the precision of Spark."""
    micros = [
        None if instant is None else instant.seconds * _MICROS + instant.nanos // 1000
        for instant in instants
    ]
    return pa.array(micros, _INSTANT)


def _write_decimals(decimals: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(decimals, _DECIMAL)
    except pa.ArrowInvalid:
        return pa.array(list(map(_rounded, decimals)), _DECIMAL)


def _rounded(number: Decimal | None) -> Decimal | None:
    """Rounds half up to 18 decimals, as Flink does for a table."""
    if number is None:
        return None
    if number.adjusted() < _WHOLE_DIGITS:
        rounded = number.quantize(_LAST_DECIMAL, ROUND_HALF_UP, _WIDE)
        if rounded.adjusted() < _WHOLE_DIGITS:
            return rounded
    raise TypeMismatchError(
        number,
        BasicType.BIG_DEC.value,
        f"a decimal in a DataFrame has at most {_WHOLE_DIGITS} digits before the decimal point.",
    )


_BASIC_WRITERS: dict[BasicType, ToArrow] = {
    BasicType.INSTANT: _write_instants,
    BasicType.BIG_DEC: _write_decimals,
}


# From Arrow to values. The reader is None for types that ``to_pylist`` converts correctly.


def _plain_values(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


def _special_reader(type_info: TypeInformation) -> FromArrow | None:
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return _struct_reader(type_info)
    if isinstance(type_info, BasicTypeInfo):
        return _BASIC_READERS.get(type_info.basic_type)
    if isinstance(type_info, MapTypeInfo):
        return _map_reader(
            arrow_reader(type_info.get_key_type()), arrow_reader(type_info.get_value_type())
        )
    if isinstance(type_info, _SEQUENCES):
        read_elements = _special_reader(type_info.get_element_type())
        return None if read_elements is None else _list_reader(read_elements)
    return None


def _struct_reader(type_info: RowTypeInfo | TupleTypeInfo) -> FromArrow:
    readers = list(map(arrow_reader, type_info.get_field_types()))
    # All rows share the list of names.
    names = type_info.get_field_names() if isinstance(type_info, RowTypeInfo) else None

    def read(array: pa.Array) -> list[Any]:
        columns = [read_field(array.field(place)) for place, read_field in enumerate(readers)]
        records: Iterable[Any] = zip(*columns, strict=True) if columns else repeat((), len(array))
        rows: list[Any]
        if names is None:
            rows = list(records)
        else:
            rows = list(new_rows(map(list, records), names, repeat(RowKind.INSERT)))
        return _none_where_null(rows, array)

    return read


def _list_reader(read_elements: FromArrow) -> FromArrow:
    def read(array: pa.Array) -> list[Any]:
        elements = read_elements(array.values)
        return _none_where_null([elements[start:end] for start, end in _ranges(array)], array)

    return read


def _map_reader(read_keys: FromArrow, read_values: FromArrow) -> FromArrow:
    def read(array: pa.Array) -> list[Any]:
        keys, values = read_keys(array.keys), read_values(array.items)
        maps = [
            dict(zip(keys[start:end], values[start:end], strict=True))
            for start, end in _ranges(array)
        ]
        return _none_where_null(maps, array)

    return read


def _ranges(array: pa.Array) -> Iterable[tuple[int, int]]:
    return pairwise(array.offsets.to_pylist())


def _none_where_null(values: list[Any], array: pa.Array) -> list[Any]:
    if not array.null_count:
        return values
    return [
        value if here else None
        for value, here in zip(values, array.is_valid().to_pylist(), strict=True)
    ]


def _read_instants(array: pa.Array) -> list[Any]:
    return [
        None if micros is None else _instant(micros)
        for micros in array.cast(pa.int64()).to_pylist()
    ]


def _instant(micros: int) -> Instant:
    seconds, fraction = divmod(micros, _MICROS)
    return Instant(seconds, fraction * 1000)


def _read_big_integers(array: pa.Array) -> list[Any]:
    return [None if number is None else int(number) for number in array.to_pylist()]


_BASIC_READERS: dict[BasicType, FromArrow] = {
    BasicType.INSTANT: _read_instants,
    BasicType.BIG_INT: _read_big_integers,
}
