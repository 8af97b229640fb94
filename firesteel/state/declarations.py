"""Which tables a backend has, and the error for a state that is not what it was."""

from __future__ import annotations

from firesteel.errors import FiresteelError
from firesteel.state.tables import TableDescription
from firesteel.state.type_descriptions import describe_table


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
