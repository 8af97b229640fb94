"""The data files of a savepoint: keyed state of one operator subtask, sorted by key group.

They have the format of segments, which all backends read, and contain only entries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.checkpoint.metadata import KeyedStateFile
from firesteel.checkpoint.savepoints.plain_pickle import foreign_class
from firesteel.checkpoint.storage.storage import Storage
from firesteel.checkpoint.storage.verification import facts_of
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError
from firesteel.state.backend import KeyGroupFilter
from firesteel.state.changes import ChangeKind, Changes, StateEntry, put_changes
from firesteel.state.key_groups import KeyGroupRange, key_group_of
from firesteel.state.segment_format import (
    converted,
    decode_changes,
    encode_changes,
    only_tables,
    pickled_columns,
)
from firesteel.state.table_descriptions import TableDescription, TableKind

__all__ = ["ForeignClassError", "read_keyed_file", "refuse_classes", "write_keyed_files"]

# Entries per file. They are sorted in memory, so this limits the memory of writing.
_FILE_ENTRIES = 200_000
_BLOCK_ENTRIES = 5_000


class ForeignClassError(FiresteelError, RuntimeError):
    """Reading would run code of the job's classes, which the caller has not allowed."""

    def __init__(self, state: str, location: str, name: str) -> None:
        super().__init__(
            f"the state '{state}' in {location} contains objects of {name}. Reading them runs code "
            "of that class: if you trust the savepoint, pass allow_pickle=True"
        )
        self.state = state
        self.location = location
        self.name = name


@dataclass(slots=True)
class _Seen:
    """Keys that were counted. A key may have many namespaces."""

    keys: defaultdict[str, set[Any]] = field(default_factory=lambda: defaultdict(set))


def write_keyed_files(
    entries: Iterable[StateEntry],
    descriptions: Mapping[str, TableDescription],
    directory: Storage,
    prefix: str,
    *,
    max_parallelism: int,
    key_type: TypeInformation | None = None,
    compress: bool = False,
    file_entries: int = _FILE_ENTRIES,
) -> tuple[KeyedStateFile, ...]:
    """Write entries, in any order, to as many files as necessary."""
    files: list[KeyedStateFile] = []
    seen = _Seen()
    groups: defaultdict[int, list[StateEntry]] = defaultdict(list)
    count = 0

    def flush() -> None:
        name = f"{prefix}-{len(files)}"
        files.append(_write(groups, descriptions, directory, name, key_type, seen, compress))
        groups.clear()

    for entry in entries:
        groups[key_group_of(entry.key, max_parallelism)].append(entry)
        count += 1
        if count >= file_entries:
            flush()
            count = 0
    if groups:
        flush()
    return tuple(files)


def _write(
    groups: Mapping[int, list[StateEntry]],
    descriptions: Mapping[str, TableDescription],
    directory: Storage,
    name: str,
    key_type: TypeInformation | None,
    seen: _Seen,
    compress: bool,
) -> KeyedStateFile:
    counted, keys = _count(groups, descriptions, seen)
    changes = _blocks(groups, descriptions)
    payload = b"".join(encode_changes(changes, descriptions, key_type, compress=compress))
    facts = directory.write(name, payload)
    return KeyedStateFile(
        path=directory.location_of(name),
        size=facts.size,
        checksum=facts.checksum,
        key_groups=KeyGroupRange(min(groups), max(groups)),
        entries=counted,
        keys=keys,
        pickled=frozenset(
            table
            for table, _, column in pickled_columns(payload)
            if foreign_class(column) is not None
        ),
    )


def _count(
    groups: Mapping[int, list[StateEntry]],
    descriptions: Mapping[str, TableDescription],
    seen: _Seen,
) -> tuple[dict[str, int], dict[str, int]]:
    entries: dict[str, int] = dict.fromkeys(sorted(descriptions), 0)
    keys = dict(entries)
    for group in groups.values():
        for entry in group:
            entries[entry.table] += 1
            if descriptions[entry.table].namespaced:
                known = seen.keys[entry.table]
                if entry.key in known:
                    continue
                known.add(entry.key)
            keys[entry.table] += 1
    return entries, keys


def _blocks(
    groups: Mapping[int, list[StateEntry]], descriptions: Mapping[str, TableDescription]
) -> Iterator[Changes]:
    """Blocks of whole key groups, in order, of about ``_BLOCK_ENTRIES`` entries."""
    tables: defaultdict[str, list[StateEntry]] = defaultdict(list)
    count = 0
    for group in sorted(groups):
        for entry in groups[group]:
            tables[entry.table].append(entry)
        count += len(groups[group])
        if count >= _BLOCK_ENTRIES:
            yield from _changes(tables, descriptions)
            tables.clear()
            count = 0
    yield from _changes(tables, descriptions)


def _changes(
    tables: Mapping[str, list[StateEntry]], descriptions: Mapping[str, TableDescription]
) -> Iterator[Changes]:
    for name in sorted(tables):
        table = descriptions[name]
        entries = tables[name]
        keys = [(e.key, e.namespace) if table.namespaced else e.key for e in entries]
        values = [entry.value for entry in entries]
        yield converted(put_changes(name, table.kind, keys, values), table)


def read_keyed_file(
    file: KeyedStateFile,
    storage: Storage,
    only: KeyGroupFilter | None = None,
    *,
    state: str | None = None,
    allow_pickle: bool = False,
) -> Iterator[StateEntry]:
    """The entries of a file of ``storage``.

    ``only``: entries of some key groups.
    ``state``: entries of one state.
    ``allow_pickle``: create objects of the job's classes, which runs their code. A job that
    restores its own state does so.
    """
    facts = facts_of(file)
    payload = storage.read(facts.name, facts)
    if state is not None:
        payload = b"".join(only_tables(payload, state.__eq__))
    if not allow_pickle:
        refuse_classes(payload, file.path)
    for changes, description in decode_changes(payload):
        assert changes.kind is ChangeKind.PUT
        if only is not None:
            changes = changes.only(only.picks(description))
        yield from _entries(changes, description)


def refuse_classes(payload: bytes, location: str) -> None:
    """Raise ForeignClassError unless all pickles of a segment or file are plain data."""
    for table, _, column in pickled_columns(payload):
        foreign = foreign_class(column)
        if foreign is not None:
            raise ForeignClassError(table, location, foreign)


def _entries(changes: Changes, table: TableDescription) -> Iterator[StateEntry]:
    for key, value in zip(changes.keys, _values(changes, table), strict=True):
        bare, namespace = key if table.namespaced else (key, None)
        yield StateEntry(changes.table, bare, namespace, value)


def _values(changes: Changes, table: TableDescription) -> Iterable[Any]:
    assert changes.elements is not None
    if table.kind is TableKind.VALUE:
        return changes.elements
    lists = changes.groups(changes.elements)
    if table.kind is TableKind.LIST:
        return lists
    names = changes.groups(changes.entries)
    return (
        dict(zip(of_key, values, strict=True)) for of_key, values in zip(names, lists, strict=True)
    )
