"""Reader of a PostgresCdcSource: the rows of a table, then its changes.

The table is read in the order of its primary key, in one transaction. After a restart a new
transaction reads the rest. The position keeps the snapshot of each of these transactions with the
range of keys that it has read. The changes come from a slot that is older than the first of these
transactions, so that none is missing. A change is skipped if the snapshot of its key's range
contains its transaction: then the row was read with the change.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from firesteel.common.types import Row, RowKind, new_row
from firesteel.connectors.base import SourceReader, SourceSplit
from firesteel.connectors.postgres_cdc.errors import (
    ChangeStreamError,
    ReplicationSlotMovedError,
)
from firesteel.connectors.postgres_cdc.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    Relation,
    Truncate,
    format_lsn,
    parse_lsn,
)
from firesteel.connectors.postgres_cdc.replication import ReplicationStream
from firesteel.connectors.postgres_cdc.settings import CdcSettings
from firesteel.connectors.postgres_cdc.snapshots import TransactionSnapshot

__all__ = ["ChangeReader"]

# Changes that were received and not returned, at most.
_MOST_PENDING = 20_000
_DELAY_SECONDS = 0.02
_PAUSE_SECONDS = 0.2
# A killed reader may hold the slot until the server notices.
_SLOT_SECONDS = 90.0

# Types whose order is the same in Python and in PostgreSQL, by their names in pg_type.
_TEXT_TYPES = ("text", "varchar")
_KEY_TYPES = ("int2", "int4", "int8", "numeric", "uuid", "date", "timestamp", "timestamptz")


class ChangeReader(SourceReader):
    """Reads one split. Its position is JSON, in one of two phases.

    - ``{"after": key, "ranges": [...]}`` while the table is read. ``after`` is the last key, as text.
    - ``{"lsn": text, "returned": number, "ranges": [...], "until": text}`` in the log: the end of
      the last transaction that was returned as a whole, and the records that were returned after
      it. The ranges are dropped when the log has passed ``until``.

    A range is a pair: the last key of the range, or None, and the snapshot that has read it.
    """

    def __init__(self, settings: CdcSettings) -> None:
        """Create a reader. It connects at the first read.

        Args:
            settings: The table and the slot.
        """
        self._settings = settings
        self._split: SourceSplit | None = None
        self._ranges: list[tuple[list[str] | None, str]] = []
        self._table: _TableRead | None = None
        self._after: list[str] | None = None
        self._log: _LogRead | None = None
        # The positions of checkpoints that are not complete.
        self._contained: dict[int, int] = {}

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        for split in splits:
            self._split = split
            position = split.position
            if position is None:
                if not self._settings.reads_snapshot:
                    self._log = _LogRead(self._settings, [], None, 0, 0)
            elif "lsn" in position:
                ranges = [(key, text) for key, text in position["ranges"]]
                until = position["until"]
                self._log = _LogRead(
                    self._settings,
                    ranges,
                    None if until is None else parse_lsn(until),
                    parse_lsn(position["lsn"]),
                    position["returned"],
                )
            else:
                self._after = position["after"]
                self._ranges = [(key, text) for key, text in position["ranges"]]

    def read(self, limit: int) -> list[Any]:
        if self._split is None:
            return []
        if self._log is None:
            rows = self._read_table(limit)
            if rows or self._log is None:
                return rows
        return self._log.read(limit)

    def snapshot_splits(self) -> list[SourceSplit]:
        if self._split is None:
            return []
        if self._log is not None:
            return [self._split.at(self._log.position())]
        if self._after is None:
            return [self._split]
        # The rows after the last key have not been read: a different snapshot will read them.
        ranges = [*self._ranges]
        if self._table is not None:
            ranges.append((self._after, self._table.snapshot))
        return [self._split.at({"after": self._after, "ranges": [list(one) for one in ranges]})]

    def current_split(self) -> str | None:
        return None if self._split is None else self._split.split_id

    def next_read_delay(self) -> float:
        return _DELAY_SECONDS

    def begin_checkpoint(self, checkpoint_id: int) -> None:
        if self._log is not None:
            self._contained[checkpoint_id] = self._log.lsn

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        lsn = self._contained.get(checkpoint_id)
        self._contained = {key: one for key, one in self._contained.items() if key > checkpoint_id}
        if lsn is not None and self._log is not None:
            self._log.confirm(lsn)

    def close(self) -> None:
        if self._table is not None:
            self._table.close()
            self._table = None
        if self._log is not None:
            self._log.close()

    def _read_table(self, limit: int) -> list[Any]:
        if self._table is None:
            self._table = _TableRead(self._settings, self._after)
        rows, keys = self._table.fetch(min(limit, self._settings.fetch_size))
        if rows:
            self._after = keys
            return rows
        self._ranges.append((None, self._table.snapshot))
        until = self._table.end_of_log()
        self._table.close()
        self._table = None
        self._log = _LogRead(self._settings, self._ranges, until, 0, 0)
        return []


class _TableRead:
    """A transaction that reads the rows of a table after a key, in the order of keys."""

    def __init__(self, settings: CdcSettings, after: list[str] | None) -> None:
        self._settings = settings
        self._names = settings.type_info.get_field_names()
        options = settings.connection
        self._connection = options.database.connect(options.check_timeout_seconds)
        execute = self._connection.execute
        keys = _primary_key(self._connection, settings)
        quote = options.database.quote
        execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        [self.snapshot] = execute("SELECT txid_current_snapshot()::text").fetchone()
        columns = ", ".join(map(quote, self._names))
        texts = ", ".join(f"{quote(key.name)}::text" for key in keys)
        order = [f"t.{quote(key.name)}{key.collation}" for key in keys]
        where = ""
        parameters: tuple[str, ...] | None = None
        if after is not None:
            marks = ", ".join(f"%s::{key.type}" for key in keys)
            where = f" WHERE ({', '.join(order)}) > ({marks})"
            parameters = tuple(after)
        self._keys = len(keys)
        self._cursor = psycopg.ClientCursor(self._connection)
        self._cursor.execute(
            f"DECLARE firesteel_rows NO SCROLL CURSOR FOR SELECT {columns}, {texts} "
            f"FROM {quote(settings.table)} AS t{where} ORDER BY {', '.join(order)}",
            parameters,
        )

    def fetch(self, limit: int) -> tuple[list[Row], list[str]]:
        """Return the next rows, and the key of the last one as text."""
        rows = self._cursor.execute(f"FETCH {limit} FROM firesteel_rows").fetchall()
        names, width = self._names, len(self._names)
        found = [new_row(list(row[:width]), names) for row in rows]
        return found, list(rows[-1][width:]) if rows else []

    def end_of_log(self) -> int:
        """Return a position after the commits of all transactions that the snapshots contain."""
        self._connection.execute("COMMIT")
        [text] = self._connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        return parse_lsn(text)

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()


class _LogRead:
    """The changes of a slot. It connects again after errors, and repeats nothing."""

    def __init__(
        self,
        settings: CdcSettings,
        ranges: Sequence[tuple[list[str] | None, str]],
        until: int | None,
        lsn: int,
        returned: int,
    ) -> None:
        self._settings = settings
        self._names = settings.type_info.get_field_names()
        self._stream: ReplicationStream | None = None
        self._range_texts = list(ranges)
        self._until = until
        self.lsn = lsn
        self._returned = returned
        # Records, and positions that are reached when all records before them are returned.
        self._pending: deque[Row | int] = deque()
        self._skip = 0
        self._relations: dict[int, _Decoder] = {}
        self._transaction: Begin | None = None
        self._ranges: list[tuple[Any, TransactionSnapshot]] = []
        self._keys: list[_Key] = []

    def position(self) -> dict[str, Any]:
        return {
            "lsn": format_lsn(self.lsn),
            "returned": self._returned,
            "ranges": [list(one) for one in self._range_texts],
            "until": None if self._until is None else format_lsn(self._until),
        }

    def read(self, limit: int) -> list[Any]:
        if len(self._pending) < limit:
            self._receive()
        pending = self._pending
        records: list[Any] = []
        while pending:
            if isinstance(pending[0], int):
                self._pass(pending.popleft())  # type: ignore[arg-type]  # checked
            elif len(records) < limit:
                records.append(pending.popleft())
                self._returned += 1
            else:
                break
        return records

    def confirm(self, lsn: int) -> None:
        if self._stream is not None:
            with suppress(psycopg.Error):
                self._stream.confirm(lsn)

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _pass(self, lsn: int) -> None:
        """All records before a position are returned."""
        if lsn <= self.lsn:
            return
        self.lsn, self._returned = lsn, 0
        if self._until is not None and lsn > self._until:
            self._range_texts, self._ranges, self._until = [], [], None

    def _receive(self) -> None:
        try:
            if self._stream is None:
                self._connect()
            assert self._stream is not None
            for message in self._stream.messages(_MOST_PENDING):
                self._take(message)
                if len(self._pending) >= _MOST_PENDING:
                    break
        except psycopg.OperationalError as error:
            # The next read connects again, from the position of the last record.
            self.close()
            self._pending.clear()
            if not self._settings.connection.database.is_transient(error):
                raise

    def _connect(self) -> None:
        options, settings = self._settings.connection, self._settings
        with options.database.connect(options.check_timeout_seconds) as connection:
            self._check_slot(connection)
            self._keys = _primary_key(connection, settings)
        types = [key.oid for key in self._keys]
        self._ranges = [
            (None if last is None else _loaded(types, last), TransactionSnapshot(text))
            for last, text in self._range_texts
        ]
        deadline = time.monotonic() + _SLOT_SECONDS
        while True:
            try:
                self._stream = ReplicationStream(
                    options.database.arguments,  # type: ignore[attr-defined]  # PostgreSQL
                    settings.slot,
                    settings.publication,
                    self.lsn,
                )
            except psycopg.OperationalError as error:
                if "is active" not in str(error):
                    raise
                if time.monotonic() >= deadline:
                    raise ChangeStreamError(
                        settings.table,
                        f"the slot {settings.slot!r} is in use. Each job needs a slot of its own",
                    ) from error
                time.sleep(_PAUSE_SECONDS)
            else:
                break
        self._skip = self._returned
        self._relations = {}
        self._transaction = None

    def _check_slot(self, connection: Any) -> None:
        slot = self._settings.slot
        found = connection.execute(
            "SELECT confirmed_flush_lsn::text, pg_is_in_recovery() FROM pg_replication_slots "
            "WHERE slot_name = %s",
            [slot],
        ).fetchone()
        if found is None:
            raise ReplicationSlotMovedError(slot, format_lsn(self.lsn), None)
        if self.lsn and parse_lsn(found[0]) > self.lsn:
            raise ReplicationSlotMovedError(slot, format_lsn(self.lsn), found[0])

    def _take(self, message: Any) -> None:
        if isinstance(message, Change):
            self._take_change(message)
        elif isinstance(message, Begin):
            self._transaction = message
        elif isinstance(message, Commit):
            self._transaction = None
            self._pending.append(message.end_lsn)
            self._skip_is_over()
        elif isinstance(message, Relation):
            self._relations[message.number] = _Decoder(message, self._names, self._settings.table)
        elif isinstance(message, Truncate):
            if any(self._relations[one].is_followed for one in message.relations):
                raise ChangeStreamError(
                    self._settings.table,
                    "it was truncated, which is no change of rows. Restart the job without its "
                    "checkpoint and with a new slot, or use DELETE",
                )
        elif self._transaction is None:
            self._pending.append(message)

    def _skip_is_over(self) -> None:
        """The records to skip belong to one transaction."""
        if self._skip:
            raise ChangeStreamError(
                self._settings.table,
                "a transaction has fewer changes than were read of it before the restart",
            )

    def _take_change(self, change: Change) -> None:
        decoder = self._relations[change.relation]
        if not decoder.is_followed:
            return
        for row in self._rows(decoder, change):
            if self._skip:
                self._skip -= 1
            else:
                self._pending.append(row)

    def _rows(self, decoder: _Decoder, change: Change) -> list[Row]:
        """Return the rows of a change, without parts that the table's snapshot has seen."""
        old = None if change.old is None else decoder.row(change.old)
        whole = change.old if change.old_is_whole else None
        new = None if change.new is None else decoder.row(change.new, whole)
        if new is None:
            assert old is not None
            return [] if self._is_seen(decoder, old) else [_of_kind(old, RowKind.DELETE)]
        if old is None:
            if self._is_seen(decoder, new):
                return []
            return [_of_kind(new, RowKind.INSERT if change.is_insert else RowKind.UPDATE_AFTER)]
        sees_old, sees_new = self._is_seen(decoder, old), self._is_seen(decoder, new)
        rows = []
        keeps_key = self._key(decoder, old) == self._key(decoder, new)
        is_update = keeps_key or change.old_is_whole
        if not sees_old and (change.old_is_whole or not keeps_key):
            both = is_update and not sees_new
            rows.append(_of_kind(old, RowKind.UPDATE_BEFORE if both else RowKind.DELETE))
        if not sees_new:
            both = is_update and not sees_old
            rows.append(_of_kind(new, RowKind.UPDATE_AFTER if both else RowKind.INSERT))
        return rows

    def _key(self, decoder: _Decoder, row: Row) -> tuple[Any, ...]:
        return tuple(decoder.value(row, key.name) for key in self._keys)

    def _is_seen(self, decoder: _Decoder, row: Row) -> bool:
        if not self._ranges:
            return False
        assert self._transaction is not None
        key = self._key(decoder, row)
        for last, snapshot in self._ranges:
            if last is None or key <= last:
                return snapshot.contains(self._transaction.transaction)
        return False


@dataclass(frozen=True, slots=True)
class _Key:
    """A column of a primary key.

    Args:
        name: The name of the column.
        type: The name of its type.
        oid: The number of its type.
    """

    name: str
    type: str
    oid: int

    @property
    def collation(self) -> str:
        """Makes PostgreSQL compare text as Python does."""
        return ' COLLATE "C"' if self.type in _TEXT_TYPES else ""


def _primary_key(connection: Any, settings: CdcSettings) -> list[_Key]:
    found = connection.execute(
        "SELECT a.attname, t.typname, t.oid::int FROM pg_index i "
        "CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number "
        "JOIN pg_type t ON t.oid = a.atttypid "
        "WHERE i.indrelid = %s::regclass AND i.indisprimary ORDER BY k.place",
        [settings.connection.database.quote(settings.table)],
    ).fetchall()
    keys = [_Key(*row) for row in found]
    columns = settings.type_info.get_field_names()
    if not keys or any(key.name not in columns for key in keys):
        raise ChangeStreamError(
            settings.table,
            f"the rows must have its primary key, which is {[key.name for key in keys]}, but they "
            f"have the fields {columns}",
        )
    for key in keys:
        if key.type not in (*_TEXT_TYPES, *_KEY_TYPES):
            raise ChangeStreamError(
                settings.table,
                f"its key column {key.name!r} has the type {key.type}. Keys may have the types "
                f"{', '.join((*_TEXT_TYPES, *_KEY_TYPES))}",
            )
    return keys


class _Decoder:
    """Makes rows of the values of a table."""

    def __init__(self, relation: Relation, names: list[str], table: str) -> None:
        self.is_followed = relation.table == table
        self._names = names
        self._table = table
        if not self.is_followed:
            return
        missing = [name for name in names if name not in relation.columns]
        if missing:
            raise ChangeStreamError(
                table, f"it has no column {', '.join(missing)}, but {', '.join(relation.columns)}"
            )
        self._positions = [relation.columns.index(name) for name in names]
        self._types = [relation.types[position] for position in self._positions]
        self._transformer = Transformer()

    def row(self, values: Sequence[Any], whole: Sequence[Any] | None = None) -> Row:
        """Return a row.

        Args:
            values: The values of all columns.
            whole: All values before the change, or None if they are not known.
        """
        found = []
        for position, oid in zip(self._positions, self._types, strict=True):
            value = values[position]
            if value is UNCHANGED:
                if whole is None:
                    raise ChangeStreamError(
                        self._table,
                        "PostgreSQL does not send large values that an update left alone. Run "
                        f"ALTER TABLE {self._table} REPLICA IDENTITY FULL",
                    )
                value = whole[position]
            if value is not None:
                value = self._transformer.get_loader(oid, pq.Format.TEXT).load(value)
            found.append(value)
        return new_row(found, self._names)

    def value(self, row: Row, name: str) -> Any:
        return row[self._names.index(name)]


def _loaded(types: Sequence[int], texts: Sequence[str]) -> tuple[Any, ...]:
    transformer = Transformer()
    return tuple(
        transformer.get_loader(oid, pq.Format.TEXT).load(text.encode())
        for oid, text in zip(types, texts, strict=True)
    )


def _of_kind(row: Row, kind: RowKind) -> Row:
    row.set_row_kind(kind)
    return row
