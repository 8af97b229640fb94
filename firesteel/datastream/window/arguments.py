"""Lengths of time, and numbers of records, as windows take them."""

from __future__ import annotations

from firesteel.common.time import Duration, Time
from firesteel.errors import InvalidProgramError, shorten


def to_millis(length: Time | Duration, what: str) -> int:
    if isinstance(length, Time):
        return length.to_milliseconds()
    if isinstance(length, Duration):
        return length.to_millis()
    raise InvalidProgramError(
        f"{what} must be a Time or a Duration, for example Time.seconds(5), but it is "
        f"{shorten(length)}."
    )


def check_count(number: object, least: int, what: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InvalidProgramError(
            f"{what} must be a number of records, at least {least}, but it is {shorten(number)}."
        )
