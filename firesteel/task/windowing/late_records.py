"""Records that came too late for all of their windows: to a side output, or counted and dropped."""

from __future__ import annotations

from typing import Any

from firesteel.metrics import Counter
from firesteel.task.operators.base import OperatorContext, Output

LATE_RECORDS_DROPPED = "numLateRecordsDropped"


class LateRecords:
    """The count is part of the operator's state, so it stays right when an epoch runs again."""

    def __init__(self, tag_id: str | None, context: OperatorContext, output: Output) -> None:
        self._tag_id = tag_id
        self._output = output
        group = context.metrics.group(context.node.name)
        self._counter: Counter = group.counter(LATE_RECORDS_DROPPED)

    def add(self, values: list[Any], timestamps: list[int] | None) -> None:
        if self._tag_id is None:
            self._counter.inc(len(values))
        else:
            self._output.emit_side(self._tag_id, values, timestamps)

    @property
    def dropped(self) -> int:
        return self._counter.get_count()

    def restore(self, dropped: int) -> None:
        self._counter.inc(dropped - self._counter.get_count())
