"""Records as names of entries in a map: hashable, and safe from those who change records in place."""

from __future__ import annotations

from typing import Any

from firesteel import pickling
from firesteel.common.types import Row, RowKind, new_row
from firesteel.state.key_encoding import encode_entry
from firesteel.task.copies import copy_of

_INSERT = RowKind.INSERT

# Nobody's record begins with one of these.
_LIST, _DICT, _SET, _TUPLE, _ROW, _OBJECT = (
    f"\0{name}" for name in ("list", "dict", "set", "tuple", "row", "object")
)


class Frozen(tuple[Any, ...]):
    """A record that cannot be hashed, as a tuple that can: what it is, and what is in it."""

    __slots__ = ()


def entry_of(record: Any) -> Any:
    """Equal records have equal entries; the kind of a row does not count."""
    if type(record) is Row:
        record = new_row(list(record), record._fields, _INSERT)
    try:
        hash(record)
    except TypeError:
        return _freeze(record)
    return record


def record_of(entry: Any) -> Any:
    """The record again, to be given away."""
    return _thaw(entry) if type(entry) is Frozen else copy_of(entry)


def _freeze(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return Frozen(_parts(value))
    return value


def _parts(value: Any) -> tuple[Any, ...]:
    kind = type(value)
    if kind is list:
        return _LIST, *map(_freeze, value)
    if kind is tuple:
        return _TUPLE, *map(_freeze, value)
    if kind is dict:
        # Dictionaries are equal whatever their order.
        pairs = sorted(value.items(), key=lambda pair: encode_entry(pair[0]))
        return _DICT, *((name, _freeze(content)) for name, content in pairs)
    if kind is set:
        return _SET, *sorted(value, key=encode_entry)
    if kind is Row:
        names = None if value._fields is None else tuple(value._fields)
        return _ROW, names, *map(_freeze, value)
    return _OBJECT, pickling.dumps(value)


def _thaw(entry: Any) -> Any:
    if type(entry) is not Frozen:
        return copy_of(entry)
    kind, *parts = entry
    if kind == _LIST:
        return list(map(_thaw, parts))
    if kind == _TUPLE:
        return tuple(map(_thaw, parts))
    if kind == _DICT:
        return {copy_of(name): _thaw(content) for name, content in parts}
    if kind == _SET:
        return set(map(copy_of, parts))
    if kind == _ROW:
        names, *fields = parts
        return new_row(list(map(_thaw, fields)), None if names is None else list(names))
    return pickling.loads(parts[0])
