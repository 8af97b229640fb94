"""The timestamps of a batch: the user's assigner, the clock, or what the records have."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import repeat
from typing import Any

from firesteel.common.watermark_strategy import (
    FunctionTimestampAssigner,
    IngestionTime,
    WatermarkStrategy,
)
from firesteel.errors import FiresteelError, shorten
from firesteel.task.errors import user_function_error
from firesteel.task.watermarks import MIN_WATERMARK

Assign = Callable[[list[Any], list[int] | None], list[int] | None]


class AscendingClock:
    """A clock that stands still while the machine's goes back: event time must not."""

    __slots__ = ("_now_millis", "newest")

    def __init__(self, now_millis: Callable[[], int]) -> None:
        self._now_millis = now_millis
        self.newest = MIN_WATERMARK

    def __call__(self) -> int:
        self.newest = max(self.newest, self._now_millis())
        return self.newest


class BadTimestampError(FiresteelError, TypeError):
    """A timestamp assigner answered with something that is no time."""


def create_assigner(
    strategy: WatermarkStrategy, operator: str, now_millis: AscendingClock
) -> Assign:
    """A function from values and the timestamps that they have to those that they get."""
    if isinstance(strategy.generator, IngestionTime):
        return lambda values, _: [now_millis()] * len(values)
    assigner = strategy.timestamp_assigner
    if assigner is None:
        return lambda _, timestamps: timestamps
    # A plain function is called directly, without the object around it.
    extract = (
        assigner.function
        if isinstance(assigner, FunctionTimestampAssigner)
        else assigner.extract_timestamp
    )

    def assign(values: list[Any], timestamps: list[int] | None) -> list[int]:
        iterator = iter(values)
        former = repeat(MIN_WATERMARK) if timestamps is None else timestamps
        try:
            assigned = [
                extract(value, timestamp)
                for value, timestamp in zip(iterator, former, strict=False)
            ]
        except Exception as error:
            raise user_function_error(error, operator, extract, values, iterator) from error
        try:
            # Nothing looks at single timestamps as fast as this, and it takes only 64-bit integers.
            array("q", assigned)
        except (TypeError, OverflowError) as error:
            raise _bad(assigned, values, operator, extract) from error
        return assigned

    return assign


def _bad(
    assigned: list[Any], values: list[Any], operator: str, extract: Callable[..., Any]
) -> FiresteelError:
    for timestamp, value in zip(assigned, values, strict=True):
        try:
            array("q", [timestamp])
        except (TypeError, OverflowError):
            name = getattr(extract, "__qualname__", type(extract).__qualname__)
            return BadTimestampError(
                f"{operator}: the timestamp assigner {name} answered {shorten(timestamp)} for the "
                f"record {shorten(value)}; a timestamp is an int, in milliseconds since 1970"
            )
    raise AssertionError("one of them was refused")
