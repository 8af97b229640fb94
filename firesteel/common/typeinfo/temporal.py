"""Types of dates, times and instants."""

from __future__ import annotations

import datetime as dt
import time as clock
from operator import attrgetter
from typing import Any

import pyarrow as pa

from firesteel.common.time import Instant
from firesteel.common.typeinfo.base import TypeInformation
from firesteel.common.typeinfo.basic import BasicType, BasicTypeInfo
from firesteel.common.typeinfo.java_text import java_instant, java_timestamp

__all__ = [
    "DateTypeInfo",
    "InstantTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
]

_EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()
_MICROS = 1_000_000
_microsecond = attrgetter("microsecond")
_tzinfo = attrgetter("tzinfo")


class InstantTypeInfo(BasicTypeInfo):
    """A point in time, exact to the nanosecond, or None.

    >>> Types.INSTANT().convert_batch([Instant(1, 5), None])
    [Instant<1, 5>, None]
    """

    __slots__ = ()

    _accepts_none = True

    def __init__(self, basic_type: BasicType = BasicType.INSTANT) -> None:
        super().__init__(basic_type)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else obj.to_epoch_milli() * 1000

    def from_internal_type(self, obj: Any) -> Any:
        return None if obj is None else Instant.of_epoch_milli(obj // 1000)

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds != {Instant}:
            for value in values:
                if not isinstance(value, Instant):
                    raise self._unexpected(value, "Instant")
        return values

    def to_java_string(self, value: Any) -> str:
        return java_instant(value)


class SqlTimeTypeInfo(TypeInformation):
    """Base class of the types of SQL dates, times and timestamps.

    >>> SqlTimeTypeInfo.DATE(), SqlTimeTypeInfo.TIME(), SqlTimeTypeInfo.TIMESTAMP()
    (DateTypeInfo, TimeTypeInfo, TimestampTypeInfo)
    """

    __slots__ = ()

    @staticmethod
    def DATE() -> DateTypeInfo:
        """Return the type of ``Types.SQL_DATE()``."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """Return the type of ``Types.SQL_TIME()``."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """Return the type of ``Types.SQL_TIMESTAMP()``."""
        return TimestampTypeInfo()

    def need_conversion(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return type(self).__name__


class DateTypeInfo(SqlTimeTypeInfo):
    """A date. A datetime loses its time of day.

    >>> from datetime import datetime
    >>> Types.SQL_DATE().convert_batch([datetime(2024, 3, 9, 7, 5)])
    [datetime.date(2024, 3, 9)]
    """

    __slots__ = ()

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else obj.toordinal() - _EPOCH_ORDINAL

    def from_internal_type(self, obj: Any) -> Any:
        return None if obj is None else dt.date.fromordinal(obj + _EPOCH_ORDINAL)

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds == {dt.date}:
            return values
        return [self._one(value) for value in values]

    def _one(self, value: Any) -> dt.date:
        if not isinstance(value, dt.date):
            raise self._unexpected(value, "datetime.date")
        return dt.date(value.year, value.month, value.day)

    def to_java_string(self, value: Any) -> str:
        return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"

    def to_arrow_type(self) -> pa.DataType:
        return pa.date32()


class TimeTypeInfo(SqlTimeTypeInfo):
    """A time of day. As in PyFlink, it has whole milliseconds and no time zone.

    >>> from datetime import time
    >>> Types.SQL_TIME().convert_batch([time(7, 5, 0, 123456)])
    [datetime.time(7, 5, 0, 123000)]
    """

    __slots__ = ()

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        offset = obj.utcoffset()
        shift = _local_offset_at_epoch() if offset is None else offset
        since_midnight = dt.timedelta(
            hours=obj.hour, minutes=obj.minute, seconds=obj.second, microseconds=obj.microsecond
        )
        return (since_midnight - shift) // dt.timedelta(microseconds=1)

    def from_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        local = obj + _local_offset_at_epoch() // dt.timedelta(microseconds=1)
        seconds, micros = divmod(local, _MICROS)
        minutes, second = divmod(seconds, 60)
        hours, minute = divmod(minutes, 60)
        return dt.time(hours % 24, minute, second, micros)

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds == {dt.time} and _is_plain(values):
            return values
        return [self._one(value) for value in values]

    def _one(self, value: Any) -> dt.time:
        if not isinstance(value, dt.time | dt.datetime):
            raise self._unexpected(value, "datetime.time")
        millis = value.microsecond // 1000
        return dt.time(value.hour, value.minute, value.second, millis * 1000)

    def to_java_string(self, value: Any) -> str:
        return f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"

    def to_arrow_type(self) -> pa.DataType:
        return pa.time64("ns")  # the only time type that Spark accepts


class TimestampTypeInfo(SqlTimeTypeInfo):
    """A date and a time. As in PyFlink, it has whole milliseconds and no time zone.

    Unlike PyFlink's coder, it supports times before 1970 and after 2038.

    >>> from datetime import datetime
    >>> Types.SQL_TIMESTAMP().convert_batch([datetime(1969, 7, 20, 20, 17, 40, 123456)])
    [datetime.datetime(1969, 7, 20, 20, 17, 40, 123000)]
    """

    __slots__ = ()

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        whole = obj.replace(microsecond=0)
        seconds = int(whole.timestamp()) if obj.tzinfo else int(clock.mktime(obj.timetuple()))
        return seconds * _MICROS + obj.microsecond

    def from_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        seconds, micros = divmod(obj, _MICROS)
        local = dt.datetime.fromtimestamp(seconds)  # noqa: DTZ006  # SQL timestamps are local
        return local.replace(microsecond=micros)

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds == {dt.datetime} and _is_plain(values):
            return values
        return [self._one(value) for value in values]

    def _one(self, value: Any) -> dt.datetime:
        if not isinstance(value, dt.datetime):
            raise self._unexpected(value, "datetime.datetime")
        millis = value.microsecond // 1000
        return value.replace(microsecond=millis * 1000, tzinfo=None)

    def to_java_string(self, value: Any) -> str:
        return java_timestamp(value)

    def to_arrow_type(self) -> pa.DataType:
        return pa.timestamp("us")


def _is_plain(values: list[Any]) -> bool:
    """Return True if no value has a time zone or a fraction of a millisecond."""
    if set(map(_tzinfo, values)) != {None}:
        return False
    return not any(micros % 1000 for micros in set(map(_microsecond, values)))


def _local_offset_at_epoch() -> dt.timedelta:
    return dt.timedelta(seconds=clock.localtime(0).tm_gmtoff)
