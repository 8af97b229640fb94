"""The tail of a loop: keeps the epoch's records for the head."""

from __future__ import annotations

import logging
from typing import Any

from firesteel.graph.operator_specs import IterationTailSpec
from firesteel.state.changelog import SegmentStore
from firesteel.state.key_groups import KeyGroupRange
from firesteel.task.feedback import Timestamps, keys_of, write_feedback
from firesteel.task.messages import Feedback
from firesteel.task.operators.base import Operator, OperatorContext

_log = logging.getLogger("firesteel")


class IterationTailOperator(Operator):
    """Watermarks end here, as in Flink: a loop that waited for its own would never go on."""

    def __init__(self, spec: IterationTailSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._values: list[Any] = []
        self._timestamps: Timestamps | None = None

    def restore(self, whole: Any) -> None:
        """What is to come back is the head's business; an attempt that broke off leaves nothing."""
        self.take()

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        if timestamps is not None or self._timestamps is not None:
            if self._timestamps is None:
                self._timestamps = [None] * len(self._values)
            self._timestamps += [None] * len(values) if timestamps is None else timestamps
        self._values += values

    def take(self) -> tuple[list[Any], Timestamps | None]:
        """The records, which are somebody else's from now on."""
        taken = self._values, self._timestamps
        self._values, self._timestamps = [], None
        return taken

    def report(self, epoch: int, store: SegmentStore, *, finished: bool) -> Feedback:
        values, timestamps = self.take()
        if finished and values:
            _log.warning(
                "'%s': the loop has ended, so %d records that its operators emitted when they "
                "finished go nowhere",
                self.name,
                len(values),
            )
            return Feedback(0)
        node = self.context.node
        key_groups = KeyGroupRange.of_subtask(
            self.context.subtask.index, node.parallelism, node.max_parallelism
        )
        keys = keys_of(key_groups, node.max_parallelism)
        return Feedback(len(values), write_feedback(values, timestamps, keys, epoch, store))
