"""Bucket assigners, and the date patterns of bucket names."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from firesteel.connectors.base import WriteContext
from firesteel.stability import public_evolving


class BucketAssigner(ABC):
    """Chooses the bucket of each record, a directory below the base path of a FileSink.

    Derive from it for a rule of your own.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
    >>> class ByFirstLetter(BucketAssigner):
    ...     def get_bucket_id(self, element, context):
    ...         return f"letter={element[0]}"
    >>> builder = FileSink.for_row_format("out", Encoder.simple_string_encoder())
    >>> sink = builder.with_bucket_assigner(ByFirstLetter()).build()
    >>> stream = env.from_collection(["be", "not", "be"], Types.STRING()).sink_to(sink)
    >>> result = env.execute()
    >>> sorted(path.name for path in Path("out").iterdir())
    ['letter=b', 'letter=n']
    """

    #: False if the bucket does not depend on the record. Then one call serves a whole batch.
    depends_on_element: bool = True

    @abstractmethod
    @public_evolving
    def get_bucket_id(self, element: Any, context: WriteContext) -> str:
        """Return the bucket of a record. Not in PyFlink.

        Args:
            element: The record.
            context: The times of the record.

        Returns:
            A relative path. The empty text is the base path.
        """

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Return an assigner that puts all files into the base path.

        >>> from firesteel.datastream.connectors.base import WriteContext
        >>> from firesteel.datastream.connectors.file_system import BucketAssigner
        >>> BucketAssigner.base_path_bucket_assigner().get_bucket_id("be", WriteContext())
        ''
        """
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """Return an assigner that names buckets by processing time.

        Args:
            format_str: A pattern of Java's ``DateTimeFormatter``.
            timezone_id: A time zone, such as ``Europe/Berlin`` or ``GMT-08:00``. The default is the
                zone of the system.

        >>> from firesteel.datastream.connectors.base import WriteContext
        >>> from firesteel.datastream.connectors.file_system import BucketAssigner
        >>> hourly = BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH", "UTC")
        >>> hourly.get_bucket_id("be", WriteContext())
        '1970-01-01--00'
        """
        return DateTimeBucketAssigner(format_str, timezone_id)


class BasePathBucketAssigner(BucketAssigner):
    depends_on_element = False

    def get_bucket_id(self, element: Any, context: WriteContext) -> str:
        return ""


class DateTimeBucketAssigner(BucketAssigner):
    depends_on_element = False

    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        self._format_str = format_str
        self._timezone_id = timezone_id
        self._pattern = DatePattern(format_str)
        self._zone = time_zone(timezone_id)

    def get_bucket_id(self, element: Any, context: WriteContext) -> str:
        seconds = context.current_processing_time() / 1000
        # None is the zone of the system, like Java's default zone.
        return self._pattern.format(datetime.fromtimestamp(seconds, self._zone))

    def __reduce__(self) -> tuple[Any, ...]:
        return DateTimeBucketAssigner, (self._format_str, self._timezone_id)


_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z']+)")
_OFFSET = re.compile(r"^(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?$")
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

_NUMBERS: dict[str, Callable[[datetime], int]] = {
    "y": lambda time: time.year,
    "u": lambda time: time.year,
    "M": lambda time: time.month,
    "L": lambda time: time.month,
    "d": lambda time: time.day,
    "D": lambda time: time.timetuple().tm_yday,
    "H": lambda time: time.hour,
    "k": lambda time: time.hour or 24,
    "K": lambda time: time.hour % 12,
    "h": lambda time: time.hour % 12 or 12,
    "m": lambda time: time.minute,
    "s": lambda time: time.second,
}


class DatePattern:
    """Formats a time as Java does with the same pattern, in English.

    >>> from datetime import datetime
    >>> DatePattern("yyyy-MM-dd--HH").format(datetime(2024, 3, 9, 7, 5))
    '2024-03-09--07'
    >>> DatePattern("'dt='yyyyMMdd/'hour='HH").format(datetime(2024, 3, 9, 7, 5))
    'dt=20240309/hour=07'
    """

    def __init__(self, pattern: str) -> None:
        self._parts: list[Callable[[datetime], str]] = []
        end = 0
        for token in _TOKEN.finditer(pattern):
            if token.start() != end:
                break
            end = token.end()
            self._parts.append(_part(pattern, token))
        if end != len(pattern):
            raise ValueError(f"The date pattern {pattern!r} has a quote that is not closed")

    def format(self, time: datetime) -> str:
        return "".join(part(time) for part in self._parts)


def time_zone(timezone_id: str | None) -> tzinfo | None:
    """Return a zone by the names of Java's ``ZoneId.of``: a region, an offset, or ``GMT+2``.

    None is the zone of the system.
    """
    if timezone_id is None:
        return None
    if timezone_id in {"Z", "UTC", "GMT", "UT"}:
        return UTC
    offset = _OFFSET.match(timezone_id)
    if offset:
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))
    try:
        return ZoneInfo(timezone_id)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(
            f"Unknown time zone {timezone_id!r}: use a name such as 'Europe/Berlin' or 'GMT-08:00'"
        ) from None


def _part(pattern: str, token: re.Match[str]) -> Callable[[datetime], str]:
    text = token[0]
    letter = token[2]
    if letter is None:
        literal = text if token[1] is None else (token[1].replace("''", "'") or "'")
        return lambda time: literal
    width = len(text)
    if letter in "yu" and width == 2:
        return lambda time: f"{time.year % 100:02}"
    if letter in "ML" and width >= 3:
        return _name(_MONTHS, lambda time: time.month - 1, width)
    if letter == "E":
        return _name(_DAYS, datetime.weekday, width)
    if letter == "a":
        return lambda time: "AM" if time.hour < 12 else "PM"
    if letter == "S":
        return lambda time: f"{time.microsecond:06}".ljust(width, "0")[:width]
    number = _NUMBERS.get(letter)
    if number is None:
        raise ValueError(
            f"The letter {letter!r} in the date pattern {pattern!r} is not supported; put text "
            "between single quotes"
        )
    return lambda time: f"{number(time):0{width}}"


def _name(
    names: list[str], index: Callable[[datetime], int], width: int
) -> Callable[[datetime], str]:
    length = {4: None, 5: 1}.get(width, 3)
    return lambda time: names[index(time)][:length]
