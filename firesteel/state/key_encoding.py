"""Keys as bytes. Equal keys have equal bytes, and no encoded key is a prefix of a different one.

RocksDB's keys have this encoding, so the entries of a key are adjacent. Single plain values have it
too. The encoding keeps the order of numbers of one kind, text, bytes and times, and of tuples of
these. Decoding plain keys runs no user code.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import struct
import uuid
from collections.abc import Callable
from typing import Any

from firesteel.common.types import Row, RowKind, field_names_of, new_row
from firesteel.errors import UnstableKeyError
from firesteel.state.stable_hash import STABLE_KEYS, decimal_text
from firesteel.state.value_keys import ArrayKey, DictKey, ListKey
from firesteel.usercode import pickling

# The first byte is a tag for the type. The tag of an int contains its length.
_NONE = 0x01
_BYTES = 0x02
_STR = 0x03
_TUPLE = 0x04
_ROW = 0x05
_FROZENSET = 0x06
_LIST = 0x07
_DICT = 0x08
_ARRAY = 0x09
_INT_ZERO = 0x20
_BIG_INT_LENGTH = 16
_FLOAT = 0x40
_DECIMAL = 0x41
_DATE = 0x50
_DATETIME = 0x51
_UTC_DATETIME = 0x52
_TIME = 0x53
_UTC_TIME = 0x54
_TIMEDELTA = 0x55
_UUID = 0x60
_OBJECT = 0x70
SCALAR_TAGS = frozenset(range(256)) - {
    *(_TUPLE, _ROW, _FROZENSET, _LIST, _DICT, _ARRAY),
    _OBJECT,
}
"""The first bytes of encoded values that contain no other values and no pickles."""
_END = b"\x00"
_SMALL_INT = 1 << 64
_SMALL_INT_TAGS = [bytes([_INT_ZERO + length]) for length in range(9)]

_DOUBLE = struct.Struct(">Q")
_PACK_DOUBLE = struct.Struct(">d")
_SIGN = 1 << 63
_DAY = 86_400_000_000


def encode_key(key: Any) -> bytes:
    """Encode a key. Raises UnstableKeyError for an object that cannot be a key.

    >>> encode_key(1) == encode_key(1.0) == encode_key(True)
    True
    >>> encode_key(-5) < encode_key(3) < encode_key(300)
    True
    """
    if type(key) is int and 0 < key < _SMALL_INT:
        # A fast path for the most frequent type of keys and values.
        length = (key.bit_length() + 7) >> 3
        return _SMALL_INT_TAGS[length] + key.to_bytes(length, "big")
    out = bytearray()
    _encode(key, out)
    return bytes(out)


def encode_keys(keys: list[Any]) -> list[bytes]:
    """Encode many keys. For integers it is faster than ``encode_key`` for each of them."""
    if set(map(type, keys)) != {int} or min(keys) <= 0 or max(keys) >= _SMALL_INT:
        return list(map(encode_key, keys))
    tags = _SMALL_INT_TAGS
    return [
        tags[length := (key.bit_length() + 7) >> 3] + key.to_bytes(length, "big") for key in keys
    ]


def encode_entry(entry: Any) -> bytes:
    """Encode a map entry or namespace. An object that cannot be a key is pickled.

    Two such objects are the same entry if their pickles are equal.
    """
    out = _EntryBuffer()
    _encode(entry, out)
    return bytes(out)


def decode_key(encoded: bytes | memoryview, start: int = 0) -> tuple[Any, int]:
    """The key that begins at ``start``, and the position after it.

    It equals the encoded key, but may have a different type: 1.0 is decoded as 1.
    """
    tag = encoded[start]
    if _INT_ZERO - _BIG_INT_LENGTH - 1 <= tag <= _INT_ZERO + _BIG_INT_LENGTH + 1:
        return _decode_int(encoded, start)
    return _DECODERS[tag](encoded, start + 1)


def decode_last(encoded: bytes, start: int) -> Any:
    """The key that begins at ``start`` and ends with the bytes. Text and numbers decode fast."""
    tag = encoded[start]
    if tag == _STR:
        content = encoded[start + 1 : -1]
        if 0 not in content:
            return content.decode("utf-8", "surrogatepass")
    elif _INT_ZERO < tag <= _INT_ZERO + 8:
        return int.from_bytes(encoded[start + 1 :], "big")
    return decode_key(encoded, start)[0]


def is_plain(value: Any) -> bool:
    """True if ``encode_key`` accepts the value, and decoding returns it with the same type."""
    kind = type(value)
    return kind in _SAME or (kind is float and not value.is_integer() and value == value)  # noqa: PLR0124 - NaN


def comes_back(entry: Any) -> bool:
    """True if decoding returns the same entry, and not an equal one of a different type."""
    kind = type(entry)
    if kind in _SAME:
        return True
    if kind is tuple or kind is Row or kind is ListKey:
        return all(map(comes_back, entry))
    if kind is float:
        return not entry.is_integer()
    if kind is dt.datetime or kind is dt.time:
        return entry.tzinfo is None and not entry.fold
    # Objects of other types are pickled, and come back unchanged.
    return not isinstance(entry, _KINDS)


def all_come_back(keys: list[Any]) -> bool:
    """True if each key is of a type that decoding always returns."""
    return _SAME.issuperset(map(type, keys))


class _EntryBuffer(bytearray):
    """The buffer of ``encode_entry``, which accepts any object."""


def _encode(key: Any, out: bytearray) -> None:
    encoder = _ENCODERS.get(type(key))
    if encoder is not None:
        encoder(key, out)
        return
    for base, encoder in _ENCODERS.items():
        # Subclasses: for example, a named tuple is a tuple, and an IntEnum is an int.
        if isinstance(key, base):
            encoder(key, out)
            return
    if isinstance(key, enum.Enum) or isinstance(out, _EntryBuffer):
        _put_object(key, out)
        return
    raise UnstableKeyError(
        key, f"the type {type(key).__qualname__} has no stable encoding; use {STABLE_KEYS}"
    )


def _put_int(value: int, out: bytearray) -> None:
    if value == 0:
        out.append(_INT_ZERO)
        return
    magnitude = abs(value)
    length = (magnitude.bit_length() + 7) // 8
    if length > _BIG_INT_LENGTH:
        _put_big_int(value, length, out)
    elif value > 0:
        out.append(_INT_ZERO + length)
        out += magnitude.to_bytes(length, "big")
    else:
        out.append(_INT_ZERO - length)
        out += (value + (1 << (8 * length)) - 1).to_bytes(length, "big")


def _put_big_int(value: int, length: int, out: bytearray) -> None:
    size = length.to_bytes(4, "big")
    if value > 0:
        out.append(_INT_ZERO + _BIG_INT_LENGTH + 1)
        out += size + value.to_bytes(length, "big")
    else:
        out.append(_INT_ZERO - _BIG_INT_LENGTH - 1)
        inverted = bytes(255 - byte for byte in size)
        out += inverted + (value + (1 << (8 * length)) - 1).to_bytes(length, "big")


def _decode_int(encoded: bytes | memoryview, start: int) -> tuple[int, int]:
    length = encoded[start] - _INT_ZERO
    start += 1
    if length == 0:
        return 0, start
    negative, length = length < 0, abs(length)
    if length > _BIG_INT_LENGTH:
        size = bytes(encoded[start : start + 4])
        if negative:
            size = bytes(255 - byte for byte in size)
        length = int.from_bytes(size, "big")
        start += 4
    end = start + length
    value = int.from_bytes(encoded[start:end], "big")
    return (value - (1 << (8 * length)) + 1 if negative else value), end


def _put_float(value: float, out: bytearray) -> None:
    if math.isnan(value):
        _put_nan(value, out)
        return
    if value.is_integer():
        _put_int(int(value), out)
        return
    (bits,) = _DOUBLE.unpack(_PACK_DOUBLE.pack(value))
    out.append(_FLOAT)
    # The bits of negative numbers are inverted, to keep their order.
    out += _DOUBLE.pack(bits ^ (2 * _SIGN - 1) if bits & _SIGN else bits | _SIGN)


def _put_nan(value: Any, out: bytearray) -> None:
    if not isinstance(out, _EntryBuffer):
        raise UnstableKeyError(value, "NaN does not equal itself")
    _put_object(value, out)


def _get_float(encoded: bytes | memoryview, start: int) -> tuple[float, int]:
    (bits,) = _DOUBLE.unpack_from(encoded, start)
    bits = bits ^ _SIGN if bits & _SIGN else bits ^ (2 * _SIGN - 1)
    value: float = _PACK_DOUBLE.unpack(_DOUBLE.pack(bits))[0]
    return value, start + 8


def _put_decimal(value: decimal.Decimal, out: bytearray) -> None:
    if value.is_nan():
        _put_nan(value, out)
    elif not value.is_finite() or value == decimal.Decimal(float(value)):
        _put_float(float(value), out)
    elif value == value.to_integral_value():
        _put_int(int(value), out)
    else:
        out.append(_DECIMAL)
        _put_terminated(decimal_text(value).encode(), out)


def _get_decimal(encoded: bytes | memoryview, start: int) -> tuple[decimal.Decimal, int]:
    text, end = _get_terminated(encoded, start)
    return decimal.Decimal(text.decode()), end


def _put_terminated(content: bytes, out: bytearray) -> None:
    """Mark zero bytes in the content, so that a zero byte without a mark is the end."""
    out += content.replace(b"\x00", b"\x00\xff")
    out += _END


def _get_terminated(encoded: bytes | memoryview, start: int) -> tuple[bytes, int]:
    content = bytes(encoded)
    end = content.index(0, start)
    while end + 1 < len(content) and content[end + 1] == 0xFF:
        end = content.index(0, end + 2)
    return content[start:end].replace(b"\x00\xff", b"\x00"), end + 1


def _put_bytes(value: bytes, out: bytearray) -> None:
    out.append(_BYTES)
    _put_terminated(value, out)


def _put_str(value: str, out: bytearray) -> None:
    out.append(_STR)
    _put_terminated(value.encode("utf-8", "surrogatepass"), out)


def _get_str(encoded: bytes | memoryview, start: int) -> tuple[str, int]:
    content, end = _get_terminated(encoded, start)
    return content.decode("utf-8", "surrogatepass"), end


def _put_all(values: Any, out: bytearray) -> None:
    for value in values:
        _encode(value, out)
    out += _END


def _get_all(encoded: bytes | memoryview, start: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    while encoded[start] != 0:
        value, start = decode_key(encoded, start)
        values.append(value)
    return values, start + 1


def _put_tuple(value: tuple[Any, ...], out: bytearray) -> None:
    out.append(_TUPLE)
    _put_all(value, out)


def _get_tuple(encoded: bytes | memoryview, start: int) -> tuple[tuple[Any, ...], int]:
    values, end = _get_all(encoded, start)
    return tuple(values), end


def _put_row(row: Row, out: bytearray) -> None:
    """Encode a row. Rows with the same names in a different order are different keys."""
    out.append(_ROW)
    _encode(row.get_row_kind().value, out)
    names = field_names_of(row)
    _encode(None if names is None else tuple(names), out)
    _put_all(row, out)


def _get_row(encoded: bytes | memoryview, start: int) -> tuple[Row, int]:
    kind, start = decode_key(encoded, start)
    names, start = decode_key(encoded, start)
    values, end = _get_all(encoded, start)
    return new_row(values, None if names is None else list(names), RowKind(kind)), end


def _put_frozenset(value: frozenset[Any], out: bytearray) -> None:
    out.append(_FROZENSET)
    encode = encode_entry if isinstance(out, _EntryBuffer) else encode_key
    for element in sorted(map(encode, value)):
        out += element
    out += _END


def _get_frozenset(encoded: bytes | memoryview, start: int) -> tuple[frozenset[Any], int]:
    values, end = _get_all(encoded, start)
    return frozenset(values), end


def _put_list(value: ListKey, out: bytearray) -> None:
    out.append(_LIST)
    _put_all(value, out)


def _get_list(encoded: bytes | memoryview, start: int) -> tuple[ListKey, int]:
    values, end = _get_all(encoded, start)
    return ListKey(values), end


def _put_dict(value: DictKey, out: bytearray) -> None:
    out.append(_DICT)
    encode = encode_entry if isinstance(out, _EntryBuffer) else encode_key
    for pair in sorted((encode(name), encode(content)) for name, content in value.items()):
        out += b"".join(pair)
    out += _END


def _get_dict(encoded: bytes | memoryview, start: int) -> tuple[DictKey, int]:
    values, end = _get_all(encoded, start)
    return DictKey(zip(values[::2], values[1::2], strict=True)), end


def _put_array(value: ArrayKey, out: bytearray) -> None:
    """Encode the numbers. Arrays of different types are equal if their numbers are.

    The type of the array is not encoded, so the array itself is stored next to it.
    """
    out.append(_ARRAY)
    _put_all(value, out)


def _micros(value: dt.timedelta) -> int:
    return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds


def _since_midnight(value: dt.time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - only for differences between naive times
_UTC_EPOCH = _EPOCH.replace(tzinfo=dt.UTC)


def _put_datetime(value: dt.datetime, out: bytearray) -> None:
    if value.tzinfo is None:
        out.append(_DATETIME)
        _put_int(_micros(value.replace(fold=0) - _EPOCH), out)
    else:
        out.append(_UTC_DATETIME)
        _put_int(_micros(value.astimezone(dt.UTC) - _UTC_EPOCH), out)


def _get_datetime(encoded: bytes | memoryview, start: int) -> tuple[dt.datetime, int]:
    micros, end = _decode_int(encoded, start)
    return _EPOCH + dt.timedelta(microseconds=micros), end


def _get_utc_datetime(encoded: bytes | memoryview, start: int) -> tuple[dt.datetime, int]:
    micros, end = _decode_int(encoded, start)
    return _UTC_EPOCH + dt.timedelta(microseconds=micros), end


def _put_date(value: dt.date, out: bytearray) -> None:
    out.append(_DATE)
    _put_int(value.toordinal(), out)


def _get_date(encoded: bytes | memoryview, start: int) -> tuple[dt.date, int]:
    ordinal, end = _decode_int(encoded, start)
    return dt.date.fromordinal(ordinal), end


def _put_time(value: dt.time, out: bytearray) -> None:
    offset = value.utcoffset()
    out.append(_TIME if offset is None else _UTC_TIME)
    _put_int(_since_midnight(value) - (0 if offset is None else _micros(offset)), out)


def _get_time(encoded: bytes | memoryview, start: int) -> tuple[dt.time, int]:
    micros, end = _decode_int(encoded, start)
    return (_EPOCH + dt.timedelta(microseconds=micros)).time(), end


def _get_utc_time(encoded: bytes | memoryview, start: int) -> tuple[dt.time, int]:
    micros, end = _decode_int(encoded, start)
    # After the offset is subtracted, the time may be before or after the day. A time in UTC cannot
    # represent that, but a time with an offset can.
    days = micros // _DAY
    offset = -days * dt.timedelta(hours=23, minutes=59)
    local = _EPOCH + dt.timedelta(microseconds=micros) + offset
    return local.time().replace(tzinfo=dt.timezone(offset)), end


def _put_timedelta(value: dt.timedelta, out: bytearray) -> None:
    out.append(_TIMEDELTA)
    _put_int(_micros(value), out)


def _get_timedelta(encoded: bytes | memoryview, start: int) -> tuple[dt.timedelta, int]:
    micros, end = _decode_int(encoded, start)
    return dt.timedelta(microseconds=micros), end


def _put_uuid(value: uuid.UUID, out: bytearray) -> None:
    out.append(_UUID)
    out += value.bytes


def _get_uuid(encoded: bytes | memoryview, start: int) -> tuple[uuid.UUID, int]:
    return uuid.UUID(bytes=bytes(encoded[start : start + 16])), start + 16


def _put_object(value: Any, out: bytearray) -> None:
    out.append(_OBJECT)
    _put_terminated(pickling.dumps(value), out)


def _get_object(encoded: bytes | memoryview, start: int) -> tuple[Any, int]:
    payload, end = _get_terminated(encoded, start)
    return pickling.loads(payload), end


_ENCODERS: dict[type, Callable[[Any, bytearray], None]] = {
    int: _put_int,
    str: _put_str,
    bytes: _put_bytes,
    float: _put_float,
    bool: _put_int,
    tuple: _put_tuple,
    Row: _put_row,
    frozenset: _put_frozenset,
    type(None): lambda _, out: out.append(_NONE),
    # datetime comes before date, because it is a subclass of date.
    dt.datetime: _put_datetime,
    dt.date: _put_date,
    dt.time: _put_time,
    dt.timedelta: _put_timedelta,
    decimal.Decimal: _put_decimal,
    uuid.UUID: _put_uuid,
    ListKey: _put_list,
    DictKey: _put_dict,
    ArrayKey: _put_array,
}
_DECODERS: dict[int, Callable[[bytes | memoryview, int], tuple[Any, int]]] = {
    _NONE: lambda _, start: (None, start),
    _BYTES: _get_terminated,
    _STR: _get_str,
    _TUPLE: _get_tuple,
    _ROW: _get_row,
    _FROZENSET: _get_frozenset,
    _LIST: _get_list,
    _DICT: _get_dict,
    _ARRAY: _get_list,
    _FLOAT: _get_float,
    _DECIMAL: _get_decimal,
    _DATE: _get_date,
    _DATETIME: _get_datetime,
    _UTC_DATETIME: _get_utc_datetime,
    _TIME: _get_time,
    _UTC_TIME: _get_utc_time,
    _TIMEDELTA: _get_timedelta,
    _UUID: _get_uuid,
    _OBJECT: _get_object,
}
_KINDS = tuple(_ENCODERS)
# Types that are always decoded with the same type.
_SAME = frozenset({int, str, bytes, type(None), dt.date, dt.timedelta, uuid.UUID})
