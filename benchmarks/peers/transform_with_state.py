"""PySpark's own stateful operator, transformWithState, on the keyed reductions.

The numbers come from Spark's rate source and are made and shuffled inside the JVM, so that Python does nothing but the
reduction. Micro-batches are large, because state is read and written once for each key and micro-batch; every record
yields a result. Of the two flavors each case takes the faster: pandas frames for few large groups, rows for many small ones.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.cases import BY_NAME, Case, Outcome, Reduce
from benchmarks.measure import parse_arguments, run_cases
from benchmarks.peers.spark_session import start_session

KEYS = {"reduce_1k": 1_000, "reduce_1m": 1_000_000}
RECORDS = {"reduce_1k": 4_000_000, "reduce_1m": 80_000}
# A small run takes one micro-batch, a large one four.
BATCHES = 4
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class ReduceProcessor(StatefulProcessor):
    """What both flavors share: the state of a key, read before its records and written after them."""

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self.combine = combine

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("reduced", "value long")

    def current(self) -> Any:
        found = self.state.get()
        return None if found is None else found[0]

    def close(self) -> None:
        pass


class ReduceRows(ReduceProcessor):
    def handleInputRows(  # noqa: N802 - PySpark's name
        self, key: Any, rows: Iterator[Any], timerValues: Any = None  # noqa: N803
    ) -> Iterator[Row]:
        reduced = self.current()
        for row in rows:
            reduced = row.value if reduced is None else self.combine(reduced, row.value)
            yield Row(value=reduced)
        self.state.update((reduced,))


class ReduceFrames(ReduceProcessor):
    def handleInputRows(  # noqa: N802 - PySpark's name
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any = None  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        reduced = self.current()
        for frame in rows:
            results = []
            for value in frame["value"].tolist():
                reduced = value if reduced is None else self.combine(reduced, value)
                results.append(reduced)
            yield pd.DataFrame({"value": results})
        self.state.update((reduced,))


class TransformWithState:
    """Runs the keyed reductions as streaming queries of one session."""

    def __init__(self, session: SparkSession, parallelism: int) -> None:
        self.session = session
        self.parallelism = parallelism

    def results(self, case: Case, batch_records: int) -> DataFrame:
        if not isinstance(case, Reduce):
            raise TypeError(f"{case.name} is not a reduction")
        numbers = (
            self.session.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", batch_records)
            .option("numPartitions", self.parallelism)
            .load()
            .select("value", (F.col("value") % KEYS[case.name]).alias("key"))
        )
        keyed = numbers.groupBy("key")
        if KEYS[case.name] <= batch_records // 100:
            processor: StatefulProcessor = ReduceFrames(case.combine)
            return keyed.transformWithStateInPandas(processor, "value long", "Append", "None")
        processor = ReduceRows(case.combine)
        return keyed.transformWithState(processor, "value long", "Append", "None")

    def query(
        self, case: Case, batch_records: int, batches: int, collect: Callable[[DataFrame], None]
    ) -> list[float]:
        """Runs so many micro-batches; returns the times at which they ended, the start first."""
        times: list[float] = []

        def end_batch(batch: DataFrame, epoch: int) -> None:
            if epoch < batches:
                collect(batch)
                times.append(time.perf_counter())

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            times.append(time.perf_counter())
            query: StreamingQuery = (
                self.results(case, batch_records)
                .writeStream.foreachBatch(end_batch)
                .option("checkpointLocation", directory)
                .start()
            )
            while len(times) <= batches and query.isActive:
                time.sleep(0.02)
            failure = query.exception()
            query.stop()
        if failure is not None:
            raise RuntimeError(str(failure))
        return times

    def run(self, case: Case, records: int) -> float:
        large = records >= self.large_records
        batches = BATCHES if large else 1
        times = self.query(case, records // batches, batches, discard)
        return times[-1] - times[0]

    def run_checked(self, case: Case, records: int) -> Outcome:
        outcome = Outcome()

        def collect(batch: DataFrame) -> None:
            for row in batch.collect():
                outcome.add(row.value)

        self.query(case, records, 1, collect)
        return outcome
