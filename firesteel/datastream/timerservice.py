"""The timer service of process functions."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["TimerService"]


class TimerService(ABC):
    """The clocks, and the timers of the current key.

    A timer calls ``on_timer`` of the function with the key that it was registered for. Two timers of
    the same key, clock and time are one.

    >>> class Timeout(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         timers = ctx.timer_service()
    ...         due = timers.current_processing_time() + 5_000
    ...         timers.register_processing_time_timer(due)
    ...         timers.register_processing_time_timer(due + 1)
    ...         timers.delete_processing_time_timer(due + 1)
    ...         if timers.current_watermark() < 10_000:
    ...             timers.register_event_time_timer(10_000)
    ...             timers.register_event_time_timer(20_000)
    ...             timers.delete_event_time_timer(20_000)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), ctx.time_domain().name
    >>> from firesteel.testing import Pause, ScriptedSource
    >>> source = ScriptedSource(["a", Pause(10), "a"])
    >>> letters = env.from_source(source, None, "letters").key_by(lambda letter: letter)
    >>> list(letters.process(Timeout()).execute_and_collect())
    [('a', 'PROCESSING_TIME'), ('a', 'EVENT_TIME')]
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the clock of the subtask, in milliseconds since 1970."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the watermark in milliseconds, or the smallest long before the first one.

        All records with a timestamp up to the watermark have come, except late ones.
        """

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a timer that is due when the clock reaches a time.

        Args:
            timestamp: Milliseconds since 1970.
        """

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Register a timer that is due when the watermark reaches a time.

        Args:
            timestamp: Event time in milliseconds.
        """

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a processing-time timer of the current key, if there is one.

        Args:
            timestamp: The time that it was registered for.
        """

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete an event-time timer of the current key, if there is one.

        Args:
            timestamp: The time that it was registered for.
        """
