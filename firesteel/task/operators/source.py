"""Sources: read the assigned splits, up to the epoch's budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from firesteel.common.columns import ColumnLayout, ColumnsError, column_layout, reason_for_rows
from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.connectors.base import ReaderContext, SourceReader, SourceSplit
from firesteel.errors import shorten
from firesteel.graph.operator_specs import SourceSpec
from firesteel.metrics import Counter
from firesteel.protocol.messages import ReadBudget, SlotControl, SourceStatus
from firesteel.state.changelog import SegmentStore
from firesteel.task.capabilities import Ticking
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.exchange.input_gate import InputGate
from firesteel.task.head import SubtaskHead
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.timestamps_and_watermarks import create_stream_time
from firesteel.task.record_batch import RecordBatch
from firesteel.task.time.clock import ChunkPacer
from firesteel.task.time.stream_time import StreamTime
from firesteel.usercode.failures import USER_ERRORS, called, failed_function

# Large records are read, sent and freed before they leave a core's cache. Small records fill a
# chunk in less time.
_CHUNK_SECONDS = 0.001
# The metric of records that cannot be read, with Flink's name.
BROKEN_RECORDS = "numRecordsInErrors"
# A source that is ahead of its alignment group checks this often if it may continue.
_AHEAD_SECONDS = 0.02
# A source with nothing to read is asked at most this often if it has become idle.
_SILENCE_SECONDS = 0.005


class SourceOperator(Operator, Ticking):
    """Reads splits. Its state is the unfinished splits at their positions, and their watermarks.

    It reads in chunks, so that a slow function after the source delays neither the end of an epoch
    nor the watermarks.
    """

    def __init__(self, spec: SourceSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._source = spec.source
        # Sources of Firesteel declare the type of their records.
        self.checks_results = spec.checked
        self._reader: SourceReader | None = None
        # Made for the first columns.
        self._layout: ColumnLayout | None = None
        self._pacer = None if context.node.buffer_timeout == 0 else ChunkPacer(_CHUNK_SECONDS)
        strategy = spec.watermark_strategy
        self._time = None if strategy is None else create_stream_time(strategy, self)
        # The highest watermark that the alignment group allows.
        self._aligned_watermark = MAX_WATERMARK
        self._ahead = False
        self._paused: frozenset[str] = frozenset()
        self._broken: Counter | None = None
        self._complete = False
        # A split of this reader has not been begun, or splits wait in the driver.
        self._has_unread = self._held = False
        # The number of splits at the beginning of the epoch.
        self._split_count = 0
        self._finished = False
        self.status: SourceStatus | None = None
        self.records_read = 0

    def create_head(self, gate: InputGate) -> SubtaskHead:
        return SourceHead(self)

    def restore(self, whole: Any) -> None:
        self.close()
        context = ReaderContext(self.context.subtask.index, self.context.node.parallelism)
        self._reader = self._call(self._source.create_reader, context)
        if _overrides(self._reader, "broken_records"):
            group = self.context.metrics.group(self.context.node.name)
            self._broken = group.counter(BROKEN_RECORDS)
        self._finished = False
        self._complete = False
        self._has_unread = self._held = False
        self._split_count = 0
        self._aligned_watermark = MAX_WATERMARK
        self._ahead, self._paused = False, frozenset()
        times = None
        if whole is not None:
            splits, self._finished, times = whole
            self._split_count = len(splits)
            if splits:
                self._call(self._reader.add_splits, splits)
        if self._time is None:
            return
        self._time.restore(times)
        if whole is None:
            return
        if times is None:
            # The job was restored.
            self._expect(splits)
        self._has_unread = not self._time.knows(split.split_id for split in splits)

    def resume_time(self, watermark: int) -> None:
        if self._time is not None:
            self._time.resume(watermark)

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        if checkpoint_id is not None and self._reader is not None:
            self._call(self._reader.begin_checkpoint, checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._reader is not None:
            self._call(self._reader.notify_checkpoint_complete, checkpoint_id)

    def snapshot(self) -> tuple[tuple[SourceSplit, ...], bool, Any]:
        assert self._reader is not None
        times = None if self._time is None else self._time.snapshot()
        return self._unfinished(self._reader), self._finished, times

    def add_splits(
        self, splits: Sequence[SourceSplit], *, complete: bool, held: bool = False
    ) -> None:
        """Begin an epoch.

        Args:
            splits: The splits that are new.
            complete: No more splits will come.
            held: More splits wait in the driver, and the watermark must not overtake them.
        """
        assert self._reader is not None
        if splits:
            self._call(self._reader.add_splits, splits)
            self._expect(splits)
            self._split_count += len(splits)
        self._complete = complete
        self._held = held
        if self._time is not None:
            unknown = not self._time.knows(split.split_id for split in splits)
            self._hold(self._time, has_unread=self._has_unread or unknown)

    def _expect(self, splits: Sequence[SourceSplit]) -> None:
        """Let the watermark wait for splits, so that the first one does not make the others late.

        Splits that wait in line hold the watermark as a whole (see ``_hold``). They do not count in
        watermark alignment, which compares the progress of reading.
        """
        reader = self._reader
        assert reader is not None
        if self._time is None or not self._call(reader.names_splits):
            return
        in_line = self._source.side_by_side is False
        self._time.expect(
            split.split_id for split in splits if not (in_line and split.position is None)
        )

    def _hold(self, stream_time: StreamTime, *, has_unread: bool) -> None:
        """Hold the watermark while a split that was found has not been begun.

        Its records may be older than all others. Without names of splits there is one watermark for
        all, which says nothing about a split.
        """
        assert self._reader is not None
        self._has_unread = has_unread
        if not self._source.in_time_order and self._call(self._reader.names_splits):
            stream_time.hold(has_unread or self._held)

    def align(self, watermark: int) -> None:
        """Stop reading in this epoch when the source's watermark exceeds ``watermark``."""
        self._aligned_watermark = watermark

    def emitted_watermark(self, watermark: int) -> int:
        if self._finished:
            return MAX_WATERMARK
        return watermark if self._time is None else self._time.watermark

    def tick(self) -> None:
        if self._time is not None:
            self._time.tick()

    def next_tick(self) -> int | None:
        return None if self._time is None else self._time.next_tick()

    def read_epoch(self, budget: ReadBudget) -> Iterator[None]:
        """Read and emit in chunks, and pause after each so that the slot can send rows."""
        reader = self._reader
        assert reader is not None
        left = 0 if self._finished else budget.records
        started = time.perf_counter()
        available = True
        while left > 0:
            if time.perf_counter() - started >= budget.seconds or self._is_ahead():
                break
            count = self._read_chunk(reader, left)
            if not count:
                if budget.to_the_end and self._unfinished(reader):
                    time.sleep(self._call(reader.next_read_delay))
                    continue
                available = False
                break
            left -= count
            yield
        self.report(available=available)

    def read_some(self, limit: int) -> float | None:
        """Read and emit a chunk of at most ``limit`` records, without waiting for any.

        Return the seconds after which there may be more: 0 if there was a chunk, None if the source
        needs splits first, or has ended.
        """
        reader = self._reader
        assert reader is not None
        if self._finished:
            return None
        if self._is_ahead():
            return _AHEAD_SECONDS
        if self._read_chunk(reader, limit):
            return 0.0
        if not self._unfinished(reader):
            return None
        return min(float(self._call(reader.next_read_delay)), self._until_silence())

    def _until_silence(self) -> float:
        """Return the seconds until the reader must be asked again to prove that it is silent."""
        due = self.next_tick()
        if due is None:
            return math.inf
        return max(_SILENCE_SECONDS, (due - self.context.clock.now_millis()) / 1000)

    def _read_chunk(self, reader: SourceReader, limit: int) -> int:
        """Read and emit a chunk. Return the number of its records."""
        started = time.perf_counter()
        pacer = self._pacer
        batch, split = self._read(reader, min(limit, 1 if pacer is None else pacer.records))
        if self._broken is not None:
            self._pass_on_broken_records(reader, self._broken)
        count = len(batch)
        if not count:
            return 0
        self.records_read += count
        if self._time is None:
            self.output.emit(batch)
        else:
            self._time.process(split, batch)
        if pacer is not None:
            pacer.took(time.perf_counter() - started, count)
        return count

    def _pass_on_broken_records(self, reader: SourceReader, counter: Counter) -> None:
        broken = self._call(reader.broken_records)
        if not broken:
            return
        counter.inc(len(broken))
        tag_id = self._source.broken_records_tag
        if tag_id is not None:
            self.output.emit_side(tag_id, RecordBatch(broken, None))

    def report(self, *, available: bool) -> None:
        """Note the progress at the end of an epoch. ``available``: there may be more to read now."""
        reader = self._reader
        assert reader is not None
        unfinished = self._unfinished(reader)
        ended = self._complete and not unfinished
        if self._time is not None and not ended:
            self._time.emit_periodically()
            self._time.keep_only(split.split_id for split in unfinished)
            known = self._time.knows(split.split_id for split in unfinished)
            self._hold(self._time, has_unread=not known)
        # Files may be small: a reader that has read all of its splits asks for twice as many.
        wanted = 0 if unfinished else max(1, 2 * self._split_count)
        self._split_count = len(unfinished)
        self.status = SourceStatus(
            splits=unfinished,
            available=available and not ended,
            delay=0.0 if available else self._call(reader.next_read_delay),
            finished=ended,
            watermark=MIN_WATERMARK if self._time is None else self._time.progress,
            idle=self._time is not None and self._time.idle,
            ahead=self._ahead,
            paused=self._paused,
            wanted=wanted,
        )
        self._finished = ended

    def _read(self, reader: SourceReader, limit: int) -> tuple[RecordBatch, str | None]:
        """Records, and the split that they belong to."""
        now_millis = self.context.clock.now_millis
        began = now_millis()
        stamps = split = None
        try:
            values: Any = reader.read(limit)
            if type(values) is not list and not (
                self.output.is_iterated_once and type(values) is range
            ):
                values = self._unlisted(values)
            if len(values):
                stamps, split = reader.timestamps(), reader.current_split()
        except USER_ERRORS as error:
            function = failed_function(error, reader.timestamps, reader.current_split, reader.read)
            raise self.failure(error, function, None, None) from error
        if self._time is not None:
            # Splits that wait in line are not asked.
            if self._source.side_by_side is not False:
                self._time.asked(max(0, now_millis() - began))
            if not len(values):
                self._time.found_nothing()
        if isinstance(values, pa.RecordBatch):
            return self._column_batch(values, stamps), split
        return RecordBatch(values, stamps), split

    def _unlisted(self, values: Any) -> Any:
        """Return columns as those of the source's type, and all else as a list."""
        if not isinstance(values, pa.RecordBatch):
            return _listed(values)
        if self._layout is None:
            produced = self._source.get_produced_type() or self.context.node.output_type
            self._layout = column_layout(produced)
            if self._layout is None:
                raise ColumnsError(
                    "read() returned a RecordBatch, so get_produced_type() must return a type of "
                    f"primitives, but it returns {reason_for_rows(produced)}"
                )
        return self._layout.fitted(values)

    def _column_batch(self, columns: pa.RecordBatch, stamps: list[int] | None) -> RecordBatch:
        assert self._layout is not None
        return ColumnBatch(columns, self._layout, stamps)

    def _is_ahead(self) -> bool:
        """True if the source must wait for its group. If only some splits are ahead, pause them."""
        stream_time, limit = self._time, self._aligned_watermark
        if stream_time is None or (limit == MAX_WATERMARK and not self._ahead and not self._paused):
            return False
        self._ahead = stream_time.progress > limit
        if self._ahead:
            stream_time.pause()
        else:
            self._pause_splits(stream_time.splits_beyond(limit))
            stream_time.pause_splits(self._paused)
        return self._ahead

    def _pause_splits(self, splits: frozenset[str]) -> None:
        reader = self._reader
        assert reader is not None
        if splits != self._paused and _overrides(reader, "pause_or_resume_splits"):
            self._call(reader.pause_or_resume_splits, splits - self._paused, self._paused - splits)
            self._paused = splits

    @property
    def finished(self) -> bool:
        return self._finished

    @property
    def has_unreported_end(self) -> bool:
        """After ``read_some`` returned None: no splits will come, and the driver does not know."""
        return self._complete and not self._finished

    def close(self) -> None:
        if self._reader is not None:
            reader, self._reader = self._reader, None
            self._call(reader.close)

    def _unfinished(self, reader: SourceReader) -> tuple[SourceSplit, ...]:
        return tuple(self._call(reader.snapshot_splits))

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        return called(self.name, method, *arguments)


class SourceHead(SubtaskHead):
    """Reads the splits of a source."""

    reads = is_origin = True

    def __init__(self, source: SourceOperator) -> None:
        self._source = source
        self._drained = False
        # Something was read since the last control.
        self._has_read = False

    @property
    def finished(self) -> bool:
        return self._drained or self._source.finished

    def restore(self) -> None:
        self._drained = False

    def begin_epoch(self) -> None:
        super().begin_epoch()
        self._source.records_read = 0

    def apply(self, control: SlotControl) -> None:
        node_id = self._source.context.node.id
        self._source.add_splits(
            control.new_splits.get(node_id, ()),
            complete=node_id in control.complete_sources,
            held=node_id in control.held_sources,
        )
        self._has_read = False
        self._source.align(control.aligned_watermarks.get(node_id, MAX_WATERMARK))

    def read_epoch(self, budget: ReadBudget, store: SegmentStore, *, drain: bool) -> Iterator[None]:
        yield from self._source.read_epoch(budget)
        self._note(drain=drain)

    def read_some(self, limit: int) -> float | None:
        wait = self._source.read_some(limit - self._source.records_read)
        if wait == 0.0:
            self._has_read = True
            self.records_read = self._source.records_read
        return wait

    @property
    def needs_report(self) -> bool:
        return self._has_read or self._source.has_unreported_end

    def stop_reading(self, *, drain: bool) -> None:
        self._source.report(available=True)
        self._note(drain=drain)

    def _note(self, *, drain: bool) -> None:
        self.status = self._source.status
        self.records_read = self._source.records_read
        self._drained = drain


def _overrides(reader: SourceReader, method: str) -> bool:
    return getattr(type(reader), method) is not getattr(SourceReader, method)


def _listed(values: Any) -> list[Any]:
    """Convert the result of ``read`` to a list."""
    if values is None or isinstance(values, list | tuple | range):
        return list(values or ())
    raise TypeError(f"read() must return a list of records, but it returned {shorten(values)}")
