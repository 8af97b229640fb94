"""State of a savepoint as data: entries, or an Arrow table that Spark makes a DataFrame of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from firesteel.checkpoint.file_systems import FileSystemOptions
from firesteel.checkpoint.keyed_state_files import read_keyed_file
from firesteel.checkpoint.metadata import (
    CheckpointMetadata,
    OperatorMetadata,
    SnapshotType,
    StateDescription,
)
from firesteel.checkpoint.metadata_file import open_checkpoint
from firesteel.checkpoint.savepoint import NoSavepointError
from firesteel.checkpoint.state_descriptions import table_descriptions
from firesteel.checkpoint.storage import Storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.types import Row
from firesteel.errors import FiresteelError
from firesteel.state.entries import StateEntry
from firesteel.state.tables import TableDescription, TableKind
from firesteel.state.type_descriptions import type_of

__all__ = ["StateNotFoundError", "read_state", "state_table"]


class StateNotFoundError(FiresteelError, LookupError):
    """A savepoint has no such operator or state; the message lists those that it has."""


def read_state(
    location: str,
    operator: str,
    state: str,
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> Iterator[StateEntry]:
    """The entries of one keyed state. ``operator`` is a uid, an operator id or a name.

    Objects of the job's own classes are refused unless ``allow_pickle``: rebuilding them runs their
    code.
    """
    directory, found, _ = _open(location, operator, state, options)
    return _entries(directory, found, state, allow_pickle=allow_pickle)


def state_table(
    location: str,
    operator: str,
    state: str,
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> pa.Table:
    """The same as columns ``key``, ``namespace`` (if it has any) and ``value``.

    Columns have the declared types; without them what the values look like, or else their text.
    """
    directory, found, described = _open(location, operator, state, options)
    table = table_descriptions([described])[state]
    entries = list(_entries(directory, found, state, allow_pickle=allow_pickle))
    key_type = described.types.get("key_type")
    columns = {
        "key": _column([e.key for e in entries], None if key_type is None else type_of(key_type))
    }
    if table.namespaced:
        columns["namespace"] = _column([entry.namespace for entry in entries], None)
    columns["value"] = _values([entry.value for entry in entries], table)
    return pa.table(columns)


def _open(
    location: str, operator: str, state: str, options: FileSystemOptions | None
) -> tuple[Storage, OperatorMetadata, StateDescription]:
    directory, metadata = open_checkpoint(location, options)
    if metadata.type is not SnapshotType.SAVEPOINT:
        raise NoSavepointError(
            f"{directory.location} is a checkpoint; only the state of savepoints can be read. Take a "
            "savepoint of the job"
        )
    found = _operator(metadata, operator)
    keyed = table_descriptions(found.states)
    if state not in keyed:
        known = ", ".join(f"'{name}'" for name in sorted(keyed)) or "none"
        raise StateNotFoundError(
            f"{found.title} has no keyed state '{state}' in {directory.location}; it has: {known}"
        )
    return directory, found, next(one for one in found.states if one.name == state)


def _operator(metadata: CheckpointMetadata, wanted: str) -> OperatorMetadata:
    for key in ("uid", "operator_id", "name"):
        found = [o for o in metadata.operators if getattr(o, key) == wanted]
        if len(found) == 1:
            return found[0]
    known = ", ".join(operator.title for operator in metadata.operators) or "none"
    raise StateNotFoundError(
        f"no operator is called '{wanted}', or several are; there are: {known}"
    )


def _entries(
    directory: Storage, operator: OperatorMetadata, state: str, *, allow_pickle: bool
) -> Iterator[StateEntry]:
    for subtask in operator.subtasks:
        for file in subtask.files:
            for entry in read_keyed_file(file, directory, allow_pickle=allow_pickle):
                if entry.table == state:
                    yield entry


def _values(values: list[Any], table: TableDescription) -> pa.Array:
    if table.ttl:
        values = [_without_stamps(value, table.kind) for value in values]
    if table.kind is TableKind.VALUE:
        return _column(values, table.element_type)
    element = None if table.element_type is None else _arrow_type(table.element_type)
    if table.kind is TableKind.LIST:
        return _array(values, None if element is None else pa.list_(element))
    entry = None if table.entry_type is None else _arrow_type(table.entry_type)
    if entry is None or element is None:
        return _array(values, None)
    pairs = [[(_plain(e), _plain(v)) for e, v in value.items()] for value in values]
    return pa.array(pairs, pa.map_(entry, element))


def _without_stamps(value: Any, kind: TableKind) -> Any:
    """With a time to live, every element is a pair with the time of its last access."""
    if kind is TableKind.VALUE:
        return value[0]
    if kind is TableKind.LIST:
        return [element for element, _ in value]
    return {entry: element for entry, (element, _) in value.items()}


def _column(values: list[Any], type_info: TypeInformation | None) -> pa.Array:
    return _array(values, None if type_info is None else _arrow_type(type_info))


def _arrow_type(type_info: TypeInformation) -> pa.DataType | None:
    return None if type_info.is_pickled else type_info.to_arrow_type()


def _array(values: list[Any], arrow_type: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(list(map(_plain, values)), arrow_type)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array(list(map(repr, values)), pa.string())


def _plain(value: Any) -> Any:
    """Rows and tuples as Arrow takes them: by the names of their fields."""
    if isinstance(value, Row):
        names = value._fields or [f"f{position}" for position in range(len(value))]
        return {name: _plain(field) for name, field in zip(names, value, strict=True)}
    if isinstance(value, tuple):
        return {f"f{position}": _plain(field) for position, field in enumerate(value)}
    if isinstance(value, list):
        return list(map(_plain, value))
    return value
