"""The rows that cross Spark's exchanges: tagged buffers, never single records."""

from __future__ import annotations

from collections.abc import Iterator
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

# Row kinds. For HEADER and CONTROL rows ``edge`` is the level they are meant for; for data and
# its marks it is the stream edge; rows for the driver carry the node that made them.
HEADER = 0  # which job, epoch and run: from every upstream slot, the first row of its block
CONTROL = 1  # the SlotControl of one slot of one level
DATA = 2  # a buffer of records of one channel
WATERMARK = 3  # a channel's watermark
END_OF_EPOCH = 4  # the last row of a channel in this epoch
EXTERNAL = 5  # records that Spark read from a DataFrame, as an Arrow stream
ACK = 6  # to the driver: a slot's report
OUTPUT = 7  # to the driver: printed lines, collected records
FAILURE = 8  # to the driver: a user function failed
DATAFRAME = 9  # to the driver: records for a DataFrame sink, as an Arrow stream
BARRIER = 11  # what is before it belongs to a checkpoint, what is behind it does not
IDLENESS = 10  # whether a channel is idle: nobody waits for its watermark

FOR_DRIVER = frozenset({ACK, OUTPUT, FAILURE, DATAFRAME})

# A batch of rows is handed on when its payloads reach this size.
_BATCH_BYTES = 1 << 20


class BufferRow(NamedTuple):
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
        """Forget what an attempt that broke off left behind."""
        self.rows = []
        self.payload_bytes = 0

    def take(self) -> pa.RecordBatch:
        batch = to_record_batch(self.rows)
        self.rows = []
        self.payload_bytes = 0
        return batch


def to_record_batch(rows: list[BufferRow]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, type=column_field.type)
            for column, column_field in zip(columns, ARROW_SCHEMA, strict=True)
        ],
        schema=ARROW_SCHEMA,
    )


def rows_of(batch: pa.RecordBatch) -> Iterator[BufferRow]:
    return map(BufferRow._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))
