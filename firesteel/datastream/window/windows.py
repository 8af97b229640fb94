"""Windows: the finite pieces that a stream is cut into."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from firesteel.common.constants import MAX_LONG_VALUE
from firesteel.common.serializer import TypeSerializer
from firesteel.common.time import Duration, Time
from firesteel.errors import InvalidProgramError, shorten

if TYPE_CHECKING:
    from firesteel.datastream.window.assigners import MergingWindowAssigner


def to_millis(length: Time | Duration, what: str) -> int:
    if isinstance(length, Time):
        return length.to_milliseconds()
    if isinstance(length, Duration):
        return length.to_millis()
    raise InvalidProgramError(
        f"{what} must be a Time or a Duration, for example Time.seconds(5), but it is "
        f"{shorten(length)}."
    )


def check_count(number: object, least: int, what: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InvalidProgramError(
            f"{what} must be a number of records, at least {least}, but it is {shorten(number)}."
        )


class Window(ABC):
    """A piece of a stream. One of your own must be hashable and must survive pickling."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last point in time that belongs to the window; its results bear this timestamp."""


class TimeWindow(Window, tuple[int, int]):
    """The time from ``start`` (inclusive) to ``end`` (exclusive), in milliseconds.

    It is a tuple, because windows are keys of state: nothing is hashed and compared as fast.

    >>> window = TimeWindow(0, 5000)
    >>> window.max_timestamp(), window.intersects(TimeWindow(5000, 6000))
    (4999, True)
    """

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> Self:
        return tuple.__new__(cls, (start, end))

    def __getnewargs__(self) -> tuple[int, int]:
        return self[0], self[1]

    @property
    def start(self) -> int:
        return self[0]

    @property
    def end(self) -> int:
        return self[1]

    def max_timestamp(self) -> int:
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch."""
        return self[0] <= other[1] and self[1] >= other[0]

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window of that size which ``timestamp`` falls into."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(
        windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Report every group of windows that overlap or touch, and the window that covers it."""
        covers: list[TimeWindow] = []
        groups: list[set[TimeWindow]] = []
        for window in sorted(windows):
            if covers and covers[-1].intersects(window):
                covers[-1] = covers[-1].cover(window)
                groups[-1].add(window)
            else:
                covers.append(window)
                groups.append({window})
        for cover, group in zip(covers, groups, strict=True):
            if len(group) > 1:
                callback.merge(group, cover)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self[0]}, end={self[1]})"


class CountWindow(Window, tuple[int]):
    """Window number ``id`` of a key, when records are counted."""

    __slots__ = ()

    def __new__(cls, id: int) -> Self:
        return tuple.__new__(cls, (id,))

    def __getnewargs__(self) -> tuple[int]:
        return (self[0],)

    @property
    def id(self) -> int:
        return self[0]

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __repr__(self) -> str:
        return f"CountWindow(id={self[0]})"


class GlobalWindow(Window, tuple[()]):
    """The one window that everything falls into."""

    __slots__ = ()

    def __new__(cls) -> Self:
        return tuple.__new__(cls)

    def __getnewargs__(self) -> tuple[()]:
        return ()

    @staticmethod
    def get() -> GlobalWindow:
        return GlobalWindow()

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __repr__(self) -> str:
        return "GlobalWindow"


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


class TaggedUnion(NamedTuple):
    """``side`` is 0 for the first stream and 1 for the second. Not in PyFlink.

    >>> TaggedUnion.one("order").is_one(), TaggedUnion.two("payment").get_two()
    (True, 'payment')
    """

    side: int
    value: Any

    @staticmethod
    def one(value: Any) -> TaggedUnion:
        return TaggedUnion(0, value)

    @staticmethod
    def two(value: Any) -> TaggedUnion:
        return TaggedUnion(1, value)

    def is_one(self) -> bool:
        return self.side == 0

    def is_two(self) -> bool:
        return self.side == 1

    def get_one(self) -> Any:
        """The record of the first stream, or None."""
        return self.value if self.side == 0 else None

    def get_two(self) -> Any:
        """The record of the second stream, or None."""
        return self.value if self.side == 1 else None
