"""A hash that is the same in every process, on every machine and in every run.

Python's ``hash`` of a string is not. Equal keys (``1 == 1.0 == True``) must hash alike here too,
because state is kept in dictionaries.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import uuid
import zlib
from collections.abc import Callable
from typing import Any

from firesteel.common.types import Row
from firesteel.errors import UnstableKeyError

_MASK = 0xFFFF_FFFF


def mix(value: int) -> int:
    """MurmurHash3's 32-bit finalizer: every input bit changes about half of the output bits."""
    value &= _MASK
    value = ((value ^ (value >> 16)) * 0x85EB_CA6B) & _MASK
    value = ((value ^ (value >> 13)) * 0xC2B2_AE35) & _MASK
    return value ^ (value >> 16)


# A prime: keys with a common factor, such as multiples of 1,024, spread nevertheless.
FOLDED_INTS = 65_521


def fold_int(value: int) -> int:
    """The number below ``FOLDED_INTS`` that stands for an integer key; one operation in a loop.

    A small key stands for itself, and a small negative one counts from the end, as an index does.
    """
    return value % FOLDED_INTS


def _of_int(value: int) -> int:
    return mix(fold_int(value))


def _of_float(value: float) -> int:
    if value.is_integer():
        return _of_int(int(value))
    if math.isnan(value):
        raise UnstableKeyError(value, "NaN does not equal itself")
    # Python's hash of a float is the same everywhere; that of 0.5 or 0.25 has no low bits set.
    bits = hash(value)
    return mix(bits ^ (bits >> 32))


def _of_bytes(value: bytes | bytearray) -> int:
    return mix(zlib.crc32(value))


def _of_str(value: str) -> int:
    return mix(zlib.crc32(value.encode("utf-8", "surrogatepass")))


def _of_sequence(values: Any) -> int:
    result = 0x9E37_79B9
    for value in values:
        result = mix(result * 31 + stable_hash(value))
    return result


def _of_row(row: Row) -> int:
    return _of_sequence(row)


def _of_frozenset(values: frozenset[Any]) -> int:
    # The order of a set differs between processes, so the combination must not depend on it.
    return mix(sum(map(stable_hash, values)))


def _of_datetime(value: dt.datetime) -> int:
    if value.tzinfo is None:
        return _of_str(value.isoformat())
    return _of_str(value.astimezone(dt.UTC).isoformat())


def _of_time(value: dt.time) -> int:
    offset = value.utcoffset()
    if offset is None:
        return _of_str(value.isoformat())
    since_midnight = dt.timedelta(
        hours=value.hour,
        minutes=value.minute,
        seconds=value.second,
        microseconds=value.microsecond,
    )
    return _of_timedelta(since_midnight - offset)


def _of_timedelta(value: dt.timedelta) -> int:
    return _of_sequence((value.days, value.seconds, value.microseconds))


def decimal_text(value: decimal.Decimal) -> str:
    """All digits but the zeros at the end: equal numbers are spelled alike.

    Not ``normalize()``: it rounds to the precision of the context.
    """
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    stripped = text.rstrip("0")
    return f"{'-' if sign else ''}{stripped}E{int(exponent) + len(text) - len(stripped)}"


def _of_decimal(value: decimal.Decimal) -> int:
    if not value.is_finite():
        return _of_float(math.nan if value.is_nan() else float(value))
    if value == value.to_integral_value():
        return _of_int(int(value))
    if value == decimal.Decimal(float(value)):
        return _of_float(float(value))
    return _of_str(decimal_text(value))


STABLE_KEYS = "int, str, bytes, float, bool, None, a date or time, a Row, or a tuple of these"

_HASHERS: dict[type, Callable[[Any], int]] = {
    int: _of_int,
    bool: _of_int,
    float: _of_float,
    str: _of_str,
    bytes: _of_bytes,
    tuple: _of_sequence,
    Row: _of_row,
    frozenset: _of_frozenset,
    type(None): lambda _: mix(0x5EED),
    # Before date: a datetime is a date.
    dt.datetime: _of_datetime,
    dt.date: lambda value: _of_str(value.isoformat()),
    dt.time: _of_time,
    dt.timedelta: _of_timedelta,
    decimal.Decimal: _of_decimal,
    uuid.UUID: lambda value: _of_bytes(value.bytes),
}


def stable_hash(key: Any) -> int:
    """32 bits that depend on the key's value only.

    >>> stable_hash("spark") == stable_hash("spa" + "rk")
    True
    >>> stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    True
    """
    hasher = _HASHERS.get(type(key))
    if hasher is not None:
        return hasher(key)
    for base, hasher in _HASHERS.items():
        # A named tuple is a tuple, an IntEnum an int.
        if isinstance(key, base):
            return hasher(key)
    if isinstance(key, enum.Enum):
        return _of_str(f"{type(key).__qualname__}.{key.name}")
    raise UnstableKeyError(
        key,
        f"the hash of a {type(key).__qualname__} is not the same in every process; "
        f"use {STABLE_KEYS}",
    )
