"""Columns of records: the Arrow form of rows, tuples and values of primitive types.

A row or tuple has a column per field. A value that has no fields is the one column ``value``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from firesteel.common.arrow_values import (
    MISFITS,
    FromArrow,
    ToArrow,
    arrow_reader,
    arrow_writer,
    misfit,
)
from firesteel.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from firesteel.errors import FiresteelError, shorten

__all__ = [
    "DECLARE_PRIMITIVES",
    "ColumnLayout",
    "ColumnsError",
    "array_in",
    "column_layout",
    "fields_of",
    "fitted_array",
    "reason_for_rows",
    "records_in",
]

VALUE = "value"
"""The name of the only column of values without fields."""

DECLARE_PRIMITIVES = (
    "Declare a type of primitives for the operator or source, for example "
    "Types.ROW_NAMED(['word', 'count'], [Types.STRING(), Types.LONG()])."
)
"""The remedy for a stream that has no columns."""

_PRIMITIVES = frozenset(
    {
        BasicType.STRING,
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
    }
)


class ColumnsError(FiresteelError, TypeError):
    """Columns do not fit the declared type."""


def column_layout(type_info: TypeInformation) -> ColumnLayout | None:
    """Return the columns of a type, or None if its records can only be Python objects."""
    return None if reason_for_rows(type_info) is not None else ColumnLayout(type_info)


def records_in(read: Any, type_info: TypeInformation) -> Any:
    """Return records that a source of a type has read: those of columns, and others as they are."""
    if not isinstance(read, pa.RecordBatch):
        return read
    layout = ColumnLayout(type_info)
    return layout.values_of(layout.fitted(read))


def reason_for_rows(type_info: TypeInformation) -> str | None:
    """Return the reason for which records of a type have no columns, as a noun, or None."""
    if type_info.is_pickled:
        return "no declared type"
    if not isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return None if _is_primitive(type_info) else f"the type {type_info}, which is no primitive"
    if not type_info.get_arity():
        return "a type without fields"
    for name, kind in fields_of(type_info):
        if not _is_primitive(kind):
            return f"a field {name} of the type {kind}, which is no primitive"
    return None


def fields_of(type_info: TypeInformation) -> list[tuple[str, TypeInformation]]:
    """Return the names and types of the columns of a type."""
    if isinstance(type_info, RowTypeInfo):
        names = type_info.get_field_names()
    elif isinstance(type_info, TupleTypeInfo):
        names = _positional_names(type_info)
    else:
        return [(VALUE, type_info)]
    return list(zip(names, type_info.get_field_types(), strict=True))


def _positional_names(type_info: RowTypeInfo | TupleTypeInfo) -> list[str]:
    return [f"f{place}" for place in range(type_info.get_arity())]


def _is_primitive(type_info: TypeInformation) -> bool:
    return isinstance(type_info, BasicTypeInfo) and type_info.basic_type in _PRIMITIVES


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The columns of a type of primitives.

    Args:
        type_info: The type of the records.
    """

    type_info: TypeInformation
    schema: pa.Schema = field(init=False, compare=False)
    # Records are rows. Their fields may be None, and they have a kind.
    is_row: bool = field(init=False, compare=False)
    # Columns are matched by name. Fields of tuples have no names of the user.
    _by_name: bool = field(init=False, compare=False)
    _read: FromArrow = field(init=False, compare=False)
    _write: ToArrow = field(init=False, compare=False)

    def __post_init__(self) -> None:
        type_info = self.type_info
        arrow_type = type_info.to_arrow_type()
        fields = list(arrow_type) if self.has_fields else [pa.field(VALUE, arrow_type)]
        _set(self, "schema", pa.schema(fields))
        _set(self, "is_row", isinstance(type_info, RowTypeInfo))
        by_name = isinstance(type_info, RowTypeInfo) and (
            type_info.get_field_names() != _positional_names(type_info)
        )
        _set(self, "_by_name", by_name)
        _set(self, "_read", arrow_reader(type_info))
        _set(self, "_write", arrow_writer(type_info))

    @property
    def has_fields(self) -> bool:
        return isinstance(self.type_info, RowTypeInfo | TupleTypeInfo)

    def fits(self, other: ColumnLayout) -> bool:
        """Return True if columns of the other layout are columns of this one."""
        return self is other or (
            type(self.type_info) is type(other.type_info) and self.schema == other.schema
        )

    def values_of(self, columns: pa.RecordBatch) -> list[Any]:
        """Make the records."""
        if self.has_fields:
            return self._read(columns.to_struct_array())
        return self._read(columns.column(0))

    def columns_of(self, values: list[Any]) -> pa.RecordBatch:
        """Make the columns of records.

        Raises:
            TypeMismatchError: A record does not fit the type.
        """
        try:
            array = self._write(values)
        except MISFITS as error:
            raise misfit(values, self.type_info, self._write) or error from error
        if self.has_fields:
            return pa.RecordBatch.from_struct_array(array)
        return pa.RecordBatch.from_arrays([array], schema=self.schema)

    def fitted(self, result: Any) -> pa.RecordBatch:
        """Convert the result of a vectorized function to these columns.

        Args:
            result: A RecordBatch or Table, or an object with ``__arrow_c_array__`` or
                ``__arrow_c_stream__``. For values without fields, an array will do.

        Raises:
            ColumnsError: The result has no columns, or they do not fit.
        """
        found = _columns_in(result)
        if isinstance(found, pa.Array):
            if self.has_fields:
                raise ColumnsError(
                    f"expected the columns {self._text()}, got an array of {found.type}"
                )
            arrays = [found]
        elif self._by_name:
            arrays = self._by_names(found)
        else:
            arrays = found.columns
            if len(arrays) != len(self.schema):
                raise ColumnsError(f"expected the columns {self._text()}, got {_text(found)}")
        fitted = [
            self._fitted_array(array, wanted)
            for array, wanted in zip(arrays, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(fitted, schema=self.schema)

    def _by_names(self, found: pa.RecordBatch) -> list[pa.Array]:
        names = found.schema.names
        missing = [name for name in self.schema.names if names.count(name) != 1]
        if missing:
            raise ColumnsError(
                f"expected one column {missing[0]!r}, because the type has the columns "
                f"{self._text()}; got {_text(found)}"
            )
        return [found.column(names.index(name)) for name in self.schema.names]

    def _fitted_array(self, array: pa.Array, wanted: pa.Field) -> pa.Array:
        array = fitted_array(array, wanted.type, wanted.name)
        if array.null_count and not self.is_row:
            raise ColumnsError(
                f"column {wanted.name!r} has a null, and {self.type_info} has no place for one; "
                "declare a ROW, whose fields may be None"
            )
        return array

    def _text(self) -> str:
        return ", ".join(f"{one.name}: {one.type}" for one in self.schema)


def _set(layout: ColumnLayout, name: str, value: Any) -> None:
    object.__setattr__(layout, name, value)


def fitted_array(array: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    """Convert an array to a wider or narrower type of the same kind.

    Raises:
        ColumnsError: The kinds differ, or a value does not fit.
    """
    if array.type == wanted:
        return array
    if kinds.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not _is_same_kind(array.type, wanted):
        raise ColumnsError(f"column {name!r}: expected {wanted}, got {array.type}")
    try:
        # Large integers are rounded to the next float, as in Python.
        return array.cast(wanted, safe=not kinds.is_floating(wanted))
    except pa.ArrowException as error:
        raise ColumnsError(f"column {name!r}: expected {wanted}: {error}") from error


def _is_same_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    if kinds.is_null(found) or found == wanted:
        return True
    if kinds.is_integer(wanted):
        return bool(kinds.is_integer(found))
    if kinds.is_floating(wanted):
        return bool(kinds.is_integer(found) or kinds.is_floating(found))
    if kinds.is_string(wanted):
        return bool(kinds.is_large_string(found) or kinds.is_string_view(found))
    return False


def _columns_in(result: Any) -> pa.RecordBatch | pa.Array:
    """Return the columns of an object that speaks Arrow, or its only array."""
    if isinstance(result, pa.RecordBatch):
        return result
    if isinstance(result, pa.Array):
        return _flat(result)
    if isinstance(result, pa.ChunkedArray):
        return _flat(pa.concat_arrays(result.chunks) if result.num_chunks else _empty(result))
    if isinstance(result, pa.Table):
        return _batch_of(result)
    try:
        if hasattr(result, "__arrow_c_stream__"):
            chunks = pa.chunked_array(result)
            return _flat(pa.concat_arrays(chunks.chunks) if chunks.num_chunks else _empty(chunks))
        if hasattr(result, "__arrow_c_array__"):
            return _flat(pa.array(result))
    except pa.ArrowException as error:
        raise ColumnsError(f"{shorten(result)} gives no columns to Arrow: {error}") from error
    raise ColumnsError(
        "expected a pyarrow.RecordBatch, or an object with __arrow_c_array__ or "
        f"__arrow_c_stream__, got {shorten(result)}"
    )


def array_in(result: Any) -> pa.Array:
    """Return the array of an object that speaks Arrow.

    Raises:
        ColumnsError: There is no array, or more than one.
    """
    found = _columns_in(result)
    if isinstance(found, pa.Array):
        return found
    if found.num_columns != 1:
        raise ColumnsError(f"expected an array, got the columns {_text(found)}")
    return found.column(0)


def _empty(chunks: pa.ChunkedArray) -> pa.Array:
    return pa.array([], chunks.type)


def _flat(array: pa.Array) -> pa.RecordBatch | pa.Array:
    """Return the columns of a struct. Other arrays stay as they are."""
    if not kinds.is_struct(array.type):
        return array
    return pa.RecordBatch.from_arrays(array.flatten(), names=[one.name for one in array.type])


def _batch_of(table: pa.Table) -> pa.RecordBatch:
    arrays = [
        pa.concat_arrays(column.chunks) if column.num_chunks else _empty(column)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=table.column_names)


def _text(found: pa.RecordBatch) -> str:
    return ", ".join(f"{one.name}: {one.type}" for one in found.schema) or "no columns"
