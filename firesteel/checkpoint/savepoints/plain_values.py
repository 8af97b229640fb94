"""Conversion of state values to columns of a DataFrame. Rows and tuples become structs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from firesteel.common.time import Instant
from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    InstantTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from firesteel.common.types import Row, field_names_of, new_row
from firesteel.errors import NotYetSupportedError

__all__ = ["from_plain", "plain_column", "to_plain"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEQUENCES = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)


def plain_column(
    values: list[Any], type_info: TypeInformation | None, *, strict: bool = False
) -> pa.Array:
    """A column of the declared type, else of an inferred type, else of text.

    ``strict``: a value that does not fit the declared type is an error.
    """
    try:
        arrow_type = _arrow_type(type_info)
        plain_type = None if arrow_type is None else type_info
        return pa.array([to_plain(value, plain_type) for value in values], arrow_type)
    except (pa.ArrowException, TypeError, OverflowError):
        if strict:
            raise
        return pa.array(list(map(repr, values)), pa.string())


def _arrow_type(type_info: TypeInformation | None) -> pa.DataType | None:
    """The Arrow type, or None for an undeclared or pickled type."""
    if type_info is None or type_info.is_pickled:
        return None
    try:
        return type_info.to_arrow_type()
    except NotYetSupportedError:
        return None


def to_plain(value: Any, type_info: TypeInformation | None = None) -> Any:
    """Convert a value for Arrow. Fields without names become f0, f1, and so on.

    >>> to_plain((1, [Row(name="Ada")]))
    {'f0': 1, 'f1': [{'name': 'Ada'}]}
    """
    if isinstance(value, Row | tuple):
        names = _names(value, type_info)
        types = _field_types(type_info, len(names))
        return {
            name: to_plain(field, kind)
            for name, field, kind in zip(names, value, types, strict=True)
        }
    if isinstance(value, list):
        element_type = _element_type(type_info)
        return [to_plain(element, element_type) for element in value]
    if isinstance(value, dict) and isinstance(type_info, MapTypeInfo):
        key_type, element_type = type_info.get_key_type(), type_info.get_value_type()
        return [(to_plain(key, key_type), to_plain(e, element_type)) for key, e in value.items()]
    if (
        isinstance(value, Instant)
        and isinstance(type_info, InstantTypeInfo)
        and not value.nanos % 1000
    ):
        # Instants with nanoseconds become text, because Arrow would round them.
        return value.seconds * 1_000_000 + value.nanos // 1000
    return value


def from_plain(value: Any, type_info: TypeInformation | None) -> Any:
    """The inverse of ``to_plain`` for a declared type. Without a type the value is not converted.

    Fields of a row are matched by name if the names are the declared ones, else by position.

    >>> from firesteel.common import Types
    >>> from_plain({"f0": 1, "f1": [("a", 2)]}, Types.TUPLE([Types.LONG(), Types.MAP(Types.STRING(), Types.LONG())]))
    (1, {'a': 2})
    """
    if isinstance(value, dict) and isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        names = _names(value, type_info)
        given = [value[name] for name in names] if set(names) == set(value) else value.values()
        types = _field_types(type_info, len(value))
        fields = [from_plain(field, kind) for field, kind in zip(given, types, strict=True)]
        if isinstance(type_info, TupleTypeInfo):
            return tuple(fields)
        return new_row(fields, names if len(names) == len(fields) else None)
    if isinstance(value, list) and isinstance(type_info, MapTypeInfo):
        key_type, element_type = type_info.get_key_type(), type_info.get_value_type()
        return {from_plain(key, key_type): from_plain(e, element_type) for key, e in value}
    if isinstance(value, list):
        of_elements = _element_type(type_info)
        return [from_plain(element, of_elements) for element in value]
    if isinstance(value, datetime) and isinstance(type_info, InstantTypeInfo) and value.tzinfo:
        since_epoch = (value - _EPOCH) // timedelta(microseconds=1)
        return Instant(since_epoch // 1_000_000, since_epoch % 1_000_000 * 1000)
    return value


def _names(value: Any, type_info: TypeInformation | None) -> list[str]:
    if isinstance(type_info, RowTypeInfo):
        return type_info.get_field_names()
    if isinstance(value, Row) and (names := field_names_of(value)):
        return list(names)
    return [f"f{position}" for position in range(len(value))]


def _field_types(type_info: TypeInformation | None, count: int) -> list[TypeInformation | None]:
    """The types of fields. A wrong number of fields is an error only when the value is stored."""
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        types = type_info.get_field_types()
        if len(types) == count:
            return [*types]
    return [None] * count


def _element_type(type_info: TypeInformation | None) -> TypeInformation | None:
    return type_info.get_element_type() if isinstance(type_info, _SEQUENCES) else None
