"""Reads keyed state of a savepoint or checkpoint, as entries or as Arrow tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from firesteel.checkpoint.metadata import CheckpointMetadata, KeyedStateFile, OperatorMetadata
from firesteel.checkpoint.savepoints.keyed_state_files import (
    ForeignClassError,
    read_keyed_file,
    refuse_classes,
)
from firesteel.checkpoint.savepoints.plain_pickle import foreign_class
from firesteel.checkpoint.savepoints.plain_values import plain_column
from firesteel.checkpoint.state_descriptions import key_type_of, table_descriptions
from firesteel.checkpoint.storage.metadata_file import open_checkpoint
from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.common.typeinfo import MapTypeInfo, TypeInformation, Types
from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.backend_factory import HASHMAP, StateBackendSettings, create_keyed_state
from firesteel.state.changelog import Segment
from firesteel.state.changes import StateEntry
from firesteel.state.segment_format import has_arrow_form, only_tables
from firesteel.state.table_descriptions import TableDescription, TableKind

_ROCKSDB = StateBackendSettings("rocksdb")


class _SomeTables(StorageSegmentStore):
    """Reads some tables of segments, and refuses those with objects of the job's classes."""

    def __init__(
        self, wanted: Collection[str], options: FileSystemOptions | None, *, allow_pickle: bool
    ) -> None:
        super().__init__(None, 0, options)
        self._wanted = wanted
        self._allow_pickle = allow_pickle

    def read(self, segment: Segment) -> bytes:
        payload = b"".join(only_tables(super().read(segment), self._wanted.__contains__))
        if not self._allow_pickle:
            refuse_classes(payload, segment.path or f"the segment of epoch {segment.epoch}")
        return payload


def read_segments(
    segments: Sequence[Segment],
    states: Collection[str],
    max_parallelism: int,
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> Iterator[StateEntry]:
    """The entries of some states of one subtask.

    ``allow_pickle``: allow objects of the job's classes, whose code then runs.
    """
    store = _SomeTables(states, options, allow_pickle=allow_pickle)
    # Only segments with RocksDB's files need RocksDB.
    settings = _ROCKSDB if any(segment.files for segment in segments) else HASHMAP
    backend = create_keyed_state(settings, None, max_parallelism)
    try:
        backend.restore(segments, store)
        present = [state for state in states if state in backend.descriptions()]
        if not allow_pickle:
            for state, pickle in backend.pickles(present):
                foreign = foreign_class(pickle)
                if foreign is not None:
                    raise ForeignClassError(state, "the checkpoint", foreign)
        yield from backend.entries(present)
    finally:
        backend.close()


StatePart = KeyedStateFile | tuple[Segment, ...]
"""The unit of reading: a file of a savepoint, or the segments of a subtask."""


class StateNotFoundError(FiresteelError, LookupError):
    """An operator or state does not exist. The message lists the existing ones."""


@dataclass(frozen=True, slots=True)
class SavepointState:
    """One keyed state of one operator.

    ``parts``: the files or segments with its entries.
    ``allow_pickle``: allow objects of the job's classes, whose code then runs.
    """

    name: str
    table: TableDescription
    key_type: TypeInformation | None
    max_parallelism: int
    location: str
    parts: tuple[StatePart, ...]
    options: FileSystemOptions | None = None
    allow_pickle: bool = False

    def entries(self, parts: Iterable[StatePart] | None = None) -> Iterator[StateEntry]:
        """The entries of some parts, or of all."""
        directory = open_storage(self.location, self.options)
        for part in self.parts if parts is None else parts:
            if isinstance(part, KeyedStateFile):
                yield from read_keyed_file(
                    part, directory, state=self.name, allow_pickle=self.allow_pickle
                )
            else:
                yield from read_segments(
                    part,
                    {self.name},
                    self.max_parallelism,
                    self.options,
                    allow_pickle=self.allow_pickle,
                )

    @property
    def is_typed(self) -> bool:
        """True if the declared types determine the columns, so that the schema needs no read."""
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

        Columns have the declared types, else inferred types, else text.
        """
        found = list(entries)
        strict = self.is_typed
        columns = {"key": plain_column([one.key for one in found], self.key_type, strict=strict)}
        if self.table.namespaced:
            columns["namespace"] = plain_column([one.namespace for one in found], None)
        values = [one.value for one in found]
        if self.table.ttl:
            values = [_without_stamps(value, self.table.kind) for value in values]
        columns["value"] = plain_column(values, _value_type(self.table), strict=strict)
        return pa.table(columns)


def open_state(
    location: str,
    operator: str,
    state: str,
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> SavepointState:
    """Find a keyed state. ``operator`` is a uid, an operator id or a name."""
    directory, metadata = open_checkpoint(location, options)
    found = find_operator(metadata, operator)
    keyed = table_descriptions(found.states)
    if state not in keyed:
        known = ", ".join(f"'{name}'" for name in sorted(keyed)) or "none"
        raise StateNotFoundError(
            f"{found.title} has no keyed state '{state}' in {directory.location}; it has: {known}"
        )
    parts: list[StatePart] = []
    for subtask in found.subtasks:
        parts += subtask.files
        if subtask.segments:
            parts.append(subtask.segments)
    return SavepointState(
        name=state,
        table=keyed[state],
        key_type=key_type_of(found.states, state),
        max_parallelism=found.max_parallelism,
        location=directory.location,
        parts=tuple(parts),
        options=options,
        allow_pickle=allow_pickle,
    )


def find_operator(metadata: CheckpointMetadata, wanted: str) -> OperatorMetadata:
    """The operator with this uid, id or name."""
    for key in ("uid", "operator_id", "name"):
        found = [o for o in metadata.operators if getattr(o, key) == wanted]
        if len(found) == 1:
            return found[0]
    known = ", ".join(operator.title for operator in metadata.operators) or "none"
    raise StateNotFoundError(
        f"'{wanted}' is not the uid, id or unique name of an operator; the operators are: {known}"
    )


def _value_type(table: TableDescription) -> TypeInformation | None:
    element, entry = table.element_type, table.entry_type
    if table.kind is TableKind.VALUE or element is None or element.is_pickled:
        return element if table.kind is TableKind.VALUE else None
    if table.kind is TableKind.LIST:
        return Types.LIST(element)
    return None if entry is None or entry.is_pickled else MapTypeInfo(entry, element)


def _without_stamps(value: Any, kind: TableKind) -> Any:
    """Remove the times of last access, which elements with a time to live have."""
    if kind is TableKind.VALUE:
        return value[0]
    if kind is TableKind.LIST:
        return [element for element, _ in value]
    return {entry: element for entry, (element, _) in value.items()}
