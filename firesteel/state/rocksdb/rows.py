"""Rows of tables in RocksDB.

The key of a row is: table number, key group, key, namespace, and a suffix for lists and maps.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from firesteel.state.elements import (
    PICKLED,
    PLAIN_TAG,
    decode_element,
    encode_each,
    encode_element,
    pickles_in,
)
from firesteel.state.key_encoding import (
    SCALAR_TAGS,
    all_come_back,
    comes_back,
    decode_key,
    decode_last,
    encode_entry,
    encode_key,
    encode_keys,
)
from firesteel.state.key_groups import int_key_groups, key_group_of, key_groups_of
from firesteel.state.stable_hash import fold_int
from firesteel.state.table_descriptions import TableDescription, TableKind
from firesteel.usercode import pickling

_HEAD = struct.Struct(">HH")
_TABLE = struct.Struct(">H")
_STAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">I")
# This byte is greater than any byte that follows a key in a row. A seek to key + AFTER skips all
# rows of the key.
AFTER = b"\xff"
_AS_ENCODED, _WITH_ORIGINAL = b"\x00", b"\x01"

HEAD_LENGTH = _HEAD.size


def key_group_of_row(row: bytes) -> int:
    group: int = _HEAD.unpack_from(row)[1]
    return group


def group_prefix(table: bytes, group: int) -> bytes:
    """The first bytes of all rows of a key group, after the prefix of its table."""
    return table + _TABLE.pack(group)


def table_prefix(number: int) -> bytes:
    """The first bytes of all rows of a table."""
    return _TABLE.pack(number)


def moved_to_table(rows: Sequence[bytes], prefix: bytes) -> Sequence[bytes]:
    """The sorted rows of one table, as rows of the table with this prefix."""
    if not rows or (rows[0].startswith(prefix) and rows[-1].startswith(prefix)):
        return rows
    return [prefix + row[_TABLE.size :] for row in rows]


class RowFormat:
    """The row format of one table. Table keys are (key, namespace) if the table is namespaced."""

    def __init__(self, number: int, description: TableDescription, max_parallelism: int) -> None:
        self.namespaced = description.namespaced
        self._ttl = description.ttl
        # The position of the tag of an element.
        self._tag = 1 + (_STAMP.size if description.ttl else 0)
        self._is_list = description.kind is TableKind.LIST
        self._max_parallelism = max_parallelism
        self._int_groups = int_key_groups(max_parallelism)
        self.renumber(number)

    def renumber(self, number: int) -> None:
        self.table_prefix = table_prefix(number)
        self._heads = [_HEAD.pack(number, group) for group in range(self._max_parallelism)]

    def prefix(self, key: Any) -> bytes:
        """The first bytes of all rows of a table key."""
        if self.namespaced:
            key, namespace = key
            return self._heads[self._group(key)] + encode_key(key) + encode_entry(namespace)
        return self._heads[self._group(key)] + encode_key(key)

    def prefixes(self, keys: list[Any]) -> list[bytes]:
        """The ``prefix`` of each key of a batch."""
        if self.namespaced:
            return list(map(self.prefix, keys))
        heads, groups = self._heads, key_groups_of(keys, self._max_parallelism)
        encoded = encode_keys(keys)
        return [heads[group] + key for group, key in zip(groups, encoded, strict=True)]

    def _group(self, key: Any) -> int:
        if type(key) is int:
            return self._int_groups[fold_int(key)]
        return key_group_of(key, self._max_parallelism)

    def with_entry(self, prefix: bytes, entry: Any) -> bytes:
        return prefix + encode_entry(entry)

    def split(self, row: bytes) -> tuple[Any, int]:
        """The decoded table key of a row, and the position after it."""
        key, end = decode_key(row, HEAD_LENGTH)
        if not self.namespaced:
            return key, end
        namespace, end = decode_key(row, end)
        return (key, namespace), end

    def value(self, names: tuple[Any, ...], element: Any) -> bytes:
        """The value of a row. ``names`` are the table key and, in a map, the entry."""
        if self._ttl:
            bare, stamp = element
            content = _STAMP.pack(stamp) + encode_element(bare)
        else:
            content = encode_element(element)
        return self.framed(names, content)

    def values(self, keys: list[Any], elements: list[Any]) -> list[bytes]:
        """The ``value`` of each key of a batch, in a table with one value per key."""
        if self._ttl or self.namespaced or not all_come_back(keys):
            pairs = zip(keys, elements, strict=True)
            return [self.value((key,), element) for key, element in pairs]
        return [_AS_ENCODED + content for content in encode_each(elements)]

    def framed(self, names: tuple[Any, ...], content: bytes) -> bytes:
        if comes_back(names):
            return _AS_ENCODED + content
        # The row key decodes to an equal object of a different type, for example for 1.0 or a named
        # tuple. The value of the row therefore has the original.
        original = pickling.dumps(names)
        return _WITH_ORIGINAL + _LENGTH.pack(len(original)) + original + content

    def element(self, value: bytes) -> Any:
        """The inverse of ``value``."""
        start = self._content_start(value)
        if self._ttl:
            return decode_element(value, start + _STAMP.size), _STAMP.unpack_from(value, start)[0]
        return decode_element(value, start)

    def elements(self, values: list[bytes]) -> list[Any]:
        """The ``element`` of each value of a batch."""
        if self._ttl:
            return list(map(self.element, values))
        # Most values are pickles of rows whose keys decode as they were.
        loads, element, pickled = pickling.loads, self.element, _AS_ENCODED + PICKLED
        start = len(pickled)
        return [
            loads(value[start:]) if value.startswith(pickled) else element(value)
            for value in values
        ]

    def content(self, value: bytes) -> bytes:
        """The inverse of ``framed``."""
        return value[self._content_start(value) :]

    def pickles(self, value: bytes) -> list[bytes]:
        """The pickles in the value of a row: the original names, and the element or list."""
        start = self._content_start(value)
        found = [] if value[:1] == _AS_ENCODED else [value[1 + _LENGTH.size : start]]
        if self._ttl and not self._is_list:
            start += _STAMP.size
        return found + pickles_in(value[start:], pair=False)

    def _content_start(self, value: bytes) -> int:
        if value[0] == 0:
            return 1
        (length,) = _LENGTH.unpack_from(value, 1)
        return 1 + _LENGTH.size + int(length)

    def key(self, row: bytes, value: bytes) -> Any:
        """The table key, as the program gave it."""
        return _original(value)[0] if value[:1] == _WITH_ORIGINAL else self.split(row)[0]

    def are_plain(self, rows: Sequence[bytes], values: Sequence[bytes]) -> bool:
        """True if the rows of a table of values have only text, numbers, times and similar.

        Keys and values have such types, and decode without pickle. The table has no namespaces.
        """
        tag = self._tag
        return (
            {row[HEAD_LENGTH] for row in rows} <= SCALAR_TAGS
            and {value[0] for value in values} == {0}
            and {value[tag] for value in values} == {PLAIN_TAG}
            and {value[tag + 1] for value in values} <= SCALAR_TAGS
        )

    def columns(self, found: Iterable[tuple[bytes, bytes]]) -> tuple[list[Any], list[Any]]:
        """The table keys and the elements of rows, in a table of values."""
        keys: list[Any] = []
        elements: list[Any] = []
        is_bare = not (self.namespaced or self._ttl)
        for row, value in found:
            if is_bare and value[0] == 0:
                # This is the frequent case, without the calls of the general one.
                keys.append(decode_last(row, HEAD_LENGTH))
                plain = value[1] == PLAIN_TAG
                elements.append(decode_last(value, 2) if plain else decode_element(value, 1))
            else:
                keys.append(self.key(row, value))
                elements.append(self.element(value))
        return keys, elements

    def entry(self, row: bytes, value: bytes) -> Any:
        """The entry of a map, as the program gave it."""
        if value[:1] == _WITH_ORIGINAL:
            return _original(value)[1]
        return decode_key(row, self.split(row)[1])[0]


def _original(value: bytes) -> tuple[Any, ...]:
    (length,) = _LENGTH.unpack_from(value, 1)
    start = 1 + _LENGTH.size
    names: tuple[Any, ...] = pickling.loads(value[start : start + length])
    return names
