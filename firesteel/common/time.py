"""Duration, Instant and Time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Duration", "Instant", "Time"]

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """An amount of time, exact to the nanosecond.

    >>> Duration.of_seconds(2).to_millis()
    2000
    """

    nanos: int

    @staticmethod
    def of_days(days: int) -> Duration:
        return Duration.of_hours(days * 24)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        return Duration.of_minutes(hours * 60)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        return Duration.of_seconds(minutes * 60)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        return Duration(seconds * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        return Duration(millis * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        return Duration(nanos)

    @staticmethod
    def of_timedelta(delta: timedelta) -> Duration:
        """Convert from the standard library's type."""
        return Duration(delta // timedelta(microseconds=1) * 1000)

    def to_millis(self) -> int:
        """Whole milliseconds, rounded toward negative infinity as in Java."""
        return self.nanos // _NANOS_PER_MILLI

    def to_nanos(self) -> int:
        return self.nanos

    def to_timedelta(self) -> timedelta:
        return timedelta(microseconds=self.nanos // 1000)

    def __repr__(self) -> str:
        if self.nanos % _NANOS_PER_MILLI:
            return f"Duration.of_nanos({self.nanos})"
        return f"Duration.of_millis({self.to_millis()})"


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Instant:
    """A point in time: seconds since 1970-01-01T00:00:00Z, and nanoseconds within the second."""

    seconds: int
    nanos: int

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def to_epoch_milli(self) -> int:
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


class Time:
    """A time interval in milliseconds, as windows use it."""

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        return Time(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        return Time.seconds(minutes * 60)

    @staticmethod
    def hours(hours: int) -> Time:
        return Time.minutes(hours * 60)

    @staticmethod
    def days(days: int) -> Time:
        return Time.hours(days * 24)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __repr__(self) -> str:
        return f"Time({self._milliseconds})"

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"
