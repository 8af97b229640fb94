"""Types as JSON: what a checkpoint says about the state in it, without running any code."""

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
from firesteel.state.tables import TableDescription, TableKind

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
    """A type that state cannot be described with."""


def describe_type(type_info: TypeInformation) -> Any:
    """A type by the names of the ``Types`` factory.

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
    raise UnknownTypeError(f"{type_info} cannot be the type of a state; use one of Types")


def type_of(description: Any) -> TypeInformation:
    """The way back from ``describe_type``."""
    if isinstance(description, str):
        plain: Callable[[], TypeInformation] | None = getattr(Types, description, None)
        if plain is None:
            raise UnknownTypeError(f"{description} is not a type that Firesteel knows")
        return plain()
    name, *inner = description
    if name == "ROW":
        return Types.ROW_NAMED([field for field, _ in inner], [type_of(kind) for _, kind in inner])
    if name == "TUPLE":
        return Types.TUPLE([type_of(kind) for kind in inner])
    composite: Callable[..., TypeInformation] | None = getattr(Types, name, None)
    if composite is None:
        raise UnknownTypeError(f"{name} is not a type that Firesteel knows")
    return composite(*map(type_of, inner))


def describe_table(table: TableDescription) -> dict[str, Any]:
    """A table as JSON."""
    return {
        "kind": table.kind.value,
        "namespaced": table.namespaced,
        "ttl": table.ttl,
        "element_type": _optional(describe_type, table.element_type),
        "entry_type": _optional(describe_type, table.entry_type),
    }


def table_of(description: dict[str, Any]) -> TableDescription:
    """The way back from ``describe_table``."""
    return TableDescription(
        kind=TableKind(description["kind"]),
        namespaced=description["namespaced"],
        ttl=description["ttl"],
        element_type=_optional(type_of, description["element_type"]),
        entry_type=_optional(type_of, description["entry_type"]),
    )


def _optional(convert: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else convert(value)


class IncompatibleStateError(FiresteelError, TypeError):
    """A state was asked for that is of another kind or type than the one that exists."""

    def __init__(self, state: str, existing: str, wanted: str, operator: str | None = None) -> None:
        super().__init__(state, existing, wanted)
        self.state = state
        self.existing = existing
        self.wanted = wanted
        self.operator = operator

    def __str__(self) -> str:
        where = f"Operator '{self.operator}': " if self.operator else ""
        return (
            f"{where}the state '{self.state}' exists as {self.existing}, but the program now wants "
            f"{self.wanted}. Give the new state another name, or keep its kind and type."
        )


class TableDeclarations:
    """Descriptions by name; each must stay what it is."""

    def __init__(self) -> None:
        self.tables: dict[str, TableDescription] = {}
        self.declared: set[str] = set()

    def declare(self, name: str, description: TableDescription) -> None:
        """The program asks for a table."""
        self.restore(name, description)
        self.declared.add(name)

    def forget(self, name: str) -> TableDescription:
        """The table is gone; another one of the name may be anything."""
        self.declared.discard(name)
        return self.tables.pop(name)

    def restore(self, name: str, description: TableDescription) -> None:
        """A segment has a table."""
        existing = self.tables.setdefault(name, description)
        if existing is not description and describe_table(existing) != describe_table(description):
            raise IncompatibleStateError(name, in_words(existing), in_words(description))


def in_words(table: TableDescription) -> str:
    """For example ``a map state of String to Long with a time to live``."""
    element = table.element_type if table.element_type is not None else "any Python object"
    entries = f"{table.entry_type or 'any Python object'} to " if table.kind.value == "map" else ""
    ttl = " with a time to live" if table.ttl else ""
    return f"a {table.kind.value} state of {entries}{element}{ttl}"
