"""Dates, times and instants."""

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
    """INSTANT: a point on the time line, exact to the nanosecond; None is a value of its own."""

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
    """The common base of the three java.sql types."""

    __slots__ = ()

    @staticmethod
    def DATE() -> DateTypeInfo:
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
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
    """SQL_DATE. A datetime loses its time of day."""

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
    """SQL_TIME. As in PyFlink: whole milliseconds, and the time zone is dropped."""

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
        return pa.time64("ns")  # the only one that Spark takes


class TimestampTypeInfo(SqlTimeTypeInfo):
    """SQL_TIMESTAMP. As in PyFlink: whole milliseconds, and the time zone is dropped.

    Unlike PyFlink's coder, instants before 1970 and after 2038 come through unharmed.
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
    """Whether no value has a time zone or a fraction of a millisecond."""
    if set(map(_tzinfo, values)) != {None}:
        return False
    return not any(micros % 1000 for micros in set(map(_microsecond, values)))


def _local_offset_at_epoch() -> dt.timedelta:
    return dt.timedelta(seconds=clock.localtime(0).tm_gmtoff)
