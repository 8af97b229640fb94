"""Timers as a user's function sees them: those of the current key."""

from __future__ import annotations

from typing import Any, NoReturn

from firesteel.datastream.timerservice import TimerService
from firesteel.errors import InvalidProgramError, shorten
from firesteel.task.state.key_context import KeyContext
from firesteel.task.subtask_clock import SubtaskClock
from firesteel.task.timers import InternalTimerService


class KeyedTimerService(TimerService):
    def __init__(
        self, timers: InternalTimerService, key_context: KeyContext, clock: SubtaskClock
    ) -> None:
        self._timers = timers
        self._key_context = key_context
        self._clock = clock

    def current_processing_time(self) -> int:
        return self._clock.now_millis()

    def current_watermark(self) -> int:
        return self._clock.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._timers.register_processing_time_timer(self._key_context.key, None, _time(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        self._timers.register_event_time_timer(self._key_context.key, None, _time(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._timers.delete_processing_time_timer(self._key_context.key, None, _time(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._timers.delete_event_time_timer(self._key_context.key, None, _time(timestamp))


class UnkeyedTimerService(TimerService):
    """The times only: a timer needs a key."""

    def __init__(self, clock: SubtaskClock) -> None:
        self._clock = clock

    def current_processing_time(self) -> int:
        return self._clock.now_millis()

    def current_watermark(self) -> int:
        return self._clock.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        _refuse()

    def register_event_time_timer(self, timestamp: int) -> None:
        _refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        _refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        _refuse()


def _time(timestamp: Any) -> int:
    if isinstance(timestamp, int):
        return timestamp
    raise TypeError(
        f"the time of a timer is an int, in milliseconds since 1970, but got {shorten(timestamp)}"
    )


def _refuse() -> NoReturn:
    raise InvalidProgramError(
        "Setting timers is only supported on a keyed stream: call key_by() before the function"
    )
