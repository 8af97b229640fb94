"""The exchange into keyed operators of batch jobs: Spark sorts the records by key and timestamp.

The writer sends a row per key and timestamp. Its payload begins with the key as bytes, the
timestamp, and the channel and number of the row, so that the order of payloads is the order of
processing. The gate hands the records to the operator key by key.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import repeat
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


class SortingWriter(HashWriter):
    """HASH in a batch job: sends the records of a key and timestamp as a row that can be sorted."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._encoded = _EncodedKeys()
        self._last_watermark = MIN_WATERMARK

    def begin_epoch(self, epoch: int) -> None:
        super().begin_epoch(epoch)
        self._last_watermark = MIN_WATERMARK

    def _send_buffer(self, index: int, batch: RecordBatch) -> int:
        values, keys = batch.values, batch.sent_keys
        if keys is None:
            keys = keys_of(values, self._select, self._name)
        stamps = repeat(None) if batch.timestamps is None else batch.timestamps
        encoded = self._encoded
        groups: dict[tuple[bytes, int | None], tuple[Any, list[Any]]] = {}
        for value, key, stamp in zip(values, keys, stamps, strict=False):
            group = groups.get((encoded[key], stamp))
            if group is None:
                groups[encoded[key], stamp] = key, [value]
            else:
                group[1].append(value)
        sent = 0
        for (front, stamp), (key, of_group) in groups.items():
            payload = self._payload(index, front, stamp, key, of_group)
            self._send_row(index, KEYED, payload)
            sent += len(payload)
        self.records_out += len(values)
        self.bytes_out += sent
        return sent

    def _payload(
        self, index: int, front: bytes, stamp: int | None, key: Any, values: list[Any]
    ) -> bytes:
        try:
            records = pickling.dumps((key, stamp, values))
        except Exception as error:
            raise unpicklable_record(error, [*values, key], self._source.name) from error
        time = 0 if stamp is None else stamp - MIN_WATERMARK
        place = _PLACE.pack(time, self.edge.id, self._subtask, self._seq[index])
        return b"".join((front, place, records, _LENGTH.pack(len(front) + _PLACE.size)))

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
        self._process: Emit | None = None
        self._values: list[Any] = []
        self._stamps: list[int] = []
        self._keys: list[Any] = []
        self._bytes = 0

    def add(
        self, front: bytes, key: Any, stamp: int | None, values: list[Any], process: Emit
    ) -> None:
        """Add records of one key and timestamp.

        front: the key as bytes.
        process: takes the records of this input.
        """
        if front != self._front:
            self.end_key()
            self._front = front
        elif process is not self._process or (stamp is None) == bool(self._stamps):
            self.flush()
        self._process = process
        self._values += values
        self._keys += [key] * len(values)
        if stamp is not None:
            self._stamps += [stamp] * len(values)

    def flush(self) -> None:
        if self._process is None:
            return
        batch = RecordBatch(self._values, self._stamps or None, self._keys)
        process, self._process = self._process, None
        self._values, self._stamps, self._keys, self._bytes = [], [], [], 0
        process(batch)

    def flush_if_full(self, more_bytes: int) -> None:
        self._bytes += more_bytes
        if self._bytes >= _BATCH_BYTES or len(self._values) >= _BATCH_RECORDS:
            self.flush()

    def end_key(self) -> None:
        """The current key, if there is one, has no more records."""
        if self._front:
            self.flush()
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
            key, stamp, values = pickling.loads(memoryview(payload)[start:])
        except USER_ERRORS as error:
            raise raised_by(error, self._operator, "what unpickles its records") from error
        self.records_in += len(values)
        self.bytes_in += len(payload)
        front = payload[: start - _PLACE.size]
        self.sorted_input.add(front, key, stamp, values, channel.process)
        self.sorted_input.flush_if_full(len(payload))
