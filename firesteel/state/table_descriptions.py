"""Descriptions of tables: the kind of a table and the types of its elements, also as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError
from firesteel.state.type_descriptions import describe_type, type_of


class TableKind(Enum):
    VALUE = "value"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class TableDescription:
    """Kind and types of a table. A type of None stands for any Python object.

    ``element_type``: the type of a value, of a list's elements, or of a map's values.
    ``entry_type``: the type of a map's keys.
    ``ttl``: every element is stored as the pair (element, time of its last access).
    """

    kind: TableKind
    namespaced: bool = False
    element_type: TypeInformation | None = None
    entry_type: TypeInformation | None = None
    ttl: bool = False

    def __str__(self) -> str:
        """For example ``a map state of String to Long with a time to live``."""
        element = self.element_type if self.element_type is not None else "any Python object"
        entries = ""
        if self.kind is TableKind.MAP:
            entries = f"{self.entry_type or 'any Python object'} to "
        ttl = " with a time to live" if self.ttl else ""
        return f"a {self.kind.value} state of {entries}{element}{ttl}"


def describe_table(table: TableDescription) -> dict[str, Any]:
    """A description as JSON."""
    return {
        "kind": table.kind.value,
        "namespaced": table.namespaced,
        "ttl": table.ttl,
        "element_type": _optional(describe_type, table.element_type),
        "entry_type": _optional(describe_type, table.entry_type),
    }


def table_of(description: dict[str, Any]) -> TableDescription:
    """The inverse of ``describe_table``."""
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
    """The program declares a state with a different kind or type than the existing state has."""

    def __init__(self, state: str, existing: str, wanted: str, operator: str | None = None) -> None:
        super().__init__(state, existing, wanted)
        self.state = state
        self.existing = existing
        self.wanted = wanted
        self.operator = operator

    def __str__(self) -> str:
        where = f"Operator '{self.operator}': " if self.operator else ""
        return (
            f"{where}the state '{self.state}' exists as {self.existing}, but the program declares "
            f"{self.wanted}. Give the new state a different name, or keep the kind and type."
        )


class TableDeclarations:
    """Descriptions of a backend's tables by name. A declared description does not change.

    ``tables``: all tables, restored or declared.
    ``declared``: the names of the tables that the program has asked for.
    """

    def __init__(self) -> None:
        self.tables: dict[str, TableDescription] = {}
        self.declared: set[str] = set()

    def declare(self, name: str, description: TableDescription) -> None:
        """Record a table that the program asks for."""
        self.restore(name, description)
        self.declared.add(name)

    def changes_ttl(self, name: str, description: TableDescription) -> bool:
        """True if the program adds a time to live to a restored table, or drops it."""
        existing = self.tables.get(name)
        return (
            existing is not None
            and name not in self.declared
            and existing.ttl is not description.ttl
            and describe_table(replace(existing, ttl=description.ttl))
            == describe_table(description)
        )

    def restore(self, name: str, description: TableDescription) -> None:
        """Record a table that a segment contains."""
        existing = self.tables.setdefault(name, description)
        if existing is not description and describe_table(existing) != describe_table(description):
            raise IncompatibleStateError(name, str(existing), str(description))

    def forget(self, name: str) -> TableDescription:
        """Remove a table, so that its name can be declared with a different description."""
        self.declared.discard(name)
        return self.tables.pop(name)
