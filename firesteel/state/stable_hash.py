"""A hash that is the same in every process, on every machine and in every run.

Python's ``hash`` of a string differs between processes. As in Python, equal keys
(``1 == 1.0 == True``) have equal hashes, because backends keep state in dictionaries.
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

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.types import Row
from firesteel.errors import UnstableKeyError
from firesteel.state.value_keys import ArrayKey, DictKey, ListKey

_MASK = 0xFFFF_FFFF


def mix(value: int) -> int:
    """MurmurHash3's 32-bit finalizer: every input bit changes about half of the output bits."""
    value &= _MASK
    value = ((value ^ (value >> 16)) * 0x85EB_CA6B) & _MASK
    value = ((value ^ (value >> 13)) * 0xC2B2_AE35) & _MASK
    return value ^ (value >> 16)


def mix_all(values: pa.Array) -> pa.Array:
    """``mix`` for an array of 32-bit numbers of the type uint64."""
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        shifted = pc.bit_wise_xor(values, pc.shift_right(values, pa.scalar(shift, pa.uint64())))
        product = pc.multiply(shifted, pa.scalar(factor, pa.uint64()))
        values = pc.bit_wise_and(product, pa.scalar(_MASK, pa.uint64()))
    return pc.bit_wise_xor(values, pc.shift_right(values, pa.scalar(16, pa.uint64())))


# A prime, so that keys with a common factor, such as multiples of 1,024, are spread evenly.
FOLDED_INTS = 65_521


def fold_int(value: int) -> int:
    """Map an integer key to a number below ``FOLDED_INTS``, with a single operation.

    A small key is mapped to itself. A small negative key counts from the end, like an index.
    """
    return value % FOLDED_INTS


def _of_int(value: int) -> int:
    return mix(fold_int(value))


def _of_float(value: float) -> int:
    if value.is_integer():
        return _of_int(int(value))
    if math.isnan(value):
        raise UnstableKeyError(value, "NaN does not equal itself")
    # Python's hash of a float is the same everywhere. The low bits of hash(0.5) are all zero.
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
    # The sum does not depend on the order of the set, which differs between processes.
    return mix(sum(map(stable_hash, values)))


def _of_dict(value: DictKey) -> int:
    # A sum, because the order of the entries does not matter.
    return mix(sum(map(_of_sequence, value.items())))


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
    """The digits without trailing zeros, so that equal numbers have equal texts.

    ``normalize()`` would round to the precision of the context.
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


STABLE_KEYS = (
    "int, str, bytes, float, bool, None, a date or time, a Row, or a tuple, list or dict of these"
)

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
    # datetime comes before date, because it is a subclass of date.
    dt.datetime: _of_datetime,
    dt.date: lambda value: _of_str(value.isoformat()),
    dt.time: _of_time,
    dt.timedelta: _of_timedelta,
    decimal.Decimal: _of_decimal,
    uuid.UUID: lambda value: _of_bytes(value.bytes),
    ListKey: _of_sequence,
    DictKey: _of_dict,
    ArrayKey: _of_sequence,
}


def stable_hash(key: Any) -> int:
    """A 32-bit hash that depends only on the value of the key.

    >>> stable_hash("spark") == stable_hash("spa" + "rk")
    True
    >>> stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    True
    """
    hasher = _HASHERS.get(type(key))
    if hasher is not None:
        return hasher(key)
    for base, hasher in _HASHERS.items():
        # Subclasses: for example, a named tuple is a tuple, and an IntEnum is an int.
        if isinstance(key, base):
            return hasher(key)
    if isinstance(key, enum.Enum):
        return _of_str(f"{type(key).__qualname__}.{key.name}")
    raise UnstableKeyError(
        key,
        f"the hash of a {type(key).__qualname__} is not the same in every process; "
        f"use {STABLE_KEYS}",
    )
