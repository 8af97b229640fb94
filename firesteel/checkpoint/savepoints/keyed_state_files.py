"""The data files of a savepoint: keyed state of one operator subtask, sorted by key group.

They have the format of segments, which all backends read, and contain only entries.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from firesteel.checkpoint.metadata import KeyedStateFile
from firesteel.checkpoint.savepoints.plain_pickle import foreign_class
from firesteel.checkpoint.storage.storage import Storage
from firesteel.checkpoint.storage.verification import facts_of
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError
from firesteel.state.changes import ChangeKind, Changes, EncodedRows, StateEntry, put_chunks
from firesteel.state.frozen_state import Columns, FrozenState, grouped_entries
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.segment_format import (
    converted,
    decode_changes,
    encode_changes,
    only_tables,
    pickled_columns,
)
from firesteel.state.table_descriptions import TableDescription, TableKind

__all__ = [
    "ForeignClassError",
    "read_keyed_file",
    "refuse_classes",
    "write_frozen_state",
    "write_keyed_files",
]

# Entries per file, if they come in any order. They are sorted in memory, so this limits it.
_FILE_ENTRIES = 200_000
_BLOCK_ENTRIES = 5_000
# A file that has this size ends with its key group. A restore reads whole files.
_FILE_BYTES = 64 << 20


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
    seen: defaultdict[str, set[Any]] = defaultdict(set)
    remaining = iter(entries)
    while some := list(islice(remaining, file_entries)):
        state = grouped_entries(some, descriptions, max_parallelism)
        writing = _Writing(state, directory, prefix, key_type, compress, seen=seen, converts=True)
        files += writing.files(len(files))
    return tuple(files)


def write_frozen_state(
    state: FrozenState,
    directory: Storage,
    prefix: str,
    *,
    key_type: TypeInformation | None = None,
    compress: bool = False,
    check: Callable[[], None] = lambda: None,
) -> Iterator[KeyedStateFile]:
    """Write the keyed state of a subtask as a stream, file by file.

    check: called between blocks. It raises an exception if the files are no longer wanted.
    """
    return _Writing(state, directory, prefix, key_type, compress, check=check).files()


class _Writing:
    """Writes key group by key group. A file ends with the group that fills it."""

    def __init__(
        self,
        state: FrozenState,
        directory: Storage,
        prefix: str,
        key_type: TypeInformation | None,
        compress: bool,
        *,
        check: Callable[[], None] = lambda: None,
        seen: defaultdict[str, set[Any]] | None = None,
        converts: bool = False,
    ) -> None:
        """Create a writer.

        seen: keys with namespaces that earlier files have counted.
        converts: values have to be converted to the declared types.
        """
        self._state = state
        self._directory = directory
        self._prefix = prefix
        self._key_type = key_type
        self._compress = compress
        self._check = check
        self._seen = seen
        self._converts = converts
        self._groups: deque[int] = deque()

    def files(self, number: int = 0) -> Iterator[KeyedStateFile]:
        """Write all files. The name of the first one ends with ``number``."""
        self._check()
        groups = {group for table in self._state.tables for group in table.groups()}
        self._groups.extend(sorted(groups))
        while self._groups:
            yield self._write(f"{self._prefix}-{number}")
            number += 1

    def _write(self, name: str) -> KeyedStateFile:
        size = 0
        first = last = self._groups[0]
        entries = dict.fromkeys(sorted(self._state.descriptions), 0)
        keys = dict(entries)
        pickled: set[str] = set()

        def watch(table: str, column: bytes) -> None:
            if table not in pickled and foreign_class(column) is not None:
                pickled.add(table)

        def blocks() -> Iterator[Changes | EncodedRows]:
            nonlocal last
            waiting: dict[str, Columns] = {}
            encoded: dict[str, tuple[list[bytes], list[bytes]]] = {}
            count = 0
            while self._groups and size < _FILE_BYTES:
                self._check()
                last = self._groups.popleft()
                for table in self._state.tables:
                    for part in table.parts_of_group(last):
                        if isinstance(part, EncodedRows):
                            number = len(part.rows)
                            new_keys = number
                            known = encoded.setdefault(table.name, ([], []))
                            known[0].extend(part.rows)
                            known[1].extend(part.values)
                        else:
                            number = len(part[0])
                            new_keys = self._new_keys(table.name, part[0])
                            if number:
                                _append(waiting, table.name, part)
                        entries[table.name] += number
                        keys[table.name] += new_keys
                        count += number
                        if count >= _BLOCK_ENTRIES:
                            yield from self._blocks(waiting, encoded)
                            count = 0
            yield from self._blocks(waiting, encoded)

        def chunks() -> Iterator[bytes]:
            nonlocal size
            encoded = encode_changes(
                blocks(),
                self._state.descriptions,
                self._key_type,
                compress=self._compress,
                watch=watch,
            )
            for chunk in encoded:
                size += len(chunk)
                yield chunk

        facts = self._directory.write(name, chunks())
        return KeyedStateFile(
            path=self._directory.location_of(name),
            size=facts.size,
            checksum=facts.checksum,
            key_groups=KeyGroupRange(first, last),
            entries=entries,
            keys=keys,
            pickled=frozenset(pickled),
        )

    def _new_keys(self, table: str, keys: list[Any]) -> int:
        """The number of keys in a key group. A key may have many namespaces."""
        if not self._state.descriptions[table].namespaced:
            return len(keys)
        found = {key for key, _ in keys}
        if self._seen is None:
            return len(found)
        known = self._seen[table]
        before = len(known)
        known |= found
        return len(known) - before

    def _blocks(
        self, waiting: dict[str, Columns], encoded: dict[str, tuple[list[bytes], list[bytes]]]
    ) -> Iterator[Changes | EncodedRows]:
        """The blocks of what has been read. Empties both arguments."""
        for name, (rows, values) in sorted(encoded.items()):
            self._check()
            yield EncodedRows(name, rows, values)
        encoded.clear()
        yield from self._changes(waiting)
        waiting.clear()

    def _changes(self, waiting: Mapping[str, Columns]) -> Iterator[Changes]:
        for name in sorted(waiting):
            table = self._state.descriptions[name]
            for changes in put_chunks(name, table.kind, *waiting[name], _BLOCK_ENTRIES):
                self._check()
                yield converted(changes, table) if self._converts else changes


def _append(waiting: dict[str, Columns], table: str, columns: Columns) -> None:
    known = waiting.get(table)
    if known is None:
        waiting[table] = columns
    else:
        known[0].extend(columns[0])
        known[1].extend(columns[1])


def read_keyed_file(
    file: KeyedStateFile,
    storage: Storage,
    *,
    state: str | None = None,
    allow_pickle: bool = False,
) -> Iterator[StateEntry]:
    """The entries of a file of ``storage``.

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
