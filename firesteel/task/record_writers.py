"""Record writers: which target gets which record, and when a buffer is full.

One writer per outgoing edge and subtask. All work on whole batches; what is done per record is
done by C code of Python's own (slices, compress, map).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import compress
from typing import Any

from firesteel import pickling
from firesteel.errors import FiresteelError, shorten
from firesteel.graph.channels import target_subtasks
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.state.key_groups import KeyRouter, TargetLookup
from firesteel.state.stable_hash import FOLDED_INTS
from firesteel.task.buffers import BufferEncoder
from firesteel.task.errors import user_function_error
from firesteel.task.input_gate import ABORTED, ACTIVE, FINISHED, IDLE, OPEN
from firesteel.task.rows import BARRIER, DATA, END_OF_EPOCH, IDLENESS, WATERMARK, BufferRow

# A buffer is sent when it holds about this many bytes, judged by the size of the ones before.
# Not many more records than fit into a core's cache: pickling them later costs several times more.
_BUFFER_BYTES = 256 * 1024
_FIRST_BUFFER_RECORDS = 1024
_MAX_BUFFER_RECORDS = 4096


class BadPartitionError(FiresteelError, ValueError):
    """A user's partitioner answered with a partition that does not exist."""


class RecordWriter:
    """Buffers records per target and sends them as rows. Subclasses decide the target."""

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
        self._seq = [0] * count
        self._encoder = BufferEncoder()
        # Buffer timeout 0 sends every record at once.
        self._unbuffered = source.buffer_timeout == 0
        self._limit = 1 if self._unbuffered else _FIRST_BUFFER_RECORDS
        self.records_out = 0
        self.bytes_out = 0

    def begin_epoch(self, epoch: int) -> None:
        """Start afresh: an attempt that broke off may have left something behind."""
        for index in range(self._count):
            self._values[index], self._keys[index], self._timestamps[index] = [], [], []
        self._seq = [0] * self._count
        self.records_out = 0
        self.bytes_out = 0

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        raise NotImplementedError

    def _append(
        self,
        index: int,
        values: list[Any],
        keys: list[Any] | None,
        timestamps: list[int] | None,
    ) -> None:
        pending = self._values[index]
        if pending and (timestamps is None) == bool(self._timestamps[index]):
            # A buffer holds records with timestamps or without, never both.
            self._flush(index)
            pending = self._values[index]
        pending += values
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
        keys = self._keys[index] or None
        timestamps = self._timestamps[index] or None
        count = len(values)
        if self._unbuffered and count > 1:
            for i in range(count):
                self._send_buffer(
                    index,
                    values[i : i + 1],
                    keys and keys[i : i + 1],
                    timestamps and timestamps[i : i + 1],
                )
        else:
            size = self._send_buffer(index, values, keys, timestamps)
            if not self._unbuffered:
                fitting = _BUFFER_BYTES * count // max(size, 1)
                self._limit = max(1, min(fitting, _MAX_BUFFER_RECORDS))
        self._values[index] = []
        self._keys[index] = []
        self._timestamps[index] = []

    def _send_buffer(
        self,
        index: int,
        values: list[Any],
        keys: list[Any] | None,
        timestamps: list[int] | None,
    ) -> int:
        payload, size = self._encoder.encode(values, keys, timestamps)
        self.records_out += len(values)
        self.bytes_out += len(payload)
        self._send_row(index, DATA, payload)
        return size

    def _send_row(self, index: int, kind: int, payload: bytes) -> None:
        seq = self._seq[index]
        self._seq[index] = seq + 1
        self._send(BufferRow(self._slots[index], self.edge.id, self._subtask, seq, kind, payload))

    def flush(self) -> None:
        for index in range(self._count):
            self._flush(index)

    def watermark(self, watermark: int) -> None:
        """The watermark goes behind every record emitted before it."""
        self.flush()
        payload = pickling.dumps(watermark)
        for index in range(self._count):
            self._send_row(index, WATERMARK, payload)

    def idle(self, idle: bool) -> None:
        self.flush()
        for index in range(self._count):
            self._send_row(index, IDLENESS, IDLE if idle else ACTIVE)

    def barrier(self, checkpoint_id: int) -> None:
        """Everything emitted so far belongs to the checkpoint."""
        self.flush()
        payload = pickling.dumps(checkpoint_id)
        for index in range(self._count):
            self._send_row(index, BARRIER, payload)

    def end_epoch(self, *, finished: bool) -> None:
        """Send what is left and the mark that lets the reader check that nothing was lost."""
        self.flush()
        payload = FINISHED if finished else OPEN
        for index in range(self._count):
            self._send_row(index, END_OF_EPOCH, payload)
        self._seq = [0] * self._count

    def abort_epoch(self) -> None:
        """Drop what is left and tell every reader that the epoch is void."""
        for index in range(self._count):
            self._values[index], self._keys[index], self._timestamps[index] = [], [], []
            self._send_row(index, END_OF_EPOCH, ABORTED)
        self._seq = [0] * self._count


class _OneTargetWriter(RecordWriter):
    """GLOBAL, FORWARD, and whatever has a single target."""

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        self._append(0, values, None, timestamps)


class _RoundRobinWriter(RecordWriter):
    """REBALANCE and RESCALE: record by record in turn, cut with strided slices."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._next = 0

    def begin_epoch(self, epoch: int) -> None:
        super().begin_epoch(epoch)
        # Flink starts at a random target so that small batches spread; this spreads as well and
        # is the same when a task runs again.
        self._next = (self._subtask + epoch) % self._count

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        count = self._count
        start = self._next
        for offset in range(min(count, len(values))):
            self._append(
                (start + offset) % count,
                values[offset::count],
                None,
                timestamps[offset::count] if timestamps is not None else None,
            )
        self._next = (start + len(values)) % count


class _BroadcastWriter(RecordWriter):
    """Every record to every target, serialized once."""

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        self._append(0, values, None, timestamps)

    def _send_buffer(
        self,
        index: int,
        values: list[Any],
        keys: list[Any] | None,
        timestamps: list[int] | None,
    ) -> int:
        payload, size = self._encoder.encode(values, keys, timestamps)
        self.records_out += len(values) * self._count
        self.bytes_out += len(payload) * self._count
        for target in range(self._count):
            self._send_row(target, DATA, payload)
        return size


class _SelectingWriter(RecordWriter):
    """Base of the writers that compute a target for each record."""

    def _scatter(
        self,
        values: list[Any],
        keys: list[Any] | None,
        timestamps: list[int] | None,
        targets: list[int],
    ) -> None:
        # One pass of C code per target beats a loop in Python up to about ten targets, and
        # batches of more targets are rare enough not to deserve a second way.
        for index in range(self._count):
            chosen = [target == index for target in targets]
            selected = list(compress(values, chosen))
            if not selected:
                continue
            self._append(
                index,
                selected,
                list(compress(keys, chosen)) if keys is not None else None,
                list(compress(timestamps, chosen)) if timestamps is not None else None,
            )


class _ShuffleWriter(_SelectingWriter):
    """SHUFFLE: a random target for each record."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._random = random.Random()
        self._indexes = range(self._count)

    def begin_epoch(self, epoch: int) -> None:
        super().begin_epoch(epoch)
        # The same when a task runs again.
        self._random.seed(f"{self.edge.id}/{self._subtask}/{epoch}")

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        targets = self._random.choices(self._indexes, k=len(values))
        self._scatter(values, None, timestamps, targets)


class _HashWriter(_SelectingWriter):
    """HASH: the subtask that owns the key's group. The keys travel with the records."""

    def __init__(
        self,
        edge: StreamEdge,
        source: StreamNode,
        target: StreamNode,
        subtask: int,
        first_slot: int,
        send: Callable[[BufferRow], None],
    ) -> None:
        super().__init__(edge, source, target, subtask, first_slot, send)
        self._select = key_function(edge)
        self._router = KeyRouter(target.parallelism, target.max_parallelism)
        self._lookup: TargetLookup | None = self._router.small_ints

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        lookup = self._lookup
        if lookup is not None:
            try:
                if lookup is self._router.large_ints and timestamps is None:
                    self._emit_large_ints(values)
                else:
                    self._emit_looked_up(values, timestamps, lookup)
            except Exception:  # noqa: BLE001 - the general way raises it again, with its reason
                # Keys of another kind, or a failure of the user's function; nothing was sent yet.
                self._lookup = None
            else:
                return
        select = self._select
        iterator = iter(values)
        try:
            keys = [select(value) for value in iterator]
        except Exception as error:
            raise user_function_error(
                error, f"key_by after {self._source.name}", select, values, iterator
            ) from error
        try:
            targets = self._router.targets(keys)
        except TypeError as error:
            raise self._bad_key(error, values, keys) from error
        self._lookup = self._router.lookup_for(keys)
        self._scatter(values, keys, timestamps, targets)

    def _emit_looked_up(
        self, values: list[Any], timestamps: list[int] | None, lookup: TargetLookup
    ) -> None:
        """One pass from the record to its target's list."""
        select = self._select
        lists: list[tuple[list[Any], list[Any], list[int]]] = [
            ([], [], []) for _ in range(self._count)
        ]
        if timestamps is None:
            pairs = [(of_values.append, of_keys.append) for of_values, of_keys, _ in lists]
            for value in values:
                key = select(value)
                add_value, add_key = pairs[lookup[key]]
                add_value(value)
                add_key(key)
        else:
            triples = [(v.append, k.append, t.append) for v, k, t in lists]
            for value, timestamp in zip(values, timestamps, strict=True):
                key = select(value)
                add_value, add_key, add_timestamp = triples[lookup[key]]
                add_value(value)
                add_key(key)
                add_timestamp(timestamp)
        for index, (of_values, of_keys, stamps) in enumerate(lists):
            if of_values:
                self._append(index, of_values, of_keys, None if timestamps is None else stamps)

    def _emit_large_ints(self, values: list[Any]) -> None:
        """The same with the table of folded integers, its key computed in the loop."""
        select, table = self._select, self._router.small_ints
        lists: list[tuple[list[Any], list[Any]]] = [([], []) for _ in range(self._count)]
        pairs = [(of_values.append, of_keys.append) for of_values, of_keys in lists]
        for value in values:
            key = select(value)
            add_value, add_key = pairs[table[key % FOLDED_INTS]]
            add_value(value)
            add_key(key)
        for index, (of_values, of_keys) in enumerate(lists):
            if of_values:
                self._append(index, of_values, of_keys, None)

    def _bad_key(self, error: TypeError, values: list[Any], keys: list[Any]) -> FiresteelError:
        for value, key in zip(values, keys, strict=True):
            try:
                self._router.targets([key])
            except TypeError:
                return user_function_error(
                    error, f"key_by after {self._source.name}", self._select, [value], None
                )
        raise error


class _CustomWriter(_SelectingWriter):
    """CUSTOM: the user's partitioner decides."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._select = key_function(self.edge)
        partitioner = self.edge.partitioning.partitioner
        assert partitioner is not None
        self._partition = partitioner

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        select, partition, count = self._select, self._partition, self._count
        iterator = iter(values)
        try:
            targets = [partition(select(value), count) for value in iterator]
        except Exception as error:
            raise user_function_error(
                error, f"partition_custom after {self._source.name}", partition, values, iterator
            ) from error
        for value, target in zip(values, targets, strict=True):
            if not 0 <= target < count:
                raise BadPartitionError(
                    f"the partitioner of partition_custom after {self._source.name} answered "
                    f"{target!r} for the record {shorten(value)}; there are {count} partitions, "
                    f"0 to {count - 1}"
                )
        self._scatter(values, None, timestamps, targets)


_WRITERS: dict[ShipStrategy, type[RecordWriter]] = {
    ShipStrategy.FORWARD: _OneTargetWriter,
    ShipStrategy.GLOBAL: _OneTargetWriter,
    ShipStrategy.REBALANCE: _RoundRobinWriter,
    ShipStrategy.RESCALE: _RoundRobinWriter,
    ShipStrategy.SHUFFLE: _ShuffleWriter,
    ShipStrategy.BROADCAST: _BroadcastWriter,
    ShipStrategy.HASH: _HashWriter,
    ShipStrategy.CUSTOM: _CustomWriter,
}


def create_record_writer(
    edge: StreamEdge,
    source: StreamNode,
    target: StreamNode,
    subtask: int,
    first_slot: int,
    send: Callable[[BufferRow], None],
) -> RecordWriter:
    """``first_slot`` is the slot of the target's subtask 0."""
    writer = _WRITERS[edge.partitioning.strategy]
    return writer(edge, source, target, subtask, first_slot, send)


def key_function(edge: StreamEdge) -> Callable[[Any], Any]:
    selector = edge.partitioning.key_selector
    assert selector is not None
    return selector
