"""Sources: read the assigned splits, up to the epoch's budget."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.datastream.connectors.base import ReaderContext, SourceReader, SourceSplit
from firesteel.graph.operator_specs import SourceSpec
from firesteel.task.errors import user_function_error
from firesteel.task.messages import ReadBudget, SourceStatus
from firesteel.task.operators.base import Operator, OperatorContext

# Reading goes in chunks, so that a slow function behind the source cannot hold up an epoch: a
# chunk grows while it takes less than the time below, and shrinks when it takes more.
_FIRST_CHUNK = 64
_MAX_CHUNK = 4096
_CHUNK_SECONDS = 0.02


class SourceOperator(Operator):
    """Its state is the list of unfinished splits at their positions."""

    def __init__(self, spec: SourceSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._source = spec.source
        self._reader: SourceReader | None = None
        self._chunk = 1 if context.node.buffer_timeout == 0 else _FIRST_CHUNK
        self._may_grow = context.node.buffer_timeout != 0
        self._complete = False
        self._finished = False
        self.status: SourceStatus | None = None
        self.records_read = 0

    def restore(self, whole: Any) -> None:
        if self._reader is not None:
            self._reader.close()
        context = ReaderContext(self.context.subtask.index, self.context.node.parallelism)
        self._reader = self._source.create_reader(context)
        self._finished = False
        self._complete = False
        if whole is not None:
            splits, self._finished = whole
            if splits:
                self._reader.add_splits(splits)

    def snapshot(self) -> tuple[tuple[SourceSplit, ...], bool]:
        assert self._reader is not None
        return tuple(self._reader.snapshot_splits()), self._finished

    def add_splits(self, splits: Sequence[SourceSplit], *, complete: bool) -> None:
        assert self._reader is not None
        if splits:
            self._reader.add_splits(splits)
        self._complete = complete

    def read_epoch(self, budget: ReadBudget) -> Iterator[None]:
        """Read and emit chunk by chunk, pausing after each for the slot to send rows on."""
        reader = self._reader
        assert reader is not None
        left = 0 if self._finished else budget.records
        started = time.perf_counter()
        available = True
        while left > 0:
            chunk_started = time.perf_counter()
            if chunk_started - started >= budget.seconds:
                break
            try:
                values = reader.read(min(left, self._chunk))
            except Exception as error:
                raise user_function_error(error, self.name, reader.read, None, None) from error
            if not values:
                available = False
                break
            left -= len(values)
            self.records_read += len(values)
            self.output.emit(values, reader.timestamps())
            if self._may_grow:
                self._adapt_chunk(time.perf_counter() - chunk_started, len(values))
            yield
        unfinished = tuple(reader.snapshot_splits())
        ended = self._complete and not unfinished
        self.status = SourceStatus(
            splits=unfinished,
            available=available and not ended,
            delay=0.0 if available else reader.next_read_delay(),
            finished=ended,
        )
        self._finished = ended

    def _adapt_chunk(self, seconds: float, records: int) -> None:
        if seconds < _CHUNK_SECONDS / 2 and records == self._chunk:
            self._chunk = min(self._chunk * 2, _MAX_CHUNK)
        elif seconds > 2 * _CHUNK_SECONDS:
            self._chunk = max(1, int(self._chunk * _CHUNK_SECONDS / seconds))

    @property
    def finished(self) -> bool:
        return self._finished

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
