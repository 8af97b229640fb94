"""Time as a process function sees it, and its timers."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["TimerService"]


class TimerService(ABC):
    """The current times, and timers of the current key.

    A timer calls ``on_timer`` of the function with the key that it was registered for. Two timers of
    the same key, time domain and time are one.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The wall clock in milliseconds since 1970."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The event time in milliseconds up to which everything has come (lowest long: none)."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call back when the wall clock has reached ``timestamp`` (milliseconds since 1970)."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call back when the watermark has reached ``timestamp``."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget a timer, if there is one for this time."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget a timer, if there is one for this time."""
