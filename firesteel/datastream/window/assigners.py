"""Window assigners: they put each record into the windows that it belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from enum import Enum
from random import random
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from firesteel.common.constants import MIN_LONG_VALUE
from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window.triggers import (
    CountTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from firesteel.datastream.window.windows import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
    check_count,
    to_millis,
)
from firesteel.errors import FiresteelError, InvalidProgramError, shorten
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.common.serializer import TypeSerializer
    from firesteel.datastream.functions import RuntimeContext

T = TypeVar("T")
W = TypeVar("W")


@public_evolving
class NoTimestampError(FiresteelError, ValueError):
    """Raised if a record without a timestamp reaches an event-time operator. Not in PyFlink.

    Event-time windows and interval joins raise it.

    >>> numbers = env.from_collection([1, 2])
    >>> windows = numbers.window_all(TumblingEventTimeWindows.of(Time.seconds(5)))
    >>> list(windows.reduce(max).execute_and_collect())
    Traceback (most recent call last):
    ...
    firesteel.errors.UserFunctionError: ...a record without a timestamp reached a window of event time...
    """

    def __init__(self, place: str = "a window of event time") -> None:
        self.place = place
        super().__init__(
            f"a record without a timestamp reached {place}. Give the source a WatermarkStrategy, "
            "or call assign_timestamps_and_watermarks() before it"
        )

    def __reduce__(self) -> tuple[type[NoTimestampError], tuple[str]]:
        return NoTimestampError, (self.place,)


class WindowAssigner(ABC, Generic[T, W]):
    """Puts each record into any number of windows.

    Derive from it for windows of your own. One object serves all keys of a subtask.

    >>> class ByParity(WindowAssigner):
    ...     def assign_windows(self, element, timestamp, context):
    ...         return [CountWindow(element % 2)]
    ...     def get_default_trigger(self, env):
    ...         return CountTrigger.of(2)
    ...     def get_window_serializer(self):
    ...         return CountWindowSerializer()
    ...     def is_event_time(self):
    ...         return False
    >>> windows = env.from_collection([1, 2, 3, 4]).window_all(ByParity())
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    [4, 6]
    """

    class WindowAssignerContext(ABC):
        """The clock and the state that ``assign_windows`` may use.

        >>> class EachHour(WindowAssigner):
        ...     def assign_windows(self, element, timestamp, context):
        ...         now = context.get_current_processing_time()
        ...         seen = context.get_runtime_context().get_state(ValueStateDescriptor("n", Types.INT()))
        ...         seen.update((seen.value() or 0) + 1)
        ...         return [TimeWindow(now - now % 3_600_000, now - now % 3_600_000 + 3_600_000)]
        ...     def get_default_trigger(self, env):
        ...         return ProcessingTimeTrigger()
        ...     def get_window_serializer(self):
        ...         return TimeWindowSerializer()
        ...     def is_event_time(self):
        ...         return False
        """

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the clock of the subtask, in milliseconds since 1970."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return the runtime context. Its state belongs to the key of the record."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """Return the windows of a record.

        Args:
            element: The record.
            timestamp: Its timestamp in milliseconds, or the smallest long if it has none.
            context: The clock, and state of the record's key.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """Return the trigger for programs that set none.

        Args:
            env: The StreamExecutionEnvironment of the program.
        """

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """Return a serializer for the windows, as in PyFlink. Firesteel itself pickles windows."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return True if the watermark ends windows, and False if the clock does."""


W2 = TypeVar("W2")


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Gives windows that can merge, as sessions do: each record opens one, and neighbors become one.

    >>> class OneDay(MergingWindowAssigner):
    ...     def assign_windows(self, element, timestamp, context):
    ...         return [TimeWindow(element, element + 10)]
    ...     def merge_windows(self, windows, callback):
    ...         TimeWindow.merge_windows(windows, callback)
    ...     def get_default_trigger(self, env):
    ...         return EventTimeTrigger()
    ...     def get_window_serializer(self):
    ...         return TimeWindowSerializer()
    ...     def is_event_time(self):
    ...         return True
    >>> windows = env.from_collection([0, 5, 30]).window_all(OneDay())
    >>> list(windows.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['0 5', 30]
    """

    class MergeCallback(ABC, Generic[W2]):
        """Takes the groups of windows that ``merge_windows`` finds.

        >>> class Show(MergingWindowAssigner.MergeCallback):
        ...     def merge(self, to_be_merged, merge_result):
        ...         print(sorted(to_be_merged), "become", merge_result)
        >>> TimeWindow.merge_windows([TimeWindow(0, 10), TimeWindow(5, 15)], Show())
        [TimeWindow(start=0, end=10), TimeWindow(start=5, end=15)] become TimeWindow(start=0, end=15)
        """

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """Report that some windows become one.

            Args:
                to_be_merged: The windows that merge.
                merge_result: The window that replaces them.
            """

    @abstractmethod
    def merge_windows(
        self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]
    ) -> None:
        """Find the windows that merge, and report each group to the callback.

        Args:
            windows: All windows of a key.
            callback: Called once per group of windows that become one.
        """


class SessionWindowTimeGapExtractor(ABC):
    """Returns the session gap after a record.

    >>> class Gap(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 60_000 if element.startswith("premium") else 10_000
    >>> Gap().extract("premium-7")
    60000
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return the gap in milliseconds. It must be positive.

        Args:
            element: The record.
        """


@public_evolving
class WindowStagger(Enum):
    """Shifts the windows of each subtask, so that not all of them fire at once. Not in PyFlink.

    >>> TumblingEventTimeWindows.of(Time.minutes(1), window_stagger=WindowStagger.NATURAL)
    TumblingEventTimeWindows(60000, 0, NATURAL)
    >>> WindowStagger.NATURAL.get_stagger_offset(1_003, 10)
    3
    """

    ALIGNED = "aligned"
    """No shift."""

    RANDOM = "random"
    """A random part of the size."""

    NATURAL = "natural"
    """A window begins at the processing time of the subtask's first record."""

    def get_stagger_offset(self, current_processing_time: int, size: int) -> int:
        """Return the shift of a subtask in milliseconds.

        Args:
            current_processing_time: The clock when the first record comes.
            size: The size of the windows in milliseconds.
        """
        if self is WindowStagger.RANDOM:
            return int(random() * size)
        if self is WindowStagger.NATURAL:
            return current_processing_time % size
        return 0


class TimeWindowAssigner(WindowAssigner[Any, TimeWindow]):
    """Base of assigners that give windows of time."""

    @abstractmethod
    def _time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        """Return the time that decides about a record's windows."""

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()


class EventTimeAssigner(TimeWindowAssigner):
    """Mixin: the timestamp of a record decides, and the watermark fires windows."""

    def _time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        if timestamp == MIN_LONG_VALUE:
            raise NoTimestampError
        return timestamp

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class ProcessingTimeAssigner(TimeWindowAssigner):
    """Mixin: the clock decides when a record arrives, and fires windows."""

    def _time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        return context.get_current_processing_time()

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


_new_window = tuple.__new__


class AlignedTimeWindows(TimeWindowAssigner):
    """Base of windows that end at the same times for all keys. Tumbling windows slide by their size."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        if size <= 0 or slide <= 0 or abs(offset) >= slide:
            slides = "" if slide == size else f", slide {slide}"
            raise InvalidProgramError(
                f"{type(self).__name__}: size {size}{slides} and offset {offset} (milliseconds) "
                "are invalid: size and slide must be positive, and the offset smaller than the "
                "slide."
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    @property
    @public_evolving
    def is_staggered(self) -> bool:
        """True if each subtask shifts its windows by a time of its own. Not in PyFlink.

        >>> TumblingEventTimeWindows.of(Time.minutes(1)).is_staggered
        False
        """
        return False

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time = self._time_of(timestamp, context)
        size = self.size
        last_start = time - (time - self.offset) % self.slide
        # The newest window comes first, as in Flink.
        return [
            _new_window(TimeWindow, (start, start + size))
            for start in range(last_start, time - size, -self.slide)
        ]


class TumblingWindows(AlignedTimeWindows):
    """Base of tumbling windows. ``stagger_offset`` is None until the first record sets it."""

    def __init__(
        self, size: int, offset: int, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> None:
        super().__init__(size, size, offset)
        if not isinstance(window_stagger, WindowStagger):
            raise InvalidProgramError(
                f"{type(self).__name__}: the stagger must be a WindowStagger, for example "
                f"WindowStagger.NATURAL, but it is {shorten(window_stagger)}."
            )
        self.window_stagger = window_stagger
        self.stagger_offset = 0 if window_stagger is WindowStagger.ALIGNED else None

    @classmethod
    def of(
        cls,
        size: Time | Duration,
        offset: Time | Duration | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> Self:
        """Make windows that follow each other without a gap.

        Args:
            size: The length of a window.
            offset: Shifts the start of all windows. Without it a window starts at
                1970-01-01 00:00 UTC. For days in UTC+8, use ``Time.hours(-8)``.
            window_stagger: Shifts the windows of each subtask further. Not in PyFlink.

        Raises:
            InvalidProgramError: The size is not positive, or the offset is not smaller than it.

        >>> TumblingEventTimeWindows.of(Time.days(1), offset=Time.hours(-8))
        TumblingEventTimeWindows(86400000, -28800000)
        """
        return cls(to_millis(size, "The size"), _offset_millis(offset), window_stagger)

    @property
    @public_evolving
    def is_staggered(self) -> bool:
        return self.window_stagger is not WindowStagger.ALIGNED

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time, size = self._time_of(timestamp, context), self.size
        shift = self.stagger_offset
        if shift is None:
            now = context.get_current_processing_time()
            shift = self.stagger_offset = self.window_stagger.get_stagger_offset(now, size)
        start = time - (time - self.offset - shift) % size
        return [_new_window(TimeWindow, (start, start + size))]

    def __repr__(self) -> str:
        stagger = f", {self.window_stagger.name}" if self.is_staggered else ""
        return f"{type(self).__name__}({self.size}, {self.offset}{stagger})"


class TumblingEventTimeWindows(EventTimeAssigner, TumblingWindows):
    """Windows of one size without overlap, by event time. Each record is in one window.

    Args:
        size: The length of a window in milliseconds.
        offset: The shift of all windows in milliseconds.
        window_stagger: Shifts the windows of each subtask further. Not in PyFlink.

    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda second, _: second * 1000
    ... )
    >>> seconds = env.from_collection([1, 2, 4, 6, 7]).assign_timestamps_and_watermarks(strategy)
    >>> windows = seconds.window_all(TumblingEventTimeWindows.of(Time.seconds(5)))
    >>> list(windows.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['1 2 4', '6 7']
    """


class TumblingProcessingTimeWindows(ProcessingTimeAssigner, TumblingWindows):
    """Windows of one size without overlap, by processing time. Each record is in one window.

    Args:
        size: The length of a window in milliseconds.
        offset: The shift of all windows in milliseconds.
        window_stagger: Shifts the windows of each subtask further. Not in PyFlink.

    The source of this example pauses for ten seconds; the test harness does not wait for them. The
    last window does not fire, because the input ends before the window does.

    >>> from firesteel.testing import Pause, ScriptedSource
    >>> source = ScriptedSource(["a", "b", Pause(10), "c", Pause(10), "d"])
    >>> letters = env.from_source(source, None, "letters")
    >>> windows = letters.window_all(TumblingProcessingTimeWindows.of(Time.seconds(5)))
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    ['ab', 'c']
    """


# As in Flink. A record that is in more windows than this would not fit into memory.
_MAX_WINDOWS_PER_RECORD = 10_000_000


class SlidingWindows(AlignedTimeWindows):
    """Base of sliding windows."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        super().__init__(size, slide, offset)
        if size // slide > _MAX_WINDOWS_PER_RECORD:
            raise InvalidProgramError(
                f"{type(self).__name__}: with size {size} and slide {slide} (milliseconds) a record "
                f"is in {size // slide:,} windows, but at most {_MAX_WINDOWS_PER_RECORD:,} are "
                "allowed. Choose a longer slide."
            )

    @classmethod
    def of(
        cls,
        size: Time | Duration,
        slide: Time | Duration,
        offset: Time | Duration | None = None,
    ) -> Self:
        """Make windows that start at regular times and may overlap.

        Args:
            size: The length of a window.
            slide: The time from the start of a window to the start of the next.
            offset: Shifts the start of all windows.

        Raises:
            InvalidProgramError: The size or the slide is not positive, the offset is not smaller
                than the slide, or the size is more than 10,000,000 slides.

        >>> SlidingEventTimeWindows.of(Time.minutes(10), Time.minutes(1))
        SlidingEventTimeWindows(600000, 60000, 0)
        """
        return cls(
            to_millis(size, "The size"), to_millis(slide, "The slide"), _offset_millis(offset)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"


def _offset_millis(offset: Time | Duration | None) -> int:
    return 0 if offset is None else to_millis(offset, "The offset")


class SlidingEventTimeWindows(EventTimeAssigner, SlidingWindows):
    """Windows of one size that overlap, by event time.

    A record is in as many windows as slides fit into the size.

    Args:
        size: The length of a window in milliseconds.
        slide: The time from the start of a window to the start of the next, in milliseconds.
        offset: The shift of all windows in milliseconds.

    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda second, _: second * 1000
    ... )
    >>> seconds = env.from_collection([1, 4, 7]).assign_timestamps_and_watermarks(strategy)
    >>> windows = seconds.window_all(SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(3)))
    >>> list(windows.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    [1, '1 4', '4 7', 7]
    """


class SlidingProcessingTimeWindows(ProcessingTimeAssigner, SlidingWindows):
    """Windows of one size that overlap, by processing time.

    A record is in as many windows as slides fit into the size.

    Args:
        size: The length of a window in milliseconds.
        slide: The time from the start of a window to the start of the next, in milliseconds.
        offset: The shift of all windows in milliseconds.

    >>> from firesteel.testing import Pause, ScriptedSource
    >>> source = ScriptedSource(["a", Pause(3), "b", Pause(3), Pause(3), "c"])
    >>> letters = env.from_source(source, None, "letters")
    >>> windows = letters.window_all(
    ...     SlidingProcessingTimeWindows.of(Time.seconds(6), Time.seconds(3))
    ... )
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    ['a', 'ab', 'b']
    """


class SessionWindows(MergingWindowAssigner[Any, TimeWindow], TimeWindowAssigner):
    """Base of session windows: each record opens a window of its gap, and windows that touch merge."""

    @abstractmethod
    def _gap_of(self, element: Any) -> int:
        """Return the gap after a record, in milliseconds."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time = self._time_of(timestamp, context)
        return [_new_window(TimeWindow, (time, time + self._gap_of(element)))]

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        TimeWindow.merge_windows(windows, callback)


class FixedGapSessionWindows(SessionWindows):
    """Base of sessions with one gap for all records."""

    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise InvalidProgramError(
                f"The gap of sessions must be positive, not {session_gap} ms."
            )
        self.session_gap = session_gap

    @classmethod
    def with_gap(cls, size: Time | Duration) -> Self:
        """Make sessions that end after a silence of ``size``.

        Args:
            size: The time without a record of the key after which a session ends.

        >>> EventTimeSessionWindows.with_gap(Time.minutes(30))
        EventTimeSessionWindows(1800000)
        """
        return cls(to_millis(size, "The gap"))

    def _gap_of(self, element: Any) -> int:
        return self.session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class DynamicGapSessionWindows(SessionWindows):
    """Base of sessions whose gap depends on the record."""

    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor) -> None:
        if not isinstance(session_window_time_gap_extractor, SessionWindowTimeGapExtractor):
            raise InvalidProgramError("A dynamic gap needs a SessionWindowTimeGapExtractor.")
        self.extractor = session_window_time_gap_extractor

    @classmethod
    def with_dynamic_gap(cls, extractor: SessionWindowTimeGapExtractor) -> Self:
        """Make sessions whose gap each record determines.

        Args:
            extractor: Returns the gap after a record.

        >>> class ByLength(SessionWindowTimeGapExtractor):
        ...     def extract(self, element):
        ...         return 1000 * len(element)
        >>> DynamicEventTimeSessionWindows.with_dynamic_gap(ByLength())
        DynamicEventTimeSessionWindows(ByLength)
        """
        return cls(extractor)

    def _gap_of(self, element: Any) -> int:
        gap = self.extractor.extract(element)
        if gap <= 0:
            raise ValueError(
                f"the gap of a session must be positive, but the extractor returned {gap}"
            )
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.extractor).__name__})"


class EventTimeSessionWindows(EventTimeAssigner, FixedGapSessionWindows):
    """Sessions by event time: a window ends after a silence of the key.

    Args:
        session_gap: The silence after which a session ends, in milliseconds.

    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda second, _: second * 1000
    ... )
    >>> seconds = env.from_collection([1, 2, 8, 9]).assign_timestamps_and_watermarks(strategy)
    >>> sessions = seconds.window_all(EventTimeSessionWindows.with_gap(Time.seconds(5)))
    >>> list(sessions.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['1 2', '8 9']
    """

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicEventTimeSessionWindows:
        """Make sessions whose gap each record determines.

        Args:
            extractor: Returns the gap after a record.

        >>> class ByLength(SessionWindowTimeGapExtractor):
        ...     def extract(self, element):
        ...         return 1000 * len(element)
        >>> EventTimeSessionWindows.with_dynamic_gap(ByLength())
        DynamicEventTimeSessionWindows(ByLength)
        """
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(ProcessingTimeAssigner, FixedGapSessionWindows):
    """Sessions by processing time: a window ends after a silence of the key.

    Args:
        session_gap: The silence after which a session ends, in milliseconds.

    >>> from firesteel.testing import Pause, ScriptedSource
    >>> source = ScriptedSource(["a", Pause(2), "b", Pause(10), "c", Pause(10), "d"])
    >>> letters = env.from_source(source, None, "letters")
    >>> sessions = letters.window_all(ProcessingTimeSessionWindows.with_gap(Time.seconds(5)))
    >>> list(sessions.reduce(lambda a, b: a + b).execute_and_collect())
    ['ab', 'c']
    """

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows:
        """Make sessions whose gap each record determines.

        Args:
            extractor: Returns the gap after a record.

        >>> class ByLength(SessionWindowTimeGapExtractor):
        ...     def extract(self, element):
        ...         return 1000 * len(element)
        >>> ProcessingTimeSessionWindows.with_dynamic_gap(ByLength())
        DynamicProcessingTimeSessionWindows(ByLength)
        """
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(EventTimeAssigner, DynamicGapSessionWindows):
    """Sessions by event time whose gap depends on the record.

    Args:
        session_window_time_gap_extractor: Returns the gap after a record.

    >>> class Gap(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 10_000 if element == 8 else 5_000
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda second, _: second * 1000
    ... )
    >>> seconds = env.from_collection([1, 2, 8, 17]).assign_timestamps_and_watermarks(strategy)
    >>> sessions = seconds.window_all(DynamicEventTimeSessionWindows.with_dynamic_gap(Gap()))
    >>> list(sessions.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['1 2', '8 17']
    """


class DynamicProcessingTimeSessionWindows(ProcessingTimeAssigner, DynamicGapSessionWindows):
    """Sessions by processing time whose gap depends on the record.

    Args:
        session_window_time_gap_extractor: Returns the gap after a record.

    >>> from firesteel.testing import Pause, ScriptedSource
    >>> class Gap(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 10_000 if element == "b" else 1_000
    >>> source = ScriptedSource(["a", Pause(2), "b", Pause(5), "c", Pause(20), "d"])
    >>> letters = env.from_source(source, None, "letters")
    >>> sessions = letters.window_all(DynamicProcessingTimeSessionWindows.with_dynamic_gap(Gap()))
    >>> list(sessions.reduce(lambda a, b: a + b).execute_and_collect())
    ['a', 'bc']
    """


class CountWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Base of assigners that count the records of a key. A full window fires and is dropped."""

    _counter: ClassVar[str]

    def __init__(self, window_size: int) -> None:
        check_count(window_size, 1, "The size of a count window")
        self._window_size = window_size
        self._count_descriptor = ValueStateDescriptor(self._counter, Types.LONG())

    def _next_number(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """Count a record, and return its number among those of its key, from 0."""
        count = context.get_runtime_context().get_state(self._count_descriptor)
        number: int = count.value() or 0
        count.update(number + 1)
        return number

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        return PurgingTrigger(CountTrigger(self._window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(CountWindowAssigner):
    """Windows of a number of records of a key, without overlap.

    ``KeyedStream.count_window(size)`` uses it. A window fires when it is full.

    Args:
        window_size: The number of records in a window.

    >>> numbers = env.from_collection([1, 2, 3, 4, 5])
    >>> pairs = numbers.window_all(CountTumblingWindowAssigner.of(2))
    >>> list(pairs.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['1 2', '3 4']
    """

    _counter = "tumble-count-assigner"

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Make an assigner.

        Args:
            window_size: The number of records in a window.
        """
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        return [CountWindow(self._next_number(context) // self._window_size)]

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._window_size})"


class CountSlidingWindowAssigner(CountWindowAssigner):
    """Windows of a number of records of a key that overlap.

    ``KeyedStream.count_window(size, slide)`` uses it. A window fires when it is full, as in PyFlink;
    Flink's Java API also fires windows at the start that are not full.

    Args:
        window_size: The number of records in a window.
        window_slide: The number of records from the start of a window to the start of the next.

    >>> numbers = env.from_collection([1, 2, 3, 4, 5])
    >>> triples = numbers.window_all(CountSlidingWindowAssigner.of(3, 1))
    >>> list(triples.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['1 2 3', '2 3 4', '3 4 5']
    """

    _counter = "slide-count-assigner"

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size)
        check_count(window_slide, 1, "The slide of a count window")
        self._window_slide = window_slide

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Make an assigner.

        Args:
            window_size: The number of records in a window.
            window_slide: The number of records from a window's start to the start of the next.
        """
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number = self._next_number(context)
        newest = number // self._window_slide
        # The oldest window whose last record is not before this one.
        oldest = max(0, -((self._window_size - 1 - number) // self._window_slide))
        return [CountWindow(window) for window in range(newest, oldest - 1, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._window_size}, {self._window_slide})"


_THE_WINDOW = (GlobalWindow(),)


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """One window per key for all records. A trigger decides when it fires.

    Args:
        default_trigger: Fires the window if the program sets no trigger. Not in PyFlink.

    >>> numbers = env.from_collection([1, 2, 3, 4, 5])
    >>> windows = numbers.window_all(GlobalWindows.create()).trigger(CountTrigger.of(2))
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    [3, 10]
    """

    def __init__(self, default_trigger: Trigger[Any, GlobalWindow] | None = None) -> None:
        self._default_trigger = default_trigger or NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """Make windows that never fire unless the program sets a trigger."""
        return GlobalWindows()

    @staticmethod
    @public_evolving
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """Make windows that fire when the input has ended. Not in PyFlink.

        >>> numbers = env.from_collection([1, 2, 3])
        >>> windows = numbers.window_all(GlobalWindows.create_with_end_of_stream_trigger())
        >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
        [6]
        """
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return _THE_WINDOW

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        return self._default_trigger

    def get_window_serializer(self) -> GlobalWindowSerializer:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"
