"""Duration, Instant and Time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from firesteel.stability import public_evolving

__all__ = ["Duration", "Instant", "Time"]

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """An amount of time, exact to the nanosecond.

    >>> Duration.of_seconds(2)
    Duration.of_millis(2000)
    >>> Duration.of_minutes(1) > Duration.of_seconds(59)
    True
    """

    nanos: int

    @staticmethod
    def of_days(days: int) -> Duration:
        """Return a duration of days of 24 hours.

        >>> Duration.of_days(1) == Duration.of_hours(24)
        True
        """
        return Duration.of_hours(days * 24)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Return a duration of hours.

        >>> Duration.of_hours(1) == Duration.of_minutes(60)
        True
        """
        return Duration.of_minutes(hours * 60)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Return a duration of minutes.

        >>> Duration.of_minutes(1) == Duration.of_seconds(60)
        True
        """
        return Duration.of_seconds(minutes * 60)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """Return a duration of seconds.

        >>> Duration.of_seconds(1) == Duration.of_millis(1000)
        True
        """
        return Duration(seconds * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Return a duration of milliseconds.

        >>> Duration.of_millis(1) == Duration.of_nanos(1_000_000)
        True
        """
        return Duration(millis * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Return a duration of nanoseconds.

        >>> Duration.of_nanos(5)
        Duration.of_nanos(5)
        """
        return Duration(nanos)

    @staticmethod
    @public_evolving
    def of_timedelta(delta: timedelta) -> Duration:
        """Convert a timedelta of the standard library. Not in PyFlink.

        >>> from datetime import timedelta
        >>> Duration.of_timedelta(timedelta(seconds=1.5))
        Duration.of_millis(1500)
        """
        return Duration(delta // timedelta(microseconds=1) * 1000)

    @public_evolving
    def to_millis(self) -> int:
        """Return whole milliseconds, rounded toward negative infinity as in Java. Not in PyFlink.

        >>> Duration.of_nanos(1_999_999).to_millis()
        1
        """
        return self.nanos // _NANOS_PER_MILLI

    @public_evolving
    def to_nanos(self) -> int:
        """Return nanoseconds. Not in PyFlink.

        >>> Duration.of_millis(2).to_nanos()
        2000000
        """
        return self.nanos

    @public_evolving
    def to_timedelta(self) -> timedelta:
        """Convert to a timedelta of the standard library, which has microseconds. Not in PyFlink.

        >>> Duration.of_minutes(2).to_timedelta()
        datetime.timedelta(seconds=120)
        """
        return timedelta(microseconds=self.nanos // 1000)

    def __repr__(self) -> str:
        if self.nanos % _NANOS_PER_MILLI:
            return f"Duration.of_nanos({self.nanos})"
        return f"Duration.of_millis({self.to_millis()})"


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Instant:
    """A point in time, exact to the nanosecond.

    Args:
        seconds: Seconds since 1970-01-01T00:00:00Z.
        nanos: Nanoseconds within the second.

    >>> Instant(1, 500_000_000).to_epoch_milli()
    1500
    >>> Types.INSTANT().to_java_string(Instant(0, 0))
    '1970-01-01T00:00:00Z'
    """

    seconds: int
    nanos: int

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Return the instant of a timestamp.

        Args:
            epoch_milli: Milliseconds since 1970-01-01T00:00:00Z.

        >>> Instant.of_epoch_milli(1500)
        Instant<1, 500000000>
        """
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def to_epoch_milli(self) -> int:
        """Return milliseconds since 1970-01-01T00:00:00Z."""
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


class Time:
    """A length of time in milliseconds, for windows.

    >>> events = [("a", 1000), ("b", 3000), ("c", 7000)]
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda event, timestamp: event[1]
    ... )
    >>> stream = env.from_collection(events).assign_timestamps_and_watermarks(strategy)
    >>> windows = stream.map(lambda event: event[0]).key_by(lambda name: 0).window(
    ...     TumblingEventTimeWindows.of(Time.seconds(5))
    ... )
    >>> list(windows.reduce(lambda first, second: first + second).execute_and_collect())
    ['ab', 'c']
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        """Return milliseconds.

        >>> Time.seconds(2).to_milliseconds()
        2000
        """
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Return a length of milliseconds.

        >>> print(Time.milliseconds(250))
        250 ms
        """
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Return a length of seconds.

        >>> print(Time.seconds(5))
        5000 ms
        """
        return Time(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Return a length of minutes.

        >>> Time.minutes(1) == Time.seconds(60)
        True
        """
        return Time.seconds(minutes * 60)

    @staticmethod
    def hours(hours: int) -> Time:
        """Return a length of hours.

        >>> Time.hours(1) == Time.minutes(60)
        True
        """
        return Time.minutes(hours * 60)

    @staticmethod
    def days(days: int) -> Time:
        """Return a length of days of 24 hours.

        >>> Time.days(1) == Time.hours(24)
        True
        """
        return Time.hours(days * 24)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __repr__(self) -> str:
        return f"Time({self._milliseconds})"

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"
