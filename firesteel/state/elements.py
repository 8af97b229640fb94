"""Single values as bytes. Plain data is encoded without pickle, and everything else with it."""

from __future__ import annotations

import struct
from typing import Any

from firesteel.state.key_encoding import decode_key, encode_key, is_plain
from firesteel.usercode import pickling

_PLAIN = b"="
PICKLED = b"p"
"""The first byte of an element that is a pickle."""
PLAIN_TAG = _PLAIN[0]
"""The first byte of an element that is plain data."""
_LENGTH = struct.Struct(">I")


def encode_element(value: Any) -> bytes:
    """Encode any value. The first byte tells ``decode_element`` the encoding."""
    if is_plain(value):
        return _PLAIN + encode_key(value)
    return PICKLED + pickling.dumps(value)


def encode_each(values: list[Any]) -> list[bytes]:
    """Encode many values, each as ``encode_element`` does."""
    if {tuple, list, dict}.isdisjoint(map(type, values)):
        return list(map(encode_element, values))
    dumps = pickling.dumps
    return [
        _PLAIN + encode_key(value) if is_plain(value) else PICKLED + dumps(value)
        for value in values
    ]


def decode_element(payload: bytes, start: int = 0) -> Any:
    """The value that begins at ``start`` and extends to the end."""
    if payload[start] == PLAIN_TAG:
        return decode_key(payload, start + 1)[0]
    return pickling.loads(memoryview(payload)[start + 1 :])


def encode_elements(values: list[Any]) -> bytes:
    """Encode a list of values."""
    if all(map(is_plain, values)):
        return _PLAIN + b"".join(map(encode_key, values))
    return PICKLED + pickling.dumps(values)


def decode_elements(payload: bytes) -> list[Any]:
    if payload[:1] != _PLAIN:
        values: list[Any] = pickling.loads(payload[1:])
        return values
    values, position = [], 1
    while position < len(payload):
        value, position = decode_key(payload, position)
        values.append(value)
    return values


def encode_pair(key: Any, value: Any) -> bytes:
    """Encode two values."""
    first = encode_element(key)
    return _LENGTH.pack(len(first)) + first + encode_element(value)


def decode_pair(payload: bytes) -> tuple[Any, Any]:
    (length,) = _LENGTH.unpack_from(payload)
    middle = _LENGTH.size + length
    return decode_element(payload[_LENGTH.size : middle]), decode_element(payload, middle)


def pickles_in(payload: bytes, *, pair: bool) -> list[bytes]:
    """The pickles of an element or pair, without loading them."""
    parts = [payload]
    if pair:
        (length,) = _LENGTH.unpack_from(payload)
        middle = _LENGTH.size + length
        parts = [payload[_LENGTH.size : middle], payload[middle:]]
    return [part[1:] for part in parts if part[:1] == PICKLED]
