"""Windows as bytes, in PyFlink's format.

State needs no serializer: it pickles windows. These are for programs that write windows themselves.
"""

from __future__ import annotations

import struct
from io import BytesIO

from firesteel.common.serializer import TypeSerializer
from firesteel.datastream.window.windows import CountWindow, GlobalWindow, TimeWindow

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    def __init__(self) -> None:
        """It has no settings."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    def __init__(self) -> None:
        """It has no settings."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    def __init__(self) -> None:
        """It has no settings."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        stream.write(_LONG.pack(0))

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        stream.read(_LONG.size)
        return GlobalWindow()
