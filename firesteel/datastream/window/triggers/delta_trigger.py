"""Fires when a record differs enough from the one it fired for last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window.trigger import Trigger, TriggerResult
from firesteel.errors import InvalidProgramError, shorten


class DeltaTrigger(Trigger[Any, Any]):
    """``delta_function(last, new)`` says how much two records differ. Not in PyFlink.

    >>> DeltaTrigger.of(5.0, lambda last, new: new - last)
    DeltaTrigger(5.0)
    """

    def __init__(
        self,
        threshold: float,
        delta_function: Callable[[Any, Any], float],
        type_info: TypeInformation | None = None,
    ) -> None:
        if not callable(delta_function):
            raise InvalidProgramError(
                f"The delta function must be callable, but it is {shorten(delta_function)}."
            )
        self._threshold = threshold
        self._delta = delta_function
        self._last_descriptor = ValueStateDescriptor(
            "last-element", type_info or Types.PICKLED_BYTE_ARRAY()
        )

    @staticmethod
    def of(
        threshold: float,
        delta_function: Callable[[Any, Any], float],
        type_info: TypeInformation | None = None,
    ) -> DeltaTrigger:
        return DeltaTrigger(threshold, delta_function, type_info)

    def on_element(
        self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        state: Any = ctx.get_partitioned_state(self._last_descriptor)
        last = state.value()
        if last is None:
            state.update(element)
            return TriggerResult.CONTINUE
        if self._delta(last, element) > self._threshold:
            state.update(element)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        raise NotImplementedError("two last records cannot become one: can_merge() says so")

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last_descriptor).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self._threshold})"
