"""The exchange into keyed operators of batch jobs: Spark sorts the records by key and timestamp.

The writer sends rows with records of one key. A payload begins with the key as bytes, the first
timestamp, and the channel and number of the row, so that the order of payloads is the order of
processing. The gate merges rows whose timestamps overlap, and hands the records to the operator key
by key.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from operator import le
from typing import Any

from firesteel.common.constants import MIN_WATERMARK
from firesteel.protocol.row_order import KEYED_RECORDS
from firesteel.protocol.rows import KEYED, BufferRow
from firesteel.state.key_encoding import encode_key
from firesteel.task.codegen.key_loops import keys_of
from firesteel.task.exchange.hash_writer import HashWriter
from firesteel.task.exchange.input_gate import InputGate
from firesteel.task.record_batch import Emit, RecordBatch
from firesteel.usercode import pickling
from firesteel.usercode.failures import USER_ERRORS, raised_by
from firesteel.usercode.unpicklable import unpicklable_record

# After the key: the timestamp as an unsigned number, the edge, the channel, the number of the row.
_PLACE = struct.Struct(">QIIQ")
# At the end of a payload: the number of bytes before the records.
_LENGTH = struct.Struct(">I")

# The size of the cache of encoded keys. A full cache is emptied.
_CACHED_KEYS = 1 << 16

# The buffers of all targets of a writer. In large buffers more records have the same key.
_BUFFER_BYTES = 8 << 20
_MAX_BUFFER_RECORDS = 1 << 16

# The most times that a writer sends runs that overlap its earlier ones. See ``_runs``.
_RESTARTS = 8

# The operator gets a batch when it has this many records, or when their rows have this many bytes.
_BATCH_RECORDS = 1024
_BATCH_BYTES = 1 << 20


class _EncodedKeys(dict[Any, bytes]):
    """A cache from keys to the front of their payloads."""

    def __missing__(self, key: Any) -> bytes:
        if len(self) >= _CACHED_KEYS:
            self.clear()
        encoded = self[key] = KEYED_RECORDS + encode_key(key)
        return encoded


# The records of a key in a buffer: the key, the values, the timestamps.
_Group = tuple[Any, list[Any], list[int]]


class SortingWriter(HashWriter):
    """HASH in a batch job: sends rows of one key each, which Spark can sort."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.buffer_bytes = max(self.buffer_bytes, _BUFFER_BYTES // self._count)
        self.max_buffer_records = _MAX_BUFFER_RECORDS
        self.takes_columns = False
        self._encoded = _EncodedKeys()
        self._last_watermark = MIN_WATERMARK
        # By target: the highest timestamp that was sent in a run, and the number of restarts left.
        self._newest = [MIN_WATERMARK] * self._count
        self._restarts = [_RESTARTS] * self._count

    def begin_epoch(self, epoch: int) -> None:
        super().begin_epoch(epoch)
        self._last_watermark = MIN_WATERMARK
        self._newest = [MIN_WATERMARK] * self._count
        self._restarts = [_RESTARTS] * self._count

    def _send_buffer(self, index: int, batch: RecordBatch) -> int:
        values, keys, stamps = batch.values, batch.sent_keys, batch.timestamps
        if keys is None:
            keys = keys_of(values, self._select, self._name)
        sent = 0
        for front, (key, of_key, stamps_of_key) in self._groups(values, keys, stamps).items():
            if stamps is None:
                sent += self._send_records(index, front, key, None, of_key)
                continue
            for run, run_stamps in self._runs(self._newest[index], of_key, stamps_of_key):
                sent += self._send_records(index, front, key, run_stamps, run)
        if stamps is not None:
            self._advance(index, stamps)
        self.records_out += len(values)
        self.bytes_out += sent
        return sent

    def _groups(
        self, values: list[Any], keys: list[Any], stamps: list[int] | None
    ) -> dict[bytes, _Group]:
        """Return the records of each key, in their order."""
        encoded = self._encoded
        groups: dict[bytes, _Group] = {}
        known = groups.get
        if stamps is None:
            for value, key in zip(values, keys, strict=True):
                front = encoded[key]
                group = known(front)
                if group is None:
                    groups[front] = key, [value], []
                else:
                    group[1].append(value)
            return groups
        for value, key, stamp in zip(values, keys, stamps, strict=True):
            front = encoded[key]
            group = known(front)
            if group is None:
                groups[front] = key, [value], [stamp]
            else:
                group[1].append(value)
                group[2].append(stamp)
        return groups

    def _runs(
        self, newest: int, values: list[Any], stamps: list[int]
    ) -> Iterator[tuple[list[Any], list[int]]]:
        """Divide the records of a key into runs with ascending timestamps, one per row.

        The gate keeps a run in memory as long as later rows can overlap it. So that this is never
        more than a few buffers, a run has no timestamp below ``newest``. Earlier records are sent
        with one row per timestamp.
        """
        if not all(map(le, stamps, stamps[1:])):
            order = sorted(range(len(stamps)), key=stamps.__getitem__)
            values, stamps = [values[i] for i in order], [stamps[i] for i in order]
        start = 0 if stamps[0] >= newest else bisect_left(stamps, newest)
        if start:
            cuts = [0, *(i for i in range(1, start) if stamps[i] != stamps[i - 1]), start]
            for first, last in pairwise(cuts):
                yield values[first:last], stamps[first:last]
        if start < len(values):
            yield values[start:], stamps[start:]

    def _advance(self, index: int, stamps: list[int]) -> None:
        """Note the timestamps of a buffer that was sent.

        A source may read a second file that covers the same time as the first one. Runs may then
        overlap those of the first file. This is allowed a few times.
        """
        newest = self._newest[index]
        if max(stamps) >= newest:
            self._newest[index] = max(stamps)
        elif self._restarts[index]:
            self._restarts[index] -= 1
            self._newest[index] = max(stamps)

    def _send_records(
        self, index: int, front: bytes, key: Any, stamps: list[int] | None, values: list[Any]
    ) -> int:
        try:
            records = pickling.dumps((key, stamps, values))
        except Exception as error:
            raise unpicklable_record(error, [*values, key], self._source.name) from error
        time = 0 if stamps is None else stamps[0] - MIN_WATERMARK
        place = _PLACE.pack(time, self.edge.id, self._subtask, self._seq[index])
        length = _LENGTH.pack(len(front) + _PLACE.size)
        payload = b"".join((front, place, records, length))
        self._send_row(index, KEYED, payload)
        return len(payload)

    def watermark(self, watermark: int) -> None:
        """Keep the watermark until the end: sorted records have no place for it between them."""
        self._last_watermark = max(self._last_watermark, watermark)

    def idle(self, idle: bool) -> None:
        """Ignore idleness, because no watermark waits for this channel."""

    def end_epoch(self, *, finished: bool) -> None:
        if self._last_watermark > MIN_WATERMARK:
            super().watermark(self._last_watermark)
        super().end_epoch(finished=finished)


class SortedInput:
    """Hands sorted records to an operator, one key after the other.

    on_key_end: called after the last record of each key.
    """

    def __init__(self, on_key_end: Callable[[], None]) -> None:
        self._on_key_end = on_key_end
        self.reset()

    def reset(self) -> None:
        """Forget the records of an abandoned attempt."""
        self._front = b""
        self._key: Any = None
        self._keep([], [], [], 0)

    def _keep(self, values: list[Any], stamps: list[int], takers: list[Emit], size: int) -> None:
        """Replace the records that wait for the rest of their key. ``size`` is that of their rows."""
        self._values, self._stamps, self._takers, self._bytes = values, stamps, takers, size
        self._is_ordered = True
        # At least twice as much as waits, so that merging long runs costs little.
        self._record_limit = max(_BATCH_RECORDS, 2 * len(values))
        self._byte_limit = max(_BATCH_BYTES, 2 * size)

    def add(
        self,
        front: bytes,
        key: Any,
        stamps: list[int] | None,
        values: list[Any],
        process: Emit,
        size: int = 0,
    ) -> None:
        """Add the records of a row. No later row of the key has a lower first timestamp.

        front: the key as bytes.
        stamps: the timestamps in ascending order.
        process: takes the records of this input.
        size: the bytes of the row.
        """
        if front != self._front:
            self.end_key()
            self._front, self._key = front, key
        elif self._values and (stamps is None) == bool(self._stamps):
            # All records of a batch have timestamps, or none has.
            self._sort()
            self._flush(len(self._values))
        if stamps is not None:
            if self._stamps and stamps[0] < self._stamps[-1]:
                self._is_ordered = False
            self._stamps += stamps
        self._values += values
        self._takers += [process] * len(values)
        self._bytes += size
        if len(self._values) >= self._record_limit or self._bytes >= self._byte_limit:
            self._sort()
            final = len(self._values)
            if stamps is not None:
                final = bisect_left(self._stamps, stamps[0])
            self._flush(final)

    def _sort(self) -> None:
        """Merge the rows by timestamp. Records of equal timestamps stay in the order of rows."""
        if self._is_ordered:
            return
        order = sorted(range(len(self._stamps)), key=self._stamps.__getitem__)
        self._values = [self._values[i] for i in order]
        self._takers = [self._takers[i] for i in order]
        self._stamps = [self._stamps[i] for i in order]
        self._is_ordered = True

    def _flush(self, count: int) -> None:
        """Hand over the first ``count`` records."""
        values, stamps, takers = self._values, self._stamps, self._takers
        if count == len(values):
            self._keep([], [], [], 0)
            if count and takers.count(takers[0]) == count:
                takers[0](RecordBatch(values, stamps or None, [self._key] * count))
                return
        else:
            size = self._bytes * (len(values) - count) // len(values)
            self._keep(values[count:], stamps[count:], takers[count:], size)
        start = 0
        for taker, same in groupby(takers[:count]):
            stop = start + len(list(same))
            keys = [self._key] * (stop - start)
            taker(RecordBatch(values[start:stop], stamps[start:stop] or None, keys))
            start = stop

    def end_key(self) -> None:
        """End the current key, if there is one. It has no more records."""
        if self._front:
            self._sort()
            self._flush(len(self._values))
            self._front = b""
            self._on_key_end()


class SortingGate(InputGate):
    """The gate of a subtask of a batch job, which may have keyed inputs."""

    def __init__(self, *args: Any, on_key_end: Callable[[], None], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.sorted_input = SortedInput(on_key_end)

    def begin_epoch(self) -> None:
        super().begin_epoch()
        self.sorted_input.reset()

    def accept(self, row: BufferRow) -> None:
        if row.kind != KEYED:
            # Whatever comes after the records of the last key comes after the key.
            self.sorted_input.end_key()
            super().accept(row)
            return
        channel = self._channels[row.edge, row.channel]
        # Sorted rows are not in the order of their numbers. The end of the channel has their count.
        channel.seq += 1
        payload = row.payload
        (start,) = _LENGTH.unpack_from(payload, len(payload) - _LENGTH.size)
        try:
            key, stamps, values = pickling.loads(memoryview(payload)[start:])
        except USER_ERRORS as error:
            raise raised_by(error, self._operator, "the unpickling of its records") from error
        self.records_in += len(values)
        self.bytes_in += len(payload)
        front = payload[: start - _PLACE.size]
        self.sorted_input.add(front, key, stamps, values, channel.process, len(payload))
