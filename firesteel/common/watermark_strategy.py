"""WatermarkStrategy, the description of timestamps and watermarks.

The runtime reads the fields of a WatermarkStrategy and builds generators from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.common.expressions import Expression
from firesteel.common.time import Duration
from firesteel.gaps import gap_importer
from firesteel.stability import public_evolving

__all__ = [
    "BoundedOutOfOrderness",
    "CustomGenerator",
    "FunctionTimestampAssigner",
    "IngestionTime",
    "MonotonousTimestamps",
    "NoWatermarks",
    "TimestampAssigner",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]


class TimestampAssigner(ABC):
    """Extracts the timestamp of an event from the event.

    >>> class EventTime(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["time"]
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps()
    >>> strategy = strategy.with_timestamp_assigner(EventTime())
    >>> class ShowTimestamp(ProcessFunction):
    ...     def process_element(self, value, context):
    ...         yield context.timestamp()
    >>> stream = env.from_collection([{"time": 1000}, {"time": 2000}])
    >>> timed = stream.assign_timestamps_and_watermarks(strategy)
    >>> list(timed.process(ShowTimestamp()).execute_and_collect())
    [1000, 2000]
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the event time of a record, in milliseconds since 1970-01-01 UTC.

        Args:
            value: The record.
            record_timestamp: The timestamp that the record has so far, or the smallest long if it
                has none.
        """


@public_evolving
class WatermarkOutput(Protocol):
    """Receives the watermarks of a WatermarkGenerator. Not in PyFlink.

    >>> class EndMarker(WatermarkGenerator):
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event == "end of day":
    ...             output.emit_watermark(event_timestamp)
    ...             output.mark_idle()
    ...         else:
    ...             output.mark_active()
    ...     def on_periodic_emit(self, output):
    ...         pass
    """

    def emit_watermark(self, timestamp: int) -> None:
        """Declare that no later event has this timestamp or an earlier one.

        Args:
            timestamp: The watermark in milliseconds.
        """

    def mark_idle(self) -> None:
        """Exclude this output from the combined watermark until an event arrives."""

    def mark_active(self) -> None:
        """Include this output in the combined watermark again."""


@public_evolving
class WatermarkGenerator(ABC):
    """Generates watermarks by a custom rule. Not in PyFlink.

    Each subtask, or each split of a source, has its own generator. Checkpoints keep its fields if
    they can be pickled. Otherwise a new process starts with a new generator.

    >>> class AtMarkers(WatermarkGenerator):
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event == "end of hour":
    ...             output.emit_watermark(event_timestamp)
    ...     def on_periodic_emit(self, output):
    ...         pass
    >>> strategy = WatermarkStrategy.for_generator(AtMarkers)
    """

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Observe an event. A punctuated generator emits here.

        Args:
            event: The record.
            event_timestamp: Its timestamp in milliseconds.
            output: Receives the watermarks.
        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit a watermark, called in the auto-watermark interval. A periodic generator emits here.

        Args:
            output: Receives the watermarks.
        """


@dataclass(frozen=True, slots=True)
class NoWatermarks:
    """Generates no watermarks."""


@dataclass(frozen=True, slots=True)
class MonotonousTimestamps:
    """Generates watermarks for timestamps that never decrease."""


@dataclass(frozen=True, slots=True)
class BoundedOutOfOrderness:
    """Generates watermarks for events that are late by at most ``max_out_of_orderness``."""

    max_out_of_orderness: Duration


@dataclass(frozen=True, slots=True)
class IngestionTime:
    """Assigns the time of reading to each event. The watermark follows the clock."""


@dataclass(frozen=True, slots=True)
class CustomGenerator:
    """Generates watermarks with a generator of the user, one per subtask or split."""

    supplier: Callable[[], WatermarkGenerator]


@dataclass(frozen=True, slots=True)
class WatermarkAlignment:
    """Settings of sources that wait for the slowest source of their group."""

    watermark_group: str
    max_allowed_watermark_drift: Duration
    update_interval: Duration = Duration.of_millis(1000)  # noqa: RUF009  # immutable


@dataclass(slots=True)
class WatermarkStrategy:
    """The rules for event time: timestamps of events, and watermarks.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(
    ...     Duration.of_seconds(20)
    ... ).with_timestamp_assigner(lambda event, timestamp: event["time"])
    >>> strategy.with_idleness(Duration.of_minutes(1)).idle_timeout
    Duration.of_millis(60000)
    """

    generator: (
        NoWatermarks
        | MonotonousTimestamps
        | BoundedOutOfOrderness
        | IngestionTime
        | CustomGenerator
    )
    timestamp_assigner: TimestampAssigner | Expression | None = None
    idle_timeout: Duration | None = None
    alignment: WatermarkAlignment | None = None
    max_future_drift: Duration | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Return a strategy for timestamps that never decrease.

        The watermark is one millisecond before the latest timestamp.

        >>> WatermarkStrategy.for_monotonous_timestamps().generator
        MonotonousTimestamps()
        """
        return WatermarkStrategy(MonotonousTimestamps())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """Return a strategy for events that are late by at most a given time.

        Args:
            max_out_of_orderness: The watermark follows the latest timestamp at this distance.

        Raises:
            ValueError: The time is negative.
        """
        if max_out_of_orderness < Duration(0):
            raise ValueError("The bound of out-of-orderness must not be negative.")
        return WatermarkStrategy(BoundedOutOfOrderness(max_out_of_orderness))

    @staticmethod
    @public_evolving
    def for_generator(supplier: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Return a strategy with a generator of your own. Not in PyFlink.

        Args:
            supplier: Creates a WatermarkGenerator per subtask, or per split of a source.

        >>> class Latest(WatermarkGenerator):
        ...     latest = 0
        ...     def on_event(self, event, event_timestamp, output):
        ...         self.latest = max(self.latest, event_timestamp)
        ...     def on_periodic_emit(self, output):
        ...         output.emit_watermark(self.latest - 1)
        >>> strategy = WatermarkStrategy.for_generator(Latest)
        """
        return WatermarkStrategy(CustomGenerator(supplier))

    @staticmethod
    @public_evolving
    def ingestion_time() -> WatermarkStrategy:
        """Return a strategy that assigns the time of reading to each event. Not in PyFlink.

        After a failure, events that are read again get a different time.

        >>> WatermarkStrategy.ingestion_time().generator
        IngestionTime()
        """
        return WatermarkStrategy(IngestionTime())

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Return a strategy without watermarks, for programs that use processing time only.

        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> numbers = NumberSequenceSource(1, 3)
        >>> stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
        >>> list(stream.execute_and_collect())
        [1, 2, 3]
        """
        return WatermarkStrategy(NoWatermarks())

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int] | Expression
    ) -> WatermarkStrategy:
        """Take timestamps from the events.

        As in PyFlink, this changes the strategy and returns it.

        Args:
            timestamp_assigner: A TimestampAssigner, or a function of a record and its present
                timestamp that returns milliseconds; or an expression of an integer type, such as
                ``col("time")``, for a stream whose type is declared.

        Raises:
            ValueError: The strategy is ``ingestion_time``, which assigns timestamps itself.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        ...     lambda event, timestamp: event[1]
        ... )
        >>> strategy.timestamp_assigner.extract_timestamp(("click", 1000), 0)
        1000
        """
        if isinstance(self.generator, IngestionTime):
            raise ValueError(  # noqa: TRY004 - the combination is wrong, not the type
                "WatermarkStrategy.ingestion_time() assigns timestamps from the clock and cannot "
                "have a timestamp assigner."
            )
        if not isinstance(timestamp_assigner, TimestampAssigner | Expression):
            if not callable(timestamp_assigner):
                raise TypeError(
                    "A timestamp assigner must be a TimestampAssigner or a function, got "
                    f"{timestamp_assigner!r}."
                )
            timestamp_assigner = FunctionTimestampAssigner(timestamp_assigner)
        self.timestamp_assigner = timestamp_assigner
        return self

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Return a strategy that ignores inputs without events.

        Args:
            idle_timeout: The time without events after which the combined watermark no longer waits
                for an input.

        Raises:
            ValueError: The time is not longer than zero.
        """
        if idle_timeout <= Duration(0):
            raise ValueError("The idle timeout must be greater than zero.")
        return replace(self, idle_timeout=idle_timeout)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration,
        update_interval: Duration | None = None,
    ) -> WatermarkStrategy:
        """Return a strategy whose sources pause when they are ahead of their group.

        Args:
            watermark_group: The name of the group. All sources of a group wait for each other.
            max_allowed_watermark_drift: The largest distance to the slowest source.
            update_interval: The interval between two comparisons. The default is one second.

        Raises:
            ValueError: The distance is negative.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        ...     "orders", Duration.of_seconds(10)
        ... )
        >>> strategy.alignment.watermark_group, strategy.alignment.update_interval
        ('orders', Duration.of_millis(1000))
        """
        if max_allowed_watermark_drift < Duration(0):
            raise ValueError("The allowed drift must not be negative.")
        interval = update_interval or Duration.of_millis(1000)
        return replace(
            self,
            alignment=WatermarkAlignment(watermark_group, max_allowed_watermark_drift, interval),
        )

    @public_evolving
    def with_max_future_drift(self, max_future_drift: Duration) -> WatermarkStrategy:
        """Return a strategy that ignores timestamps in the far future. Not in PyFlink.

        An event with such a timestamp keeps it, but the watermark does not follow. So one wrong
        clock does not make all other events late.

        Args:
            max_future_drift: The largest distance of a timestamp from the clock.

        Raises:
            ValueError: The distance is negative.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps()
        >>> strategy.with_max_future_drift(Duration.of_hours(1)).max_future_drift
        Duration.of_millis(3600000)
        """
        if max_future_drift < Duration(0):
            raise ValueError("The bound of future timestamps must not be negative.")
        return replace(self, max_future_drift=max_future_drift)


class FunctionTimestampAssigner(TimestampAssigner):
    """Makes a TimestampAssigner from a function."""

    def __init__(self, function: Callable[[Any, int], int]) -> None:
        self.function = function

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.function(value, record_timestamp)


if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
