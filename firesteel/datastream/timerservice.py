"""Time as a process function sees it, and its timers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn

from firesteel.errors import NotYetSupportedError

__all__ = ["TimerService"]


def _no_timers_yet(method: str) -> NoReturn:
    raise NotYetSupportedError(
        f"TimerService.{method}",
        "timers are part of keyed state, which comes with checkpoints in a later version",
    )


class TimerService(ABC):
    """The current times. Timers follow in a later version."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The wall clock in milliseconds since 1970."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The event time in milliseconds up to which everything has come (lowest long: none)."""

    def register_processing_time_timer(self, timestamp: int) -> None:
        _no_timers_yet("register_processing_time_timer")

    def register_event_time_timer(self, timestamp: int) -> None:
        _no_timers_yet("register_event_time_timer")

    def delete_processing_time_timer(self, timestamp: int) -> None:
        _no_timers_yet("delete_processing_time_timer")

    def delete_event_time_timer(self, timestamp: int) -> None:
        _no_timers_yet("delete_event_time_timer")
