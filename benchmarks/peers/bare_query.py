"""Bare Structured Streaming query: the minimum cost of an epoch, without Firesteel in the plan.

The query has the same number of exchanges as the Firesteel job. As in Firesteel, the first stage
reads the source. Every micro-batch creates a hundred records there, sends them through the
exchanges as pickled buffers, and passes the rows of the last stage to foreachBatch.
"""

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the conventional name
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.peers.handwritten import BUFFERS_DDL, Batches, buffer_row, received, to_batch
from benchmarks.peers.spark_session import map_in_arrow


class TickReader(DataSourceStreamReader):
    """Starts a micro-batch as soon as possible. Each slot creates its share of the records."""

    def __init__(self, parallelism: int, records: int) -> None:
        self.parallelism = parallelism
        self.records = records
        self.epoch = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - PySpark's name
        return {"epoch": 0}

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802 - PySpark's name
        self.epoch += 1
        return {"epoch": self.epoch}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:  # type: ignore[override, unused-ignore]
        return [InputPartition(slot) for slot in range(self.parallelism)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override, unused-ignore]
        yield scattered(list(range(self.records // self.parallelism)), self.parallelism)


def scattered(values: list[Any], parallelism: int) -> pa.RecordBatch:
    return to_batch(
        [buffer_row(target, values[target::parallelism])[0] for target in range(parallelism)]
    )


class TickSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ticks"

    def schema(self) -> str:
        return BUFFERS_DDL

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        return TickReader(int(self.options["slots"]), int(self.options["records"]))


def pass_on(batches: Batches, *, parallelism: int) -> Iterator[pa.RecordBatch]:
    for values in received(batches):
        yield scattered(values, parallelism)


def moments_of_bare_epochs(
    session: SparkSession, *, parallelism: int, exchanges: int, records: int, epochs: int
) -> list[float]:
    """Return the end times of the first `epochs` micro-batches."""
    session.dataSource.register(TickSource)
    ticks = session.readStream.format("ticks")
    frame = ticks.option("slots", parallelism).option("records", records).load()
    for _ in range(exchanges):
        frame = map_in_arrow(
            frame.repartitionById(parallelism, F.col("target")),
            partial(pass_on, parallelism=parallelism),
            BUFFERS_DDL,
        )
    ends: list[float] = []

    def collect(batch: DataFrame, epoch: int) -> None:
        batch.collect()
        ends.append(time.monotonic())

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        query: StreamingQuery = (
            frame.writeStream.foreachBatch(collect).option("checkpointLocation", directory).start()
        )
        while len(ends) < epochs and query.isActive:
            time.sleep(0.05)
        failure = query.exception()
        query.stop()
    if failure is not None:
        raise RuntimeError(str(failure))
    return ends[:epochs]
