"""Record writers: they choose the target of each record, and send buffers when they are full.

There is one writer per outgoing edge and subtask. All of them work on whole batches, with one pass
over the records if the targets differ. Columns wait as they come, and are divided when they are
sent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.errors import FiresteelError, shorten
from firesteel.graph.partitioning import target_subtasks
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.protocol.rows import (
    ABORTED,
    BARRIER,
    DATA,
    END_OF_EPOCH,
    END_OF_INPUT,
    FINISHED,
    IDLENESS,
    OPEN,
    WATERMARK,
    BufferRow,
)
from firesteel.task.column_batch import ColumnBatch, joined
from firesteel.task.column_groups import Integers
from firesteel.task.exchange.buffers import BufferEncoder
from firesteel.task.exchange.input_gate import ACTIVE, IDLE
from firesteel.task.exchange.keys import key_function
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling
from firesteel.usercode.failures import USER_ERRORS, user_function_error
from firesteel.usercode.unpicklable import unpicklable_record

if TYPE_CHECKING:
    import numpy as np
else:
    from firesteel.common import numpy_on_demand as np

# A buffer is sent when it holds about this many bytes, judged by the size of the previous ones.
# Its records and pickle's memo should fit into a core's cache. Beyond that, a record costs half as
# much again: from about 5,000 small records, and from about 1,000 records of twenty fields.
# Buffers are checked after each batch, so that they may exceed the limit by a batch's share.
_BUFFER_BYTES = 64 * 1024
_FIRST_BUFFER_RECORDS = 1024
_MAX_BUFFER_RECORDS = 3072
# Columns have a cost per buffer, and hardly one per record.
_COLUMN_BUFFER_FACTOR = 8


class BadPartitionError(FiresteelError, ValueError):
    """A user's partitioner returned a partition that does not exist."""


class RecordWriter:
    """Buffers records per target and sends them as rows. Subclasses choose the target."""

    buffer_bytes = _BUFFER_BYTES
    max_buffer_records = _MAX_BUFFER_RECORDS
    # Columns are sent as columns. Otherwise their records are.
    takes_columns = True

    def __init__(
        self,
        edge: StreamEdge,
        source: StreamNode,
        target: StreamNode,
        subtask: int,
        first_slot: int,
        send: Callable[[BufferRow], None],
    ) -> None:
        self.edge = edge
        self._source = source
        self._subtask = subtask
        self._send = send
        targets = target_subtasks(
            edge.partitioning.strategy, subtask, source.parallelism, target.parallelism
        )
        self._slots = [first_slot + index for index in targets]
        count = len(targets)
        self._count = count
        self._values: list[list[Any]] = [[] for _ in range(count)]
        self._keys: list[list[Any]] = [[] for _ in range(count)]
        self._timestamps: list[list[int]] = [[] for _ in range(count)]
        # Columns for all targets, and their size. Rows and columns never wait at the same time.
        self._columns: list[ColumnBatch] = []
        self._column_bytes = 0
        self._seq = [0] * count
        self._encoder = BufferEncoder()
        # Buffer timeout 0 sends every record at once.
        self._unbuffered = source.buffer_timeout == 0
        # Milliseconds after which a record should leave, or -1 to wait for a full buffer.
        self.timeout = source.buffer_timeout
        self._limit = 1 if self._unbuffered else _FIRST_BUFFER_RECORDS
        self.records_out = 0
        self.bytes_out = 0
        # The rows of an epoch follow those of the epoch before, and its mark may be left out.
        self.flowing = False
        self._has_finished = False

    @property
    def has_records(self) -> bool:
        """Records wait for a full buffer, or for a flush."""
        return bool(self._columns) or any(self._values)

    @property
    def target_slots(self) -> Sequence[int]:
        return self._slots

    @property
    def buffer_records(self) -> int:
        """The number of records at which a buffer is sent."""
        return self._limit

    def resize_buffers(self, size: int | None) -> None:
        """Send buffers of about this many bytes from now on, or of the usual size."""
        usual = type(self).buffer_bytes
        size = usual if size is None else max(1, min(size, usual))
        if size != self.buffer_bytes and not self._unbuffered:
            self._limit = max(1, min(self._limit * size // self.buffer_bytes, _MAX_BUFFER_RECORDS))
        self.buffer_bytes = size

    def begin_epoch(self, epoch: int) -> None:
        """Clear everything, because an abandoned attempt may have left something."""
        if not self.flowing:
            self._clear_columns()
            for index in range(self._count):
                self._clear(index)
            self._seq = [0] * self._count
        self.records_out = 0
        self.bytes_out = 0

    def emit(self, batch: RecordBatch) -> None:
        if isinstance(batch, ColumnBatch) and self.takes_columns and not self._unbuffered:
            self._emit_columns(batch)
            return
        if self._columns:
            self._flush_columns()
        self.emit_rows(batch)

    def emit_rows(self, batch: RecordBatch) -> None:
        raise NotImplementedError

    def _emit_columns(self, batch: ColumnBatch) -> None:
        if any(self._values):
            self.flush()
        waiting = self._columns
        if waiting and not _can_join(waiting[0], batch):
            self._flush_columns()
        waiting.append(batch)
        self._column_bytes += batch.columns.nbytes
        if self._column_bytes >= self._column_buffer_bytes * self._count:
            self._flush_columns()

    @property
    def _column_buffer_bytes(self) -> int:
        usual = self.buffer_bytes == type(self).buffer_bytes
        return self.buffer_bytes * _COLUMN_BUFFER_FACTOR if usual else self.buffer_bytes

    def _flush_columns(self) -> None:
        batch = joined(self._columns)
        self._columns.clear()
        size, self._column_bytes = self._column_bytes, 0
        try:
            parts = self.divided_columns(batch)
        except pa.ArrowException:
            # Only the way of rows knows the targets, or the error.
            self.emit_rows(batch)
            self._flush_rows()
            return
        most = max(1, self._column_buffer_bytes * len(batch) // max(size, 1))
        if size:
            fitting = self.buffer_bytes * len(batch) // size
            self._limit = max(1, min(fitting, self.max_buffer_records))
        for index, part in parts:
            for start in range(0, len(part), most):
                self._send_buffer(index, part.part(start, min(start + most, len(part))))

    def divided_columns(self, batch: ColumnBatch) -> Sequence[tuple[int, ColumnBatch]]:
        """Return the records for each target.

        Raises:
            pyarrow.ArrowException: Only rows have targets, or an error.
        """
        return [(0, batch)]

    def _divided_by(self, batch: ColumnBatch, targets: Integers) -> list[tuple[int, ColumnBatch]]:
        """Divide columns, given the target of each record."""
        if self._count == 1:
            return [(0, batch)]
        found = ((index, np.flatnonzero(targets == index)) for index in range(self._count))
        return [(index, batch.taken(pa.array(places))) for index, places in found if len(places)]

    def _append(self, index: int, batch: RecordBatch) -> None:
        if self._unbuffered and len(batch.values) == 1:
            # Nothing is pending: every record is sent at once.
            self._send_buffer(index, batch)
            return
        keys, timestamps = batch.sent_keys, batch.timestamps
        pending = self._values[index]
        if pending and (
            (timestamps is None) == bool(self._timestamps[index])
            or (keys is None) == bool(self._keys[index])
        ):
            # All records of a buffer have timestamps, or none has. The same holds for keys.
            self._flush(index)
        pending += batch.values
        if keys is not None:
            self._keys[index] += keys
        if timestamps is not None:
            self._timestamps[index] += timestamps
        if len(pending) >= self._limit:
            self._flush(index)

    def _flush(self, index: int) -> None:
        values = self._values[index]
        if not values:
            return
        batch = RecordBatch(values, self._timestamps[index] or None, self._keys[index] or None)
        count = len(values)
        if self._unbuffered and count > 1:
            for position in range(count):
                self._send_buffer(index, batch.part(position, position + 1))
        else:
            size = self._send_buffer(index, batch)
            if not self._unbuffered:
                fitting = self.buffer_bytes * count // max(size, 1)
                self._limit = max(1, min(fitting, self.max_buffer_records))
        self._clear(index)

    def _clear_columns(self) -> None:
        self._columns.clear()
        self._column_bytes = 0

    def _clear(self, index: int) -> None:
        # The lists stay, because a subclass may hold their methods.
        self._values[index].clear()
        self._keys[index].clear()
        self._timestamps[index].clear()

    def _send_buffer(self, index: int, batch: RecordBatch) -> int:
        payload, size = self._encode(batch)
        self.records_out += len(batch)
        self.bytes_out += len(payload)
        self._send_row(index, DATA, payload)
        return size

    def _encode(self, batch: RecordBatch) -> tuple[bytes, int]:
        try:
            return self._encoder.encode(batch)
        except Exception as error:
            pickled = [*batch.values, *(batch.sent_keys or ())]
            raise unpicklable_record(error, pickled, self._source.name) from error

    def _send_row(self, index: int, kind: int, payload: bytes) -> None:
        seq = self._seq[index]
        self._seq[index] = seq + 1
        self._send(BufferRow(self._slots[index], self.edge.id, self._subtask, seq, kind, payload))

    def flush(self) -> None:
        if self._columns:
            self._flush_columns()
        self._flush_rows()

    def _flush_rows(self) -> None:
        for index in range(self._count):
            self._flush(index)

    def watermark(self, watermark: int) -> None:
        """Send the watermark after all records that were emitted before it."""
        self.flush()
        payload = pickling.dumps(watermark)
        for index in range(self._count):
            self._send_row(index, WATERMARK, payload)

    def idle(self, idle: bool) -> None:
        self.flush()
        for index in range(self._count):
            self._send_row(index, IDLENESS, IDLE if idle else ACTIVE)

    def barrier(self, checkpoint_id: int) -> None:
        """Send a barrier. All records emitted so far belong to the checkpoint."""
        self.flush()
        payload = pickling.dumps(checkpoint_id)
        for index in range(self._count):
            self._send_row(index, BARRIER, payload)

    def end_epoch(self, *, finished: bool) -> None:
        """Send the rest, and an end mark by which the reader checks that nothing was lost."""
        self.flush()
        payload = FINISHED if finished else OPEN
        for index in range(self._count):
            self._send_row(index, END_OF_EPOCH, payload)
        self._seq = [0] * self._count

    def finish(self) -> None:
        """Tell every reader that no records follow, in an epoch that ends without a mark."""
        if not self._has_finished:
            self._has_finished = True
            self.flush()
            for index in range(self._count):
                self._send_row(index, END_OF_INPUT, b"")

    def abort_epoch(self) -> None:
        """Drop the rest, and tell every reader that the epoch is void."""
        self._clear_columns()
        for index in range(self._count):
            self._clear(index)
            self._send_row(index, END_OF_EPOCH, ABORTED)
        self._seq = [0] * self._count


class OneTargetWriter(RecordWriter):
    """GLOBAL and FORWARD: all records go to one target."""

    def emit_rows(self, batch: RecordBatch) -> None:
        self._append(0, batch)


class RoundRobinWriter(RecordWriter):
    """REBALANCE and RESCALE: targets take turns, record by record, also across epochs."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._next = 0
        self._epoch: int | None = None

    def begin_epoch(self, epoch: int) -> None:
        super().begin_epoch(epoch)
        if self._epoch is None or epoch != self._epoch + 1:
            # The first epoch, or one that runs again. Flink starts at a random target so that
            # subtasks with few records spread. This also spreads them, and it is the same when a
            # task runs again.
            self._next = (self._subtask + epoch) % self._count
        self._epoch = epoch

    def emit_rows(self, batch: RecordBatch) -> None:
        values, timestamps = batch.values, batch.timestamps
        count, start = self._count, self._next
        self._next = (start + len(values)) % count
        if count == 1 or len(values) == 1:
            self._append(start, batch)
            return
        for offset in range(min(count, len(values))):
            share = RecordBatch(values[offset::count], timestamps and timestamps[offset::count])
            self._append((start + offset) % count, share)

    def divided_columns(self, batch: ColumnBatch) -> Sequence[tuple[int, ColumnBatch]]:
        start = self._next
        self._next = (start + len(batch)) % self._count
        return self._divided_by(batch, (np.arange(len(batch)) + start) % self._count)


class BroadcastWriter(RecordWriter):
    """BROADCAST: every record goes to every target, and is serialized once."""

    def emit_rows(self, batch: RecordBatch) -> None:
        self._append(0, batch)

    def _send_buffer(self, index: int, batch: RecordBatch) -> int:
        payload, size = self._encode(batch)
        self.records_out += len(batch) * self._count
        self.bytes_out += len(payload) * self._count
        for target in range(self._count):
            self._send_row(target, DATA, payload)
        return size


class SelectingWriter(RecordWriter):
    """Base of the writers that compute a target per record."""

    def _scatter(self, batch: RecordBatch, targets: list[int]) -> None:
        keys, timestamps = batch.sent_keys, batch.timestamps
        of_values = self._divided(batch.values, targets)
        of_keys = None if keys is None else self._divided(keys, targets)
        of_timestamps = None if timestamps is None else self._divided(timestamps, targets)
        for index, values in enumerate(of_values):
            if values:
                share = RecordBatch(
                    values,
                    None if of_timestamps is None else of_timestamps[index],
                    None if of_keys is None else of_keys[index],
                )
                self._append(index, share)

    def _divided(self, column: list[Any], targets: list[int]) -> list[list[Any]]:
        """Divide a column in one pass, regardless of the number of targets."""
        lists: list[list[Any]] = [[] for _ in range(self._count)]
        appends = [one.append for one in lists]
        for item, target in zip(column, targets, strict=True):
            appends[target](item)
        return lists


class ShuffleWriter(SelectingWriter):
    """SHUFFLE: each record goes to a random target."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._random = random.Random()
        self._indexes = range(self._count)

    def begin_epoch(self, epoch: int) -> None:
        super().begin_epoch(epoch)
        # The seed is the same when a task runs again.
        self._random.seed(f"{self.edge.id}/{self._subtask}/{epoch}")

    def emit_rows(self, batch: RecordBatch) -> None:
        self._scatter(batch, self._choose(batch))

    def divided_columns(self, batch: ColumnBatch) -> Sequence[tuple[int, ColumnBatch]]:
        return self._divided_by(batch, np.array(self._choose(batch), np.int64))

    def _choose(self, batch: RecordBatch) -> list[int]:
        return self._random.choices(self._indexes, k=len(batch))


class CustomWriter(SelectingWriter):
    """CUSTOM: the user's partitioner chooses the target."""

    takes_columns = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._select = key_function(self.edge)
        partitioner = self.edge.partitioning.partitioner
        assert partitioner is not None
        self._partition = partitioner
        self._partitions = frozenset(range(self._count))

    def emit_rows(self, batch: RecordBatch) -> None:
        values = batch.values
        select, partition, count = self._select, self._partition, self._count
        iterator = iter(values)
        try:
            targets = [partition(select(value), count) for value in iterator]
        except USER_ERRORS as error:
            raise user_function_error(
                error, f"partition_custom after {self._source.name}", partition, values, iterator
            ) from error
        try:
            # 1.0 equals a partition, but it is not a valid one.
            all_exist = self._partitions.issuperset(targets) and all(
                hasattr(kind, "__index__") for kind in set(map(type, targets))
            )
        except TypeError:
            # A value without a hash is not a partition.
            all_exist = False
        if not all_exist:
            raise self._bad_partition(values, targets)
        self._scatter(batch, targets)

    def _bad_partition(self, values: list[Any], targets: list[Any]) -> FiresteelError:
        partitions = range(self._count)
        value, target = next(
            pair
            for pair in zip(values, targets, strict=True)
            if not hasattr(pair[1], "__index__") or pair[1] not in partitions
        )
        return BadPartitionError(
            f"the partitioner of partition_custom after {self._source.name} returned "
            f"{shorten(target)} for the record {shorten(value)}; it must be an int, there are "
            f"{self._count} partitions, 0 to {self._count - 1}"
        )


def _can_join(one: ColumnBatch, other: ColumnBatch) -> bool:
    return one.layout.fits(other.layout) and (one.stamps is None) == (other.stamps is None)
