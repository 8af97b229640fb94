"""Copies of records, accumulators and results that a user's function may change later.

A copy shares nothing mutable with its original, not even inside a tuple.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from firesteel.common.types import Row, copy_row
from firesteel.usercode import pickling

# Values that hold no other values. Most records, accumulators and fields are of these types.
_SCALARS = frozenset(
    {
        bool,
        bytes,
        dt.date,
        dt.datetime,
        dt.time,
        dt.timedelta,
        decimal.Decimal,
        float,
        int,
        str,
        type(None),
        uuid.UUID,
    }
)
_IMMUTABLE_CONTAINERS = (tuple, frozenset)


def is_immutable(value: Any) -> bool:
    """True if neither the value nor anything in it can be changed in place."""
    if type(value) in _SCALARS:
        return True
    if isinstance(value, _IMMUTABLE_CONTAINERS):
        return _are_immutable(value)
    return isinstance(value, enum.Enum)


def _are_immutable(values: Any) -> bool:
    return _SCALARS.issuperset(map(type, values)) or all(map(is_immutable, values))


def copy_of(value: Any) -> Any:
    """Return a copy that shares nothing mutable, as PyFlink's serialization makes it."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, tuple):
        # As is_immutable, but faster for the few scalars that a tuple mostly holds.
        for field in value:
            if type(field) not in _SCALARS and not is_immutable(field):
                break
        else:
            return value
    elif kind is list and _are_immutable(value):
        return value[:]
    elif kind is Row and _are_immutable(value):
        return copy_row(value)
    elif is_immutable(value):
        return value
    return pickling.loads(pickling.dumps(value))


def are_scalars(values: Iterable[Any]) -> bool:
    """True if all values are of types that hold no other values."""
    return _SCALARS.issuperset(map(type, values))


def copies_of(values: list[Any]) -> list[Any]:
    return values[:] if are_scalars(values) else list(map(copy_of, values))


def copying_get(get: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wrap a table's ``base.get`` so that its values may be changed in place."""

    def copied(key: Any, default: Any) -> Any:
        value = get(key, default)
        return value if value is default else copy_of(value)

    return copied


def copying(append: Callable[[Any], None]) -> Callable[[Any], None]:
    return lambda value: append(copy_of(value))


def differs(result: Any, last: Any) -> bool:
    """Compare a result with the previous one. Values that cannot be compared, as arrays, differ."""
    try:
        return bool(result != last)
    except (TypeError, ValueError):
        return True
