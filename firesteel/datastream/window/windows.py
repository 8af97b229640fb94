"""Windows: the finite parts of a stream that assigners put records into."""

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
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.datastream.window.assigners import MergingWindowAssigner


def to_millis(length: Time | Duration, what: str) -> int:
    """Return a length of time in milliseconds. ``what`` names the argument in the error."""
    if isinstance(length, Time):
        return length.to_milliseconds()
    if isinstance(length, Duration):
        return length.to_millis()
    raise InvalidProgramError(
        f"{what} must be a Time or a Duration, for example Time.seconds(5), but it is "
        f"{shorten(length)}."
    )


def check_count(number: object, least: int, what: str) -> None:
    """Check that an argument is a number of records. ``what`` names it in the error."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InvalidProgramError(
            f"{what} must be a number of records, at least {least}, but it is {shorten(number)}."
        )


class Window(ABC):
    """A finite part of a stream. A window of your own must be hashable and must survive pickling.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Round(Window):
    ...     number: int
    ...     def max_timestamp(self):
    ...         return 1000 * self.number + 999
    >>> Round(2).max_timestamp()
    2999
    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the last millisecond that belongs to the window. Its results have this timestamp."""


class TimeWindow(Window, tuple[int, int]):
    """The time from ``start`` (inclusive) to ``end`` (exclusive), in milliseconds.

    It is a tuple, because windows are keys of state, and tuples hash and compare fast.

    Attributes:
        start: The first millisecond of the window.
        end: The first millisecond after the window.

    >>> window = TimeWindow(0, 5000)
    >>> window.start, window.end, window.max_timestamp()
    (0, 5000, 4999)
    >>> window.intersects(TimeWindow(5000, 6000))
    True
    >>> window.cover(TimeWindow(5000, 6000))
    TimeWindow(start=0, end=6000)
    """

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> Self:
        return tuple.__new__(cls, (start, end))

    def __getnewargs__(self) -> tuple[int, int]:
        return self[0], self[1]

    @property
    def start(self) -> int:
        """The first millisecond of the window."""
        return self[0]

    @property
    def end(self) -> int:
        """The first millisecond after the window."""
        return self[1]

    def max_timestamp(self) -> int:
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Return True if the two windows overlap or touch."""
        return self[0] <= other[1] and self[1] >= other[0]

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that contains both."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the tumbling window that a timestamp falls into.

        Args:
            timestamp: The timestamp in milliseconds.
            offset: The shift of all windows in milliseconds.
            window_size: The size of the windows in milliseconds.

        >>> TimeWindow.get_window_start_with_offset(7_300, 0, 5_000)
        5000
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(
        windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Find the groups of windows that overlap or touch, and report each to a callback.

        Args:
            windows: The windows of a key.
            callback: Called with the windows of a group and the window that covers them.

        >>> class Show(MergingWindowAssigner.MergeCallback):
        ...     def merge(self, to_be_merged, merge_result):
        ...         print(len(to_be_merged), "become", merge_result)
        >>> windows = [TimeWindow(0, 10), TimeWindow(5, 15), TimeWindow(30, 40)]
        >>> TimeWindow.merge_windows(windows, Show())
        2 become TimeWindow(start=0, end=15)
        """
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
    """A window of records that are counted.

    Attributes:
        id: The number of the window among those of its key, from 0.

    >>> CountWindow(3).id
    3
    """

    __slots__ = ()

    def __new__(cls, id: int) -> Self:
        return tuple.__new__(cls, (id,))

    def __getnewargs__(self) -> tuple[int]:
        return (self[0],)

    @property
    def id(self) -> int:
        """The number of the window among those of its key, from 0."""
        return self[0]

    def max_timestamp(self) -> int:
        """Return the largest long: no watermark ends the window.

        >>> CountWindow(0).max_timestamp() == 2**63 - 1
        True
        """
        return MAX_LONG_VALUE

    def __repr__(self) -> str:
        return f"CountWindow(id={self[0]})"


class GlobalWindow(Window, tuple[()]):
    """The window that contains all records of a key.

    >>> GlobalWindow.get()
    GlobalWindow
    >>> GlobalWindow().max_timestamp() == 2**63 - 1
    True
    """

    __slots__ = ()

    def __new__(cls) -> Self:
        return tuple.__new__(cls)

    def __getnewargs__(self) -> tuple[()]:
        return ()

    @staticmethod
    def get() -> GlobalWindow:
        """Return the window. All objects of the class are equal."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __repr__(self) -> str:
        return "GlobalWindow"


_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes a TimeWindow as two longs.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> TimeWindowSerializer().serialize(TimeWindow(0, 5000), stream)
    >>> TimeWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    TimeWindow(start=0, end=5000)
    """

    def __init__(self) -> None:
        """Make a serializer."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Writes a CountWindow as a long.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> CountWindowSerializer().serialize(CountWindow(3), stream)
    >>> CountWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    CountWindow(id=3)
    """

    def __init__(self) -> None:
        """Make a serializer."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes a GlobalWindow as a long.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> GlobalWindowSerializer().serialize(GlobalWindow(), stream)
    >>> GlobalWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    GlobalWindow
    """

    def __init__(self) -> None:
        """Make a serializer."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        stream.write(_LONG.pack(0))

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        stream.read(_LONG.size)
        return GlobalWindow()


@public_evolving
class TaggedUnion(NamedTuple):
    """A record of either stream of a window join. Not in PyFlink.

    Assigners, triggers and evictors of a window join get records in this form.

    Attributes:
        side: 0 for the first stream, 1 for the second.
        value: The record.

    >>> order, payment = TaggedUnion.one("order"), TaggedUnion.two("payment")
    >>> order.is_one(), order.is_two()
    (True, False)
    >>> order.get_one(), order.get_two(), payment.get_two()
    ('order', None, 'payment')
    """

    side: int
    value: Any

    @staticmethod
    def one(value: Any) -> TaggedUnion:
        """Return a record of the first stream."""
        return TaggedUnion(0, value)

    @staticmethod
    def two(value: Any) -> TaggedUnion:
        """Return a record of the second stream."""
        return TaggedUnion(1, value)

    def is_one(self) -> bool:
        """Return True for a record of the first stream."""
        return self.side == 0

    def is_two(self) -> bool:
        """Return True for a record of the second stream."""
        return self.side == 1

    def get_one(self) -> Any:
        """Return the record of the first stream, or None."""
        return self.value if self.side == 0 else None

    def get_two(self) -> Any:
        """Return the record of the second stream, or None."""
        return self.value if self.side == 1 else None
