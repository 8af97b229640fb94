"""Makes any trigger fire when the window has waited long enough, by the clock."""

from __future__ import annotations

from typing import Any

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window.arguments import to_millis
from firesteel.datastream.window.trigger import Trigger, TriggerResult
from firesteel.errors import InvalidProgramError, shorten


class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Fires when the nested trigger does, or so long after the first record since it last fired.

    Not in PyFlink. It cannot be used with windows that merge.

    >>> from firesteel.datastream.window import CountTrigger
    >>> ProcessingTimeoutTrigger.of(CountTrigger.of(100), Time.seconds(5))
    ProcessingTimeoutTrigger(CountTrigger(100), 5000)
    """

    def __init__(
        self,
        nested_trigger: Trigger[Any, Any],
        interval: int,
        reset_timer_on_new_record: bool,
        should_clear_on_timeout: bool,
    ) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise InvalidProgramError(
                f"A ProcessingTimeoutTrigger needs a Trigger, but got {shorten(nested_trigger)}."
            )
        if interval < 0:
            raise InvalidProgramError(
                f"The timeout of a ProcessingTimeoutTrigger must not be negative: {interval} ms."
            )
        self.nested_trigger = nested_trigger
        self.interval = interval
        self._resets = reset_timer_on_new_record
        self._clears = should_clear_on_timeout
        self._timeout_descriptor = ValueStateDescriptor("timeout", Types.LONG())

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Time | Duration,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """The timeout counts from the first record, or from the last one if each new one resets it.

        ``should_clear_on_timeout``: the nested trigger forgets then what it knew, such as a count.
        """
        return ProcessingTimeoutTrigger(
            nested_trigger,
            to_millis(timeout, "The timeout"),
            reset_timer_on_new_record,
            should_clear_on_timeout,
        )

    def on_element(
        self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        timeout: Any = ctx.get_partitioned_state(self._timeout_descriptor)
        due = timeout.value()
        if due is not None:
            if not self._resets:
                return result
            ctx.delete_processing_time_timer(due)
        due = ctx.get_current_processing_time() + self.interval
        timeout.update(due)
        ctx.register_processing_time_timer(due)
        return result

    def on_processing_time(
        self, time: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self._on_time(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._on_time(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def _on_time(
        self, result: TriggerResult, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """As in Flink, every timer of the window fires it, also one of the nested trigger."""
        if self._clears:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        raise NotImplementedError("timeouts do not merge: can_merge() says so")

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        timeout: Any = ctx.get_partitioned_state(self._timeout_descriptor)
        due = timeout.value()
        if due is not None:
            ctx.delete_processing_time_timer(due)
            timeout.clear()
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"ProcessingTimeoutTrigger({self.nested_trigger!r}, {self.interval})"
