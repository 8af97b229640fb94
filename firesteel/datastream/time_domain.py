"""The clocks that a timer can follow."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeDomain"]


class TimeDomain(Enum):
    """The clock that a timer follows: event time or processing time.

    >>> class Which(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(value)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.time_domain() is TimeDomain.EVENT_TIME
    >>> numbers = env.from_collection([1]).key_by(lambda number: number)
    >>> list(numbers.process(Which()).execute_and_collect())
    [True]
    """

    EVENT_TIME = 0
    PROCESSING_TIME = 1
