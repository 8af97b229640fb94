"""Rows that cross Spark's exchanges. A row is a tagged buffer of records, or a message."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

#: The schema as Spark spells it, and the same for Arrow.
SPARK_SCHEMA = "target int, edge int, channel int, seq bigint, kind tinyint, payload binary"
ARROW_SCHEMA = pa.schema(
    [
        ("target", pa.int32()),
        ("edge", pa.int32()),
        ("channel", pa.int32()),
        ("seq", pa.int64()),
        ("kind", pa.int8()),
        ("payload", pa.binary()),
    ]
)
_ARROW_TYPES = ARROW_SCHEMA.types

#: In real time, all rows of a slot for one target are one row of Spark, because those are costly.
LIVE_SPARK_SCHEMA = "target int, payload binary"
_LIVE_ARROW_SCHEMA = pa.schema([("target", pa.int32()), ("payload", pa.binary())])
#: The size of Spark's buffers between live slots. A row that fills one leaves at once.
LIVE_BUFFER_BYTES = 1024
# Padding: a row without content that fills a buffer.
_PUSH = pickle.dumps([]) + bytes(LIVE_BUFFER_BYTES)

# Kinds of rows. The ``edge`` of a HEADER or CONTROL row is its target level, that of data and marks
# is the stream edge, and that of a row for the driver is the node that sent it.
HEADER = 0  # job, epoch and run: the first row from every slot of the previous level
CONTROL = 1  # the SlotControl of one slot of one level
DATA = 2  # a buffer of records of one channel
WATERMARK = 3  # the watermark of a channel
END_OF_EPOCH = 4  # the last row of a channel in this epoch
EXTERNAL = 5  # records that Spark read from a DataFrame, as an Arrow stream
ACK = 6  # to the driver: the report of a slot
OUTPUT = 7  # to the driver: printed lines, collected records
FAILURE = 8  # to the driver: a user function failed
DATAFRAME = 9  # to the driver: records for a DataFrame sink, as an Arrow stream
IDLENESS = 10  # a channel becomes idle or active; no gate waits for the watermark of an idle one
BARRIER = 11  # separates the records of a checkpoint from those after it
KEYED = 12  # in a batch job: records of one key, which Spark sorts
END_WANTED = 13  # to the driver: the slot has something to report, so the epoch should end
END_OF_INPUT = 14  # nothing follows on this channel, in an epoch whose end is not marked in band
CREDITS = 15  # to the driver: the progress of a live slot, for the slots that send rows to it

# The ``seq`` of a row that the gate has counted already: it was read, but not processed at once.
COUNTED = -1

# Payloads of END_OF_EPOCH rows.
OPEN, FINISHED, ABORTED = b"\x00", b"\x01", b"\x02"

FOR_DRIVER = frozenset({ACK, OUTPUT, FAILURE, DATAFRAME, END_WANTED, CREDITS})

# A batch of rows leaves the slot when its payloads reach this size.
_BATCH_BYTES = 1 << 20


class BufferRow(NamedTuple):
    """A row. ``target`` is the slot that receives it, ``seq`` counts the rows of a channel."""

    target: int
    edge: int
    channel: int
    seq: int
    kind: int
    payload: bytes


@dataclass(slots=True)
class RowBatcher:
    """Collects rows on their way out of a slot and packs them into Arrow batches."""

    rows: list[BufferRow] = field(default_factory=list)
    payload_bytes: int = 0
    limit: int = _BATCH_BYTES

    def add(self, row: BufferRow) -> None:
        self.rows.append(row)
        self.payload_bytes += len(row.payload)

    def is_full(self) -> bool:
        return self.payload_bytes >= self.limit

    def clear(self) -> None:
        """Drop the rows of an attempt that broke off."""
        self.rows = []
        self.payload_bytes = 0

    def take(self) -> pa.RecordBatch:
        batch = to_record_batch(self.rows)
        self.rows = []
        self.payload_bytes = 0
        return batch


def to_record_batch(rows: list[BufferRow]) -> pa.RecordBatch:
    columns = map(pa.array, zip(*rows, strict=True), _ARROW_TYPES)
    return pa.RecordBatch.from_arrays(list(columns), schema=ARROW_SCHEMA)


def rows_of(batch: pa.RecordBatch) -> Iterator[BufferRow]:
    return map(BufferRow._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def packed(rows: Iterable[BufferRow], pushed: Iterable[int] = ()) -> pa.RecordBatch:
    """Return the rows for live slots, one of Spark's rows per target.

    pushed: targets that get one more without content. Spark hands a row on when the next one
    arrives, or when its buffer is full.
    """
    by_target: dict[int, list[tuple[object, ...]]] = {}
    for row in rows:
        by_target.setdefault(row.target, []).append(tuple(row))
    targets = [*by_target, *pushed]
    payloads = [pickle.dumps(one, pickle.HIGHEST_PROTOCOL) for one in by_target.values()]
    payloads += [_PUSH] * (len(targets) - len(payloads))
    return pa.RecordBatch.from_arrays(
        [pa.array(targets, type=pa.int32()), pa.array(payloads, type=pa.binary())],
        schema=_LIVE_ARROW_SCHEMA,
    )


def unpacked(batch: pa.RecordBatch) -> list[BufferRow]:
    """Return the rows of a batch that ``packed`` has made."""
    return [
        BufferRow._make(row)
        for payload in batch.column(1).to_pylist()
        for row in pickle.loads(payload)
    ]
