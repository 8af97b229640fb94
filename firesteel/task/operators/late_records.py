"""Late records of windows and interval joins: to a side output, or counted and dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ListStateDescriptor
from firesteel.metrics import Counter
from firesteel.task.operators.base import OperatorContext, Output
from firesteel.task.record_batch import RecordBatch

LATE_RECORDS_DROPPED = "numLateRecordsDropped"


class LateRecords:
    """Emits or counts late records. The count is operator state, so retries do not change it."""

    def __init__(
        self, tag_ids: Sequence[str | None], context: OperatorContext, output: Output
    ) -> None:
        """Create it. ``tag_ids`` has the side output of each input, or None to drop its records."""
        self._tag_ids = tag_ids
        self._context = context
        self._output = output
        group = context.metrics.group(context.node.name)
        self._counter: Counter = group.counter(LATE_RECORDS_DROPPED)
        self._saved = 0

    def add(self, batch: RecordBatch, side: int = 0) -> None:
        tag_id = self._tag_ids[side]
        if tag_id is None:
            self._counter.inc(len(batch))
        else:
            self._output.emit_side(tag_id, batch)

    def load(self) -> None:
        """Read the count. After rescaling, one subtask may get those of several."""
        self._saved = sum(self._state().get())
        self._counter.inc(self._saved - self._counter.get_count())

    def save(self) -> None:
        count = self._counter.get_count()
        if count != self._saved:
            self._saved = count
            self._state().update([count])

    def _state(self) -> Any:
        descriptor = ListStateDescriptor(LATE_RECORDS_DROPPED, Types.LONG())
        return self._context.operator_state.get_list_state(descriptor)
