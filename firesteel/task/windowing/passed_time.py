"""What a window operator knows about the time that has passed, also after a restart that forgot the watermark.

A restart within a job brings the watermark back. A savepoint that is resumed does not: the watermark starts over,
as in Flink. Windows that fired do not fire again then, unless a record is added to them; windows that were over
are gone, and a record makes a new one.
"""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ListStateDescriptor
from firesteel.task.operators.base import OperatorContext
from firesteel.task.watermarks import MIN_WATERMARK


class PassedTime:
    """``fired_until``: the highest watermark ever. ``saved``: the watermark of the snapshot restored."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self.fired_until = MIN_WATERMARK
        self.saved = MIN_WATERMARK

    def advance(self, watermark: int) -> None:
        self.fired_until = max(self.fired_until, watermark)

    def load(self) -> None:
        # All subtasks had the same watermark, because all had the same channels.
        pairs = self._state().get()
        self.fired_until = min((pair[0] for pair in pairs), default=MIN_WATERMARK)
        self.saved = min((pair[1] for pair in pairs), default=MIN_WATERMARK)

    def save(self) -> None:
        now = (self.fired_until, self._context.clock.watermark)
        if [now] != self._state().get():
            self._state().update([now])

    def _state(self) -> Any:
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        return self._context.operator_state.get_union_list_state(
            ListStateDescriptor("window-watermark", pair)
        )
