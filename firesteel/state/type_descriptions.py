"""Types as JSON. Checkpoints describe state types in this form, so reading them runs no code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.typeinfo.temporal import DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from firesteel.errors import FiresteelError

_PLAIN: dict[type[TypeInformation], str] = {
    DateTypeInfo: "SQL_DATE",
    TimeTypeInfo: "SQL_TIME",
    TimestampTypeInfo: "SQL_TIMESTAMP",
    PickledBytesTypeInfo: "PICKLED_BYTE_ARRAY",
}
_SEQUENCES: dict[type[TypeInformation], str] = {
    ListTypeInfo: "LIST",
    BasicArrayTypeInfo: "BASIC_ARRAY",
    ObjectArrayTypeInfo: "OBJECT_ARRAY",
    PrimitiveArrayTypeInfo: "PRIMITIVE_ARRAY",
}


class UnknownTypeError(FiresteelError, TypeError):
    """State cannot have this type, because the type has no JSON form."""


def describe_type(type_info: TypeInformation) -> Any:
    """Describe a type with the names of its factory methods in ``Types``.

    >>> describe_type(Types.TUPLE([Types.STRING(), Types.LIST(Types.LONG())]))
    ['TUPLE', 'STRING', ['LIST', 'LONG']]
    """
    if isinstance(type_info, BasicTypeInfo):
        return type_info.basic_type.name
    if isinstance(type_info, RowTypeInfo):
        fields = zip(type_info.get_field_names(), type_info.get_field_types(), strict=True)
        return ["ROW", *([name, describe_type(field)] for name, field in fields)]
    if isinstance(type_info, TupleTypeInfo):
        return ["TUPLE", *map(describe_type, type_info.get_field_types())]
    if isinstance(type_info, MapTypeInfo):
        return [
            "MAP",
            describe_type(type_info.get_key_type()),
            describe_type(type_info.get_value_type()),
        ]
    for known, name in _PLAIN.items():
        if type(type_info) is known:
            return name
    for known, name in _SEQUENCES.items():
        if type(type_info) is known:
            return [name, describe_type(type_info.get_element_type())]  # type: ignore[attr-defined]
    raise UnknownTypeError(
        f"{type_info} cannot be the type of a state. Use a type from firesteel.common.Types."
    )


def type_of(description: Any) -> TypeInformation:
    """The inverse of ``describe_type``."""
    if isinstance(description, str):
        plain: Callable[[], TypeInformation] | None = getattr(Types, description, None)
        if plain is None:
            raise UnknownTypeError(f"this version of Firesteel has no state type {description!r}")
        return plain()
    name, *inner = description
    if name == "ROW":
        return Types.ROW_NAMED([field for field, _ in inner], [type_of(kind) for _, kind in inner])
    if name == "TUPLE":
        return Types.TUPLE([type_of(kind) for kind in inner])
    composite: Callable[..., TypeInformation] | None = getattr(Types, name, None)
    if composite is None:
        raise UnknownTypeError(f"this version of Firesteel has no state type {name!r}")
    return composite(*map(type_of, inner))
