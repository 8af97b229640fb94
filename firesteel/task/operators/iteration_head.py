"""The head of a loop: the input goes on, and so does what comes back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.graph.operator_specs import IterationHeadSpec
from firesteel.task.chunk_pacer import ChunkPacer
from firesteel.task.feedback import Timestamps, uniform_batches
from firesteel.task.messages import ReadBudget
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.iteration_tail import IterationTailOperator

Records = tuple[list[Any], Timestamps | None]


class IterationHeadOperator(Operator):
    """Watermarks are those of the input: none come back."""

    def __init__(self, spec: IterationHeadSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._feedback_only = spec.feedback_only
        self._pacer = ChunkPacer()
        # Tails in this very slot: their records need not wait for the next epoch.
        self.tails: list[IterationTailOperator] = []
        self.records_read = 0

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        if not self._feedback_only:
            self.output.emit(values, timestamps)

    def read_epoch(self, carried: Iterable[Records], budget: ReadBudget) -> Iterator[None]:
        """Emit what came back, chunk by chunk, pausing after each for the slot to send rows on.

        What tails in this slot have by then goes round again, as long as the budget lasts; what is
        left then is carried to the next epoch.
        """
        started = time.perf_counter()
        for records in carried:
            yield from self._emit(records)
        going = True
        while going:
            going = False
            for tail in self.tails:
                if time.perf_counter() - started >= budget.seconds:
                    return
                if self.records_read >= budget.records:
                    return
                records = tail.take()
                if records[0]:
                    going = True
                    yield from self._emit(records)

    def _emit(self, records: Records) -> Iterator[None]:
        pacer, emit = self._pacer, self.output.emit
        for values, timestamps in uniform_batches(*records):
            start = 0
            while start < len(values):
                stop = start + pacer.records
                began = time.perf_counter()
                emit(values[start:stop], timestamps and timestamps[start:stop])
                emitted = min(stop, len(values)) - start
                pacer.took(time.perf_counter() - began, emitted)
                self.records_read += emitted
                start = stop
                yield
