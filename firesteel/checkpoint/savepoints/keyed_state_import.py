"""Imports rows as keyed state of a savepoint.

The first step finds the subtask of each key, and the second one writes the files of subtasks. Each
maps Arrow batches to Arrow batches, so that Spark's tasks can run them, with an exchange between.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from firesteel.checkpoint.metadata import KeyedStateFile
from firesteel.checkpoint.savepoints.keyed_state_files import write_keyed_files
from firesteel.checkpoint.savepoints.plain_values import from_plain
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError, InvalidProgramError, TypeMismatchError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.changes import StateEntry
from firesteel.state.key_groups import KeyRouter
from firesteel.state.table_descriptions import TableDescription, TableKind
from firesteel.state.value_keys import hashable_key
from firesteel.usercode import pickling

__all__ = [
    "KEY",
    "TARGET",
    "VALUE",
    "WRITTEN_SCHEMA",
    "DuplicateKeyError",
    "KeyedStateImport",
    "import_table",
    "written_files",
]

KEY, VALUE, TARGET = "key", "value", "target"

WRITTEN_SCHEMA = pa.schema([("subtask", pa.int32()), ("file", pa.binary())])


class DuplicateKeyError(FiresteelError, ValueError):
    """There are two rows for a key."""


@dataclass(frozen=True, slots=True)
class KeyedStateImport:
    """The import of one state of one operator.

    ``stamp``: with a time to live, the time of the last use of all elements, in milliseconds.
    """

    state: str
    table: TableDescription
    key_type: TypeInformation | None
    parallelism: int
    max_parallelism: int
    location: str
    prefix: str
    options: FileSystemOptions | None = None
    stamp: int = 0

    def route(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add a column with the subtask of each key."""
        router = KeyRouter(self.parallelism, self.max_parallelism)
        for batch in batches:
            targets = router.targets(self._keys(batch))
            yield pa.RecordBatch.from_arrays(
                [batch.column(KEY), batch.column(VALUE), pa.array(targets, pa.int32())],
                names=[KEY, VALUE, TARGET],
            )

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of some subtasks, ordered by subtask. Returns the written files."""
        directory = open_storage(self.location, self.options)
        # Two attempts of a task may run at the same time.
        attempt = uuid.uuid4().hex[:12]
        for subtask, rows in groupby(self._rows(batches), key=itemgetter(0)):
            files = write_keyed_files(
                self._entries(rows),
                {self.state: self.table},
                directory,
                f"{self.prefix}-{subtask}-{attempt}",
                max_parallelism=self.max_parallelism,
                key_type=self.key_type,
            )
            yield pa.RecordBatch.from_pydict(
                {"subtask": [subtask] * len(files), "file": list(map(pickling.dumps, files))},
                schema=WRITTEN_SCHEMA,
            )

    def _keys(self, batch: pa.RecordBatch) -> list[Any]:
        column = batch.column(KEY)
        if self.key_type is None and pa.types.is_nested(column.type):
            raise InvalidProgramError(
                f"The keys of the state '{self.state}' are of type {column.type}, which may be "
                "tuples or rows: pass key_type, as in the job's key_by."
            )
        keys = [from_plain(key, self.key_type) for key in column.to_pylist()]
        if self.key_type is None:
            return keys
        try:
            return list(map(hashable_key, self.key_type.convert_batch(keys, nullable=True)))
        except TypeMismatchError as error:
            error.reason = f"{error.reason} It is a key of the state '{self.state}'."
            raise

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any, Any]]:
        for batch in batches:
            yield from zip(
                batch.column(TARGET).to_pylist(),
                self._keys(batch),
                batch.column(VALUE).to_pylist(),
                strict=True,
            )

    def _entries(self, rows: Iterable[tuple[int, Any, Any]]) -> Iterator[StateEntry]:
        seen: set[Any] = set()
        for _, key, value in rows:
            # As in Flink, a key without a value, or with an empty list or map, has no state.
            if value is None or (value in ([], {}) and self.table.kind is not TableKind.VALUE):
                continue
            if key in seen:
                raise DuplicateKeyError(
                    f"the key {key!r} has more than one row for the state '{self.state}'; each key "
                    "must have exactly one"
                )
            seen.add(key)
            yield StateEntry(self.state, key, None, self._value(key, value))

    def _value(self, key: Any, value: Any) -> Any:
        table = self.table
        if table.kind is TableKind.VALUE:
            return self._element(value)
        if not isinstance(value, list | dict):
            shape = "an array" if table.kind is TableKind.LIST else "a map"
            raise InvalidProgramError(
                f"The state '{self.state}' is a {table.kind.value} state, so its values must be "
                f"{shape}, but the value of the key {key!r} is {value!r}."
            )
        if table.kind is TableKind.LIST:
            return [self._element(element) for element in value]
        pairs = value.items() if isinstance(value, dict) else value
        return {from_plain(entry, table.entry_type): self._element(e) for entry, e in pairs}

    def _element(self, element: Any) -> Any:
        converted = from_plain(element, self.table.element_type)
        return (converted, self.stamp) if self.table.ttl else converted


def import_table(order: KeyedStateImport, rows: pa.Table) -> dict[int, tuple[KeyedStateFile, ...]]:
    """Run both steps in this process."""
    routed = pa.Table.from_batches(
        order.route(rows.to_batches()) if rows.num_rows else [],
        schema=rows.select([KEY, VALUE]).schema.append(pa.field(TARGET, pa.int32())),
    )
    written = order.write(routed.sort_by(TARGET).to_batches())
    return written_files(
        (row["subtask"], row["file"]) for batch in written for row in batch.to_pylist()
    )


def written_files(rows: Iterable[tuple[int, bytes]]) -> dict[int, tuple[KeyedStateFile, ...]]:
    """The files from ``write`` by subtask."""
    files: dict[int, list[KeyedStateFile]] = {}
    for subtask, file in rows:
        files.setdefault(subtask, []).append(pickling.loads(file))
    return {subtask: tuple(of_subtask) for subtask, of_subtask in files.items()}
