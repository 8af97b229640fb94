"""Numbers and times formatted as in Java."""

from __future__ import annotations

import math
import struct
from datetime import datetime
from decimal import Decimal

from firesteel.common.time import Instant

__all__ = ["java_double", "java_float", "java_instant", "java_timestamp"]

_FLOAT = struct.Struct("f")


def java_double(value: float) -> str:
    """Format a number like ``Double.toString``.

    >>> java_double(1e10), java_double(0.1), java_double(100.0)
    ('1.0E10', '0.1', '100.0')
    """
    return _not_finite(value) or _java_notation(Decimal(repr(float(value))))


def java_float(value: float) -> str:
    """Format a number like ``Float.toString``, with the fewest digits that identify 32 bits."""
    text = _not_finite(value)
    if text:
        return text
    try:
        packed = _FLOAT.pack(value)
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"
    single = _FLOAT.unpack(packed)[0]
    for precision in range(1, 10):
        text = format(single, f".{precision}g")
        if _FLOAT.pack(float(text)) == packed:
            break
    return _java_notation(Decimal(text))


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return ""


def _java_notation(number: Decimal) -> str:
    sign, digit_tuple, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # finite numbers only
    digits = "".join(map(str, digit_tuple)).rstrip("0")
    point = len(digit_tuple) + exponent  # digits before the decimal point
    minus = "-" if sign else ""
    if not digits:
        return f"{minus}0.0"
    if -2 <= point <= 7:  # 10^-3 <= |value| < 10^7
        whole = digits[:point].ljust(point, "0") if point > 0 else "0"
        fraction = digits[point:] if point > 0 else "0" * -point + digits
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def java_instant(value: Instant) -> str:
    """Format an instant like ``Instant.toString``. The fraction has 0, 3, 6 or 9 digits."""
    days, second_of_day = divmod(value.seconds, 86_400)
    year, month, day = _civil_date(days)
    hour, rest = divmod(second_of_day, 3600)
    minute, second = divmod(rest, 60)
    fraction = ""
    if value.nanos:
        fraction = f".{value.nanos:09d}"
        while fraction.endswith("000"):
            fraction = fraction[:-3]
    return f"{_year(year)}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}Z"


def _year(year: int) -> str:
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"{'-' if year < 0 else '+'}{abs(year):04d}"


def _civil_date(epoch_day: int) -> tuple[int, int, int]:
    """Return the Gregorian date of a day number. Instants may exceed the range of datetime.

    The algorithm uses eras of 400 years. Its years start in March, so the leap day is the last day.
    """
    era, day_of_era = divmod(epoch_day + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * march_month + 2) // 5 + 1
    month = march_month + 3 if march_month < 10 else march_month - 9
    year = era * 400 + year_of_era + (1 if month <= 2 else 0)
    return year, month, day


def java_timestamp(value: datetime) -> str:
    """Format a time like ``java.sql.Timestamp.toString``."""
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return (
        f"{value.year:04d}-{value.month:02d}-{value.day:02d} "
        f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}.{fraction}"
    )
