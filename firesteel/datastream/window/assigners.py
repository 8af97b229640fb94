"""One window for everything; a trigger of the user's own decides when it fires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from enum import Enum
from random import random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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

if TYPE_CHECKING:
    from firesteel.common.serializer import TypeSerializer
    from firesteel.datastream.functions import RuntimeContext

T = TypeVar("T")
W = TypeVar("W")


class NoTimestampError(FiresteelError, ValueError):
    """A record without a timestamp came to a window of event time, or to an interval join."""

    def __init__(self, place: str = "a window of event time") -> None:
        self.place = place
        super().__init__(
            f"a record without a timestamp came to {place}. Give the source a WatermarkStrategy, or "
            f"call assign_timestamps_and_watermarks() before it"
        )

    def __reduce__(self) -> tuple[type[NoTimestampError], tuple[str]]:
        return NoTimestampError, (self.place,)


class WindowAssigner(ABC, Generic[T, W]):
    """Puts every record into any number of windows."""

    class WindowAssignerContext(ABC):
        @abstractmethod
        def get_current_processing_time(self) -> int: ...

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Its state is that of the record's key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of a record. ``timestamp`` is the smallest long if it has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger where the program names none."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """As in PyFlink. Firesteel itself keeps windows pickled."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark, rather than by the clock."""


W2 = TypeVar("W2")


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Session windows are made this way: a window for every record, merged with its neighbors."""

    class MergeCallback(ABC, Generic[W2]):
        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """Say that some windows become one."""

    @abstractmethod
    def merge_windows(
        self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]
    ) -> None:
        """Find out which of the windows are to be merged, and report each group."""


class SessionWindowTimeGapExtractor(ABC):
    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds; it must be positive."""


class WindowStagger(Enum):
    """How far a subtask shifts its windows, so that not all of them fire at once. Not in PyFlink.

    >>> WindowStagger.NATURAL.get_stagger_offset(1_003, 10)
    3
    """

    ALIGNED = "aligned"
    """Not at all."""

    RANDOM = "random"
    """By a random part of the size."""

    NATURAL = "natural"
    """So that a window begins at the processing time of the subtask's first record."""

    def get_stagger_offset(self, current_processing_time: int, size: int) -> int:
        """The shift in milliseconds, when the first record comes."""
        if self is WindowStagger.RANDOM:
            return int(random() * size)
        if self is WindowStagger.NATURAL:
            return current_processing_time % size
        return 0


_new_window = tuple.__new__


class AlignedTimeWindows(WindowAssigner[T, TimeWindow]):
    """Windows whose ends are the same for all keys. Tumbling windows slide by their size."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        if size <= 0 or slide <= 0 or abs(offset) >= slide:
            slides = "" if slide == size else f", slide {slide}"
            raise InvalidProgramError(
                f"{type(self).__name__}: size {size}{slides} and offset {offset} (milliseconds) do "
                f"not fit: size and slide must be positive, and the offset smaller than the slide."
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    @property
    def is_staggered(self) -> bool:
        """Whether each subtask shifts its windows by another time."""
        return False

    @abstractmethod
    def time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        """The time that decides about a record's windows."""

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time = self.time_of(timestamp, context)
        size = self.size
        last_start = time - (time - self.offset) % self.slide
        # The newest window comes first, as in Flink.
        return [
            _new_window(TimeWindow, (start, start + size))
            for start in range(last_start, time - size, -self.slide)
        ]

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()


class EventTimeWindows(AlignedTimeWindows[T]):
    def time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        if timestamp == MIN_LONG_VALUE:
            raise NoTimestampError
        return timestamp

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class ProcessingTimeWindows(AlignedTimeWindows[T]):
    def time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        return context.get_current_processing_time()

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class TumblingWindows(AlignedTimeWindows[T]):
    """``stagger_offset`` is None until the first record decides about it."""

    def __init__(self, size: int, offset: int, window_stagger: WindowStagger) -> None:
        super().__init__(size, size, offset)
        if not isinstance(window_stagger, WindowStagger):
            raise InvalidProgramError(
                f"{type(self).__name__}: the stagger must be a WindowStagger, for example "
                f"WindowStagger.NATURAL, but it is {shorten(window_stagger)}."
            )
        self.window_stagger = window_stagger
        self.stagger_offset = 0 if window_stagger is WindowStagger.ALIGNED else None

    @property
    def is_staggered(self) -> bool:
        return self.window_stagger is not WindowStagger.ALIGNED

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time, size = self.time_of(timestamp, context), self.size
        shift = self.stagger_offset
        if shift is None:
            now = context.get_current_processing_time()
            shift = self.stagger_offset = self.window_stagger.get_stagger_offset(now, size)
        start = time - (time - self.offset - shift) % size
        return [TimeWindow(start, start + size)]

    def __repr__(self) -> str:
        stagger = f", {self.window_stagger.name}" if self.is_staggered else ""
        return f"{type(self).__name__}({self.size}, {self.offset}{stagger})"


class TumblingEventTimeWindows(TumblingWindows[Any], EventTimeWindows[Any]):
    """Every record is in exactly one window.

    >>> TumblingEventTimeWindows.of(Time.seconds(60), offset=Time.seconds(15))
    TumblingEventTimeWindows(60000, 15000)
    """

    def __init__(
        self, size: int, offset: int, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> None:
        super().__init__(size, offset, window_stagger)

    @staticmethod
    def of(
        size: Time | Duration,
        offset: Time | Duration | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> TumblingEventTimeWindows:
        """Windows of ``size``, the first of them beginning at 1970-01-01 UTC plus ``offset``.

        With a ``window_stagger`` every subtask shifts its windows; not in PyFlink.
        """
        return TumblingEventTimeWindows(
            to_millis(size, "The size"),
            0 if offset is None else to_millis(offset, "The offset"),
            window_stagger,
        )


class TumblingProcessingTimeWindows(TumblingWindows[Any], ProcessingTimeWindows[Any]):
    """Every record is in exactly one window.

    >>> TumblingProcessingTimeWindows.of(Time.seconds(60), offset=Time.seconds(15))
    TumblingProcessingTimeWindows(60000, 15000)
    """

    def __init__(
        self, size: int, offset: int, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> None:
        super().__init__(size, offset, window_stagger)

    @staticmethod
    def of(
        size: Time | Duration,
        offset: Time | Duration | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> TumblingProcessingTimeWindows:
        """Windows of ``size``, the first of them beginning at 1970-01-01 UTC plus ``offset``.

        With a ``window_stagger`` every subtask shifts its windows; not in PyFlink.
        """
        return TumblingProcessingTimeWindows(
            to_millis(size, "The size"),
            0 if offset is None else to_millis(offset, "The offset"),
            window_stagger,
        )


class SlidingEventTimeWindows(EventTimeWindows[Any]):
    """A record is in as many windows as slides fit into the size.

    >>> SlidingEventTimeWindows.of(Time.minutes(10), Time.minutes(1))
    SlidingEventTimeWindows(600000, 60000, 0)
    """

    def __init__(self, size: int, slide: int, offset: int) -> None:
        super().__init__(size, slide, offset)

    @staticmethod
    def of(
        size: Time | Duration, slide: Time | Duration, offset: Time | Duration | None = None
    ) -> SlidingEventTimeWindows:
        """Windows of ``size``, one of them beginning at each multiple of ``slide`` plus ``offset``."""
        return SlidingEventTimeWindows(
            to_millis(size, "The size"),
            to_millis(slide, "The slide"),
            0 if offset is None else to_millis(offset, "The offset"),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"


class SlidingProcessingTimeWindows(ProcessingTimeWindows[Any]):
    """A record is in as many windows as slides fit into the size.

    >>> SlidingProcessingTimeWindows.of(Time.minutes(10), Time.minutes(1))
    SlidingProcessingTimeWindows(600000, 60000, 0)
    """

    def __init__(self, size: int, slide: int, offset: int) -> None:
        super().__init__(size, slide, offset)

    @staticmethod
    def of(
        size: Time | Duration, slide: Time | Duration, offset: Time | Duration | None = None
    ) -> SlidingProcessingTimeWindows:
        """Windows of ``size``, one of them beginning at each multiple of ``slide`` plus ``offset``."""
        return SlidingProcessingTimeWindows(
            to_millis(size, "The size"),
            to_millis(slide, "The slide"),
            0 if offset is None else to_millis(offset, "The offset"),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"


class EventTimeSessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise InvalidProgramError(
                f"The gap of sessions must be positive, not {session_gap} ms."
            )
        self.session_gap = session_gap

    @staticmethod
    def with_gap(size: Time | Duration) -> EventTimeSessionWindows:
        """Sessions that end after a silence of ``size``."""
        return EventTimeSessionWindows(to_millis(size, "The gap"))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicEventTimeSessionWindows:
        """Sessions whose gap each record says itself."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        if timestamp == MIN_LONG_VALUE:
            raise NoTimestampError
        return [TimeWindow(timestamp, timestamp + self.session_gap)]

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger()

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class ProcessingTimeSessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise InvalidProgramError(
                f"The gap of sessions must be positive, not {session_gap} ms."
            )
        self.session_gap = session_gap

    @staticmethod
    def with_gap(size: Time | Duration) -> ProcessingTimeSessionWindows:
        """Sessions that end after a silence of ``size``."""
        return ProcessingTimeSessionWindows(to_millis(size, "The gap"))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows:
        """Sessions whose gap each record says itself."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time = context.get_current_processing_time()
        return [TimeWindow(time, time + self.session_gap)]

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return ProcessingTimeTrigger()

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class DynamicEventTimeSessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor) -> None:
        if not isinstance(session_window_time_gap_extractor, SessionWindowTimeGapExtractor):
            raise InvalidProgramError("A dynamic gap needs a SessionWindowTimeGapExtractor.")
        self.extractor = session_window_time_gap_extractor

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicEventTimeSessionWindows:
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        gap = self.extractor.extract(element)
        if gap <= 0:
            raise ValueError(f"the gap of a session must be positive, but the extractor said {gap}")
        if timestamp == MIN_LONG_VALUE:
            raise NoTimestampError
        return [TimeWindow(timestamp, timestamp + gap)]

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger()

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.extractor).__name__})"


class DynamicProcessingTimeSessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor) -> None:
        if not isinstance(session_window_time_gap_extractor, SessionWindowTimeGapExtractor):
            raise InvalidProgramError("A dynamic gap needs a SessionWindowTimeGapExtractor.")
        self.extractor = session_window_time_gap_extractor

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows:
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        gap = self.extractor.extract(element)
        if gap <= 0:
            raise ValueError(f"the gap of a session must be positive, but the extractor said {gap}")
        time = context.get_current_processing_time()
        return [TimeWindow(time, time + gap)]

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return ProcessingTimeTrigger()

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.extractor).__name__})"


class CountTumblingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Records 0 to n - 1 of a key, records n to 2 n - 1, and so on."""

    def __init__(self, window_size: int) -> None:
        check_count(window_size, 1, "The size of a count window")
        self._window_size = window_size
        self._count_descriptor = ValueStateDescriptor("tumble-count-assigner", Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number = _next_number(self._count_descriptor, context)
        return [CountWindow(number // self._window_size)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        """A full window gets no more records, so it need not be kept."""
        return PurgingTrigger(CountTrigger(self._window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._window_size})"


class CountSlidingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """A window of n records begins with each slide; it fires when it is full, as in PyFlink."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        check_count(window_size, 1, "The size of a count window")
        check_count(window_slide, 1, "The slide of a count window")
        self._window_size = window_size
        self._window_slide = window_slide
        self._count_descriptor = ValueStateDescriptor("slide-count-assigner", Types.LONG())

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number = _next_number(self._count_descriptor, context)
        newest = number // self._window_slide
        # The oldest window whose last record is not before this one.
        oldest = max(0, -((self._window_size - 1 - number) // self._window_slide))
        return [CountWindow(window) for window in range(newest, oldest - 1, -1)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        return PurgingTrigger(CountTrigger(self._window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._window_size}, {self._window_slide})"


def _next_number(
    descriptor: ValueStateDescriptor, context: WindowAssigner.WindowAssignerContext
) -> int:
    """The number of this record among those of its key, from 0."""
    count = context.get_runtime_context().get_state(descriptor)
    number: int = count.value() or 0
    count.update(number + 1)
    return number


_THE_WINDOW = (GlobalWindow(),)


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    def __init__(self, default_trigger: Trigger[Any, GlobalWindow] | None = None) -> None:
        self._default_trigger = default_trigger or NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """The window never fires, unless the program names a trigger."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """The window fires when the input has ended. Not in PyFlink."""
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
