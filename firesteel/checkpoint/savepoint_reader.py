"""State of a savepoint as data: entries, or Arrow tables that Spark makes a DataFrame of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from firesteel.checkpoint.file_systems import FileSystemOptions
from firesteel.checkpoint.keyed_state_files import read_keyed_file
from firesteel.checkpoint.metadata import (
    CheckpointMetadata,
    KeyedStateFile,
    OperatorMetadata,
    SnapshotType,
)
from firesteel.checkpoint.metadata_file import open_checkpoint
from firesteel.checkpoint.savepoint import NoSavepointError
from firesteel.checkpoint.state_descriptions import table_descriptions
from firesteel.checkpoint.storage import Storage, open_storage
from firesteel.common.typeinfo import MapTypeInfo, TypeInformation, Types
from firesteel.errors import FiresteelError, NotYetSupportedError
from firesteel.state.columns import has_arrow_form
from firesteel.state.entries import StateEntry
from firesteel.state.plain_values import to_plain
from firesteel.state.tables import TableDescription, TableKind
from firesteel.state.type_descriptions import type_of

__all__ = [
    "SavepointState",
    "StateNotFoundError",
    "find_operator",
    "open_savepoint",
    "open_state",
    "read_state",
    "state_table",
]


class StateNotFoundError(FiresteelError, LookupError):
    """A savepoint has no such operator or state; the message lists those that it has."""


@dataclass(frozen=True, slots=True)
class SavepointState:
    """One keyed state of one operator: where its entries are, and what they look like.

    Objects of the job's own classes are refused unless ``allow_pickle``: rebuilding them runs their
    code.
    """

    name: str
    table: TableDescription
    key_type: TypeInformation | None
    location: str
    files: tuple[KeyedStateFile, ...]
    options: FileSystemOptions | None = None
    allow_pickle: bool = False

    def entries(self, files: Iterable[KeyedStateFile] | None = None) -> Iterator[StateEntry]:
        """Of all files, or of some."""
        directory = open_storage(self.location, self.options)
        for file in self.files if files is None else files:
            for entry in read_keyed_file(file, directory, allow_pickle=self.allow_pickle):
                if entry.table == self.name:
                    yield entry

    @property
    def is_typed(self) -> bool:
        """Whether the declared types say what the columns are, so that nothing need be read."""
        types = [self.key_type, self.table.element_type]
        if self.table.kind is TableKind.MAP:
            types.append(self.table.entry_type)
        typed = all(kind is not None and has_arrow_form(kind) for kind in types)
        return typed and not self.table.namespaced

    def schema(self) -> pa.Schema:
        """The columns of a typed state."""
        return self.arrow_table(()).schema

    def arrow_table(self, entries: Iterable[StateEntry]) -> pa.Table:
        """Entries as columns ``key``, ``namespace`` (if the state has any) and ``value``.

        Columns have the declared types; without them what the values look like, or else their text.
        """
        found = list(entries)
        columns = {"key": _column([entry.key for entry in found], self.key_type)}
        if self.table.namespaced:
            columns["namespace"] = _column([entry.namespace for entry in found], None)
        values = [entry.value for entry in found]
        if self.table.ttl:
            values = [_without_stamps(value, self.table.kind) for value in values]
        columns["value"] = _column(values, _value_type(self.table))
        return pa.table(columns)


def open_state(
    location: str,
    operator: str,
    state: str,
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> SavepointState:
    """``operator`` is a uid, an operator id or a name."""
    directory, metadata = open_savepoint(location, options)
    found = find_operator(metadata, operator)
    keyed = table_descriptions(found.states)
    if state not in keyed:
        known = ", ".join(f"'{name}'" for name in sorted(keyed)) or "none"
        raise StateNotFoundError(
            f"{found.title} has no keyed state '{state}' in {directory.location}; it has: {known}"
        )
    description = next(one for one in found.states if one.name == state)
    key_type = description.types.get("key_type")
    return SavepointState(
        name=state,
        table=keyed[state],
        key_type=None if key_type is None else type_of(key_type),
        location=directory.location,
        files=tuple(file for subtask in found.subtasks for file in subtask.files),
        options=options,
        allow_pickle=allow_pickle,
    )


def read_state(
    location: str,
    operator: str,
    state: str,
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> Iterator[StateEntry]:
    """The entries of one keyed state."""
    return open_state(location, operator, state, options, allow_pickle=allow_pickle).entries()


def state_table(
    location: str,
    operator: str,
    state: str,
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> pa.Table:
    """One keyed state as a table."""
    found = open_state(location, operator, state, options, allow_pickle=allow_pickle)
    return found.arrow_table(found.entries())


def open_savepoint(
    location: str, options: FileSystemOptions | None = None
) -> tuple[Storage, CheckpointMetadata]:
    directory, metadata = open_checkpoint(location, options)
    if metadata.type is not SnapshotType.SAVEPOINT:
        raise NoSavepointError(
            f"{directory.location} is a checkpoint; only the state of savepoints can be read. Take a "
            "savepoint of the job"
        )
    return directory, metadata


def find_operator(metadata: CheckpointMetadata, wanted: str) -> OperatorMetadata:
    """The one that has this uid, id or name."""
    for key in ("uid", "operator_id", "name"):
        found = [o for o in metadata.operators if getattr(o, key) == wanted]
        if len(found) == 1:
            return found[0]
    known = ", ".join(operator.title for operator in metadata.operators) or "none"
    raise StateNotFoundError(
        f"no operator is called '{wanted}', or several are; there are: {known}"
    )


def _value_type(table: TableDescription) -> TypeInformation | None:
    element, entry = table.element_type, table.entry_type
    if table.kind is TableKind.VALUE or element is None or element.is_pickled:
        return element if table.kind is TableKind.VALUE else None
    if table.kind is TableKind.LIST:
        return Types.LIST(element)
    return None if entry is None or entry.is_pickled else MapTypeInfo(entry, element)


def _without_stamps(value: Any, kind: TableKind) -> Any:
    """With a time to live, every element is a pair with the time of its last access."""
    if kind is TableKind.VALUE:
        return value[0]
    if kind is TableKind.LIST:
        return [element for element, _ in value]
    return {entry: element for entry, (element, _) in value.items()}


def _column(values: list[Any], type_info: TypeInformation | None) -> pa.Array:
    try:
        arrow_type = _arrow_type(type_info)
        plain_type = None if arrow_type is None else type_info
        return pa.array([to_plain(value, plain_type) for value in values], arrow_type)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array(list(map(repr, values)), pa.string())


def _arrow_type(type_info: TypeInformation | None) -> pa.DataType | None:
    """None: nothing is declared, or something that holds any Python object."""
    if type_info is None or type_info.is_pickled:
        return None
    try:
        return type_info.to_arrow_type()
    except NotYetSupportedError:
        return None
