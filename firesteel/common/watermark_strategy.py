"""How timestamps are assigned and watermarks generated: the description only.

The runtime reads the fields of WatermarkStrategy and builds generators from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.common.time import Duration
from firesteel.gaps import gap_importer

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
    """Takes an event's time from the event."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the event time of ``value`` in milliseconds since 1970-01-01 UTC.

        ``record_timestamp`` is the one it has so far, or the smallest long if it has none.
        """


class WatermarkOutput(Protocol):
    """Where a generator sends its watermarks."""

    def emit_watermark(self, timestamp: int) -> None:
        """Declare that no event at or before ``timestamp`` is still to come."""

    def mark_idle(self) -> None:
        """Let others not wait for this output."""

    def mark_active(self) -> None:
        """Take part again."""


class WatermarkGenerator(ABC):
    """Derive from it to generate watermarks your own way (beyond PyFlink).

    There is one for each subtask, or for each split of a source. What its fields hold is kept with
    the job's state if it can be pickled; otherwise a new process starts with a new generator.

    >>> class AtMarkers(WatermarkGenerator):
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event == "all before this has been sent":
    ...             output.emit_watermark(event_timestamp)
    ...     def on_periodic_emit(self, output):
    ...         pass
    >>> strategy = WatermarkStrategy.for_generator(AtMarkers)
    """

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """See one event; a punctuated generator emits here."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called on the auto-watermark interval; a periodic generator emits here."""


@dataclass(frozen=True, slots=True)
class NoWatermarks:
    """No watermarks at all."""


@dataclass(frozen=True, slots=True)
class MonotonousTimestamps:
    """Timestamps never go back: the watermark follows the newest one."""


@dataclass(frozen=True, slots=True)
class BoundedOutOfOrderness:
    """Events are late by at most ``max_out_of_orderness``."""

    max_out_of_orderness: Duration


@dataclass(frozen=True, slots=True)
class IngestionTime:
    """Events get the time at which they are read; the watermark follows the clock."""


@dataclass(frozen=True, slots=True)
class CustomGenerator:
    """One generator of the user's per subtask or split."""

    supplier: Callable[[], WatermarkGenerator]


@dataclass(frozen=True, slots=True)
class WatermarkAlignment:
    """Sources of a group wait for each other."""

    watermark_group: str
    max_allowed_watermark_drift: Duration
    update_interval: Duration = Duration.of_millis(1000)  # noqa: RUF009  # immutable


@dataclass(slots=True)
class WatermarkStrategy:
    """What a program says about event time.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
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
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout: Duration | None = None
    alignment: WatermarkAlignment | None = None
    max_future_drift: Duration | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """For timestamps that only ascend."""
        return WatermarkStrategy(MonotonousTimestamps())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """For events that are late by at most the given time."""
        if max_out_of_orderness < Duration(0):
            raise ValueError("The bound of out-of-orderness must not be negative.")
        return WatermarkStrategy(BoundedOutOfOrderness(max_out_of_orderness))

    @staticmethod
    def for_generator(supplier: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """For generators of your own; ``supplier`` makes one for each subtask or split."""
        return WatermarkStrategy(CustomGenerator(supplier))

    @staticmethod
    def ingestion_time() -> WatermarkStrategy:
        """For events whose time is when they enter the job. A replay gives them another time."""
        return WatermarkStrategy(IngestionTime())

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """For programs that only use processing time."""
        return WatermarkStrategy(NoWatermarks())

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]
    ) -> WatermarkStrategy:
        """Take timestamps from the events. A plain function will do, too.

        As in PyFlink this changes the strategy itself, and programs rely on that.
        """
        if isinstance(self.generator, IngestionTime):
            raise ValueError(  # noqa: TRY004 - what is wrong is the combination
                "With ingestion time the clock assigns timestamps, nothing else can."
            )
        if not isinstance(timestamp_assigner, TimestampAssigner):
            if not callable(timestamp_assigner):
                raise TypeError("A timestamp assigner is a TimestampAssigner or a function.")
            timestamp_assigner = FunctionTimestampAssigner(timestamp_assigner)
        self.timestamp_assigner = timestamp_assigner
        return self

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Return a strategy that no longer waits for inputs that are silent this long."""
        if idle_timeout <= Duration(0):
            raise ValueError("The idle timeout must be longer than zero.")
        return replace(self, idle_timeout=idle_timeout)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration,
        update_interval: Duration | None = None,
    ) -> WatermarkStrategy:
        """Return a strategy whose sources pause when they run ahead of their group."""
        if max_allowed_watermark_drift < Duration(0):
            raise ValueError("The allowed drift must not be negative.")
        interval = update_interval or Duration.of_millis(1000)
        return replace(
            self,
            alignment=WatermarkAlignment(watermark_group, max_allowed_watermark_drift, interval),
        )

    def with_max_future_drift(self, max_future_drift: Duration) -> WatermarkStrategy:
        """Return a strategy that does not believe timestamps further ahead of the clock than this.

        Such an event keeps its timestamp, but the watermark does not follow it: one broken clock
        must not make everything else late (beyond PyFlink).
        """
        if max_future_drift < Duration(0):
            raise ValueError("The bound of future timestamps must not be negative.")
        return replace(self, max_future_drift=max_future_drift)


class FunctionTimestampAssigner(TimestampAssigner):
    """Makes a TimestampAssigner of a function."""

    def __init__(self, function: Callable[[Any, int], int]) -> None:
        self.function = function

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.function(value, record_timestamp)


if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
