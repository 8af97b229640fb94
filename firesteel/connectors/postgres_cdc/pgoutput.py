"""Messages of PostgreSQL's output plugin ``pgoutput``, protocol version 1."""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = [
    "UNCHANGED",
    "Begin",
    "Change",
    "Commit",
    "Message",
    "Relation",
    "Truncate",
    "decode",
    "format_lsn",
    "parse_lsn",
]


class _Unchanged:
    """A large value that an update did not touch, so that the server did not send it."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = _Unchanged()

Values = list["bytes | _Unchanged | None"]


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins.

    Args:
        commit_lsn: The position of its commit record.
        transaction: The lower 32 bits of its number.
    """

    commit_lsn: int
    transaction: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction ends. A stream that starts at ``end_lsn`` does not contain it."""

    end_lsn: int


@dataclass(frozen=True, slots=True)
class Relation:
    """The columns of a table, before its first change and after it was altered.

    Args:
        number: The number of the table in later messages.
        table: The name of the table with its schema.
        columns: The names of the columns.
        types: The numbers of their types.
        keys: True for the columns of the replica identity.
    """

    number: int
    table: str
    columns: tuple[str, ...]
    types: tuple[int, ...]
    keys: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row. ``old`` has only the key columns unless ``old_is_whole``."""

    relation: int
    is_insert: bool
    old: Values | None
    old_is_whole: bool
    new: Values | None


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables were emptied."""

    relations: tuple[int, ...]


Message = Begin | Commit | Relation | Change | Truncate


def decode(data: bytes) -> Message | None:
    """Return the message in ``data``, or None if it does not matter."""
    kind = data[:1]
    if kind == b"B":
        commit_lsn, _, transaction = struct.unpack_from(">QQI", data, 1)
        return Begin(commit_lsn, transaction)
    if kind == b"C":
        (end_lsn,) = struct.unpack_from(">Q", data, 10)
        return Commit(end_lsn)
    if kind == b"R":
        return _relation(data)
    if kind in (b"I", b"U", b"D"):
        return _change(data)
    if kind == b"T":
        (count,) = struct.unpack_from(">I", data, 1)
        return Truncate(struct.unpack_from(f">{count}I", data, 6))
    return None


def _relation(data: bytes) -> Relation:
    (number,) = struct.unpack_from(">I", data, 1)
    schema, position = _text(data, 5)
    name, position = _text(data, position)
    (count,) = struct.unpack_from(">H", data, position + 1)
    position += 3
    columns, types, keys = [], [], []
    for _ in range(count):
        keys.append(bool(data[position] & 1))
        column, position = _text(data, position + 1)
        columns.append(column)
        (oid,) = struct.unpack_from(">I", data, position)
        types.append(oid)
        position += 8
    return Relation(number, f"{schema}.{name}", tuple(columns), tuple(types), tuple(keys))


def _change(data: bytes) -> Change:
    (relation,) = struct.unpack_from(">I", data, 1)
    position = 5
    old = new = None
    is_whole = False
    while position < len(data):
        mark = data[position : position + 1]
        values, position = _values(data, position + 1)
        if mark == b"N":
            new = values
        else:
            old, is_whole = values, mark == b"O"
    return Change(relation, data[:1] == b"I", old, is_whole, new)


def _values(data: bytes, position: int) -> tuple[Values, int]:
    (count,) = struct.unpack_from(">H", data, position)
    position += 2
    values: Values = []
    for _ in range(count):
        kind = data[position]
        position += 1
        if kind == ord("t"):
            (size,) = struct.unpack_from(">I", data, position)
            values.append(bytes(data[position + 4 : position + 4 + size]))
            position += 4 + size
        else:
            values.append(UNCHANGED if kind == ord("u") else None)
    return values, position


def _text(data: bytes, position: int) -> tuple[str, int]:
    end = data.index(b"\0", position)
    return data[position:end].decode(), end + 1


def parse_lsn(text: str) -> int:
    """Return a position in the log as a number.

    >>> parse_lsn("1/A0")
    4294967456
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def format_lsn(lsn: int) -> str:
    """Return a position in the log as PostgreSQL writes it.

    >>> format_lsn(4294967456)
    '1/A0'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
