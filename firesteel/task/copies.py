"""Copies of records that a user's function may go on changing."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Callable
from typing import Any

from firesteel import pickling
from firesteel.common.types import Row, new_row

_IMMUTABLE = frozenset(
    {
        bool,
        bytes,
        dt.date,
        dt.datetime,
        dt.time,
        dt.timedelta,
        decimal.Decimal,
        float,
        frozenset,
        int,
        str,
        tuple,
        type(None),
        uuid.UUID,
    }
)


def is_immutable(value: Any) -> bool:
    """Whether nobody can change the value in place. What a tuple holds is not looked at."""
    kind = type(value)
    return kind in _IMMUTABLE or isinstance(value, tuple | enum.Enum)


def copy_of(value: Any) -> Any:
    """What PyFlink's serialization makes of a record: a copy that shares nothing mutable."""
    if is_immutable(value):
        return value
    if type(value) is Row and _IMMUTABLE.issuperset(map(type, value)):
        return new_row(list(value), value._fields, value.get_row_kind())
    if type(value) is list and _IMMUTABLE.issuperset(map(type, value)):
        return value[:]
    return pickling.loads(pickling.dumps(value))


def copying_get(get: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A table's ``base.get`` whose values may be changed in place."""

    def copied(key: Any, default: Any) -> Any:
        value = get(key, default)
        return value if value is default else copy_of(value)

    return copied


def copying(append: Callable[[Any], None]) -> Callable[[Any], None]:
    return lambda value: append(copy_of(value))
