"""The floor of an epoch: a bare Structured Streaming query, with as many exchanges and nothing of Firesteel in it.

Every micro-batch makes a hundred records in Python, sends them through the exchanges as pickled buffers, and hands the last
stage's rows to foreachBatch.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.measure import parse_arguments, report, report_versions
from benchmarks.peers.handwritten import BUFFERS_DDL, Batches, buffer_row, received
from benchmarks.peers.spark_session import map_in_arrow, start_session

RECORDS = 100
EPOCHS = 90
EXCHANGES = (0, 1, 2, 3)


class TickReader(DataSourceStreamReader):
    """One row for each slot in every micro-batch, due at once: a clock without anything behind it."""

    def __init__(self, parallelism: int) -> None:
        self.parallelism = parallelism
        self.epoch = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - PySpark's name
        return {"epoch": 0}

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802 - PySpark's name
        self.epoch += 1
        return {"epoch": self.epoch}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:  # type: ignore[override, unused-ignore]
        return [InputPartition(slot) for slot in range(self.parallelism)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, bytes]]:  # type: ignore[override, unused-ignore]
        yield (partition.value, b"")


class TickSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ticks"

    def schema(self) -> str:
        return BUFFERS_DDL

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        return TickReader(int(self.options["slots"]))


def make_some(batches: Batches, *, parallelism: int, records: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for _ in range(batch.num_rows):
            for target in range(parallelism):
                yield buffer_row(target, list(range(records // parallelism // parallelism)))


def pass_on(batches: Batches, *, parallelism: int) -> Iterator[pa.RecordBatch]:
    for values in received(batches):
        for target in range(parallelism):
            yield buffer_row(target, values[target::parallelism])


def bare_epoch(session: SparkSession, *, parallelism: int, exchanges: int) -> float:
    """Median milliseconds of a micro-batch of a bare query, from one foreachBatch to the next."""
    session.dataSource.register(TickSource)
    frame = session.readStream.format("ticks").option("slots", parallelism).load()
    frame = map_in_arrow(
        frame, partial(make_some, parallelism=parallelism, records=RECORDS), BUFFERS_DDL
    )
    for _ in range(exchanges):
        frame = map_in_arrow(
            frame.repartitionById(parallelism, F.col("target")),
            partial(pass_on, parallelism=parallelism),
            BUFFERS_DDL,
        )
    ends: list[float] = []

    def collect(batch: DataFrame, epoch: int) -> None:
        batch.collect()
        ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as directory:
        query: StreamingQuery = (
            frame.writeStream.foreachBatch(collect)
            .option("checkpointLocation", directory)
            .trigger(processingTime="0 seconds")
            .start()
        )
        while len(ends) < EPOCHS and query.isActive:
            time.sleep(0.05)
        query.stop()
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
    steps = [later - earlier for earlier, later in pairwise(ends)]
    return statistics.median(steps[len(steps) // 3 :]) * 1000


def main() -> None:
    arguments = parse_arguments("the epoch of a bare Structured Streaming query")
    report_versions("pyspark", "pyarrow")
    session = start_session(arguments.parallelism)
    for exchanges in EXCHANGES:
        milliseconds = bare_epoch(session, parallelism=arguments.parallelism, exchanges=exchanges)
        report(section="epoch", exchanges=exchanges, milliseconds=milliseconds)
    session.stop()


if __name__ == "__main__":
    main()
