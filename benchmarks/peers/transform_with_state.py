"""PySpark's own stateful operator, transformWithState, on the keyed reductions.

The JVM creates the numbers with Spark's rate source and shuffles them, so that Python only computes
the reduction. Micro-batches are large, because state is read and written once per key and
micro-batch. Every record yields a result. Each case uses the faster variant: pandas frames for few
large groups, rows for many small ones.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the conventional name
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.cases import Case, Outcome, Reduce
from benchmarks.measure import Arguments, check_results, parse_arguments, report_versions, run_cases
from benchmarks.peers.spark_session import start_session

RECORDS = {"reduce_1k": 3_000_000, "reduce_1m": 80_000}
# The large run has four micro-batches. The small run has a quarter of the records and one.
BATCHES = 4
IN_FRAMES = {"reduce_1k"}
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class ReduceProcessor(StatefulProcessor):
    """Base of both variants. It reads the state of a key before its records and writes it after."""

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
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any = None,  # noqa: N803
    ) -> Iterator[Row]:
        reduced = self.current()
        for row in rows:
            reduced = row.value if reduced is None else self.combine(reduced, row.value)
            yield Row(value=reduced)
        self.state.update((reduced,))


class ReduceFrames(ReduceProcessor):
    def handleInputRows(  # noqa: N802 - PySpark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any = None,  # noqa: N803
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

    def __init__(self, session: SparkSession, arguments: Arguments) -> None:
        self.session = session
        self.arguments = arguments

    def results(self, case: Case, batch_records: int) -> DataFrame:
        if not isinstance(case, Reduce):
            raise TypeError(f"{case.name} is not a reduction")
        numbers = (
            self.session.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", batch_records)
            .option("numPartitions", self.arguments.parallelism)
            .load()
            .select("value", (F.col("value") % case.keys).alias("key"))
        )
        keyed = numbers.groupBy("key")
        if case.name in IN_FRAMES:
            return keyed.transformWithStateInPandas(
                ReduceFrames(case.combine), "value long", "Append", "None"
            )
        return keyed.transformWithState(ReduceRows(case.combine), "value long", "Append", "None")

    def query(
        self, case: Case, batch_records: int, batches: int, collect: Callable[[DataFrame], None]
    ) -> float:
        """Run the given number of micro-batches and return the seconds until the last one ended."""
        ends: list[float] = []

        def end_batch(batch: DataFrame, epoch: int) -> None:
            if epoch < batches:
                collect(batch)
                ends.append(time.perf_counter())

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            begin = time.perf_counter()
            query: StreamingQuery = (
                self.results(case, batch_records)
                .writeStream.foreachBatch(end_batch)
                .option("checkpointLocation", directory)
                .start()
            )
            while len(ends) < batches and query.isActive:
                time.sleep(0.02)
            failure = query.exception()
            query.stop()
        if failure is not None:
            raise RuntimeError(str(failure))
        return ends[-1] - begin

    def run(self, case: Case, records: int) -> float:
        batch_records = self.arguments.records_of(case, RECORDS[case.name]) // BATCHES
        count = 0

        def discard(batch: DataFrame) -> None:
            nonlocal count
            counted = Observation()
            observed = batch.observe(counted, F.count(F.lit(1)).alias("results"))
            observed.write.format("noop").mode("append").save()
            count += counted.get["results"]

        batches = records // batch_records
        seconds = self.query(case, batch_records, batches, discard)
        check_results(case, count, batches * batch_records)
        return seconds

    def run_checked(self, case: Case, records: int) -> Outcome:
        outcome = Outcome()

        def collect(batch: DataFrame) -> None:
            for row in batch.collect():
                outcome.add(row.value)

        self.query(case, records, 1, collect)
        return outcome


def main() -> None:
    arguments = parse_arguments("PySpark's transformWithState")
    report_versions("pyspark", "pyarrow", "pandas")
    settings = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    session = start_session(arguments.parallelism, **settings)
    peer = TransformWithState(session, arguments)
    run_cases(arguments, peer.run, peer.run_checked, records=RECORDS)
    session.stop()


if __name__ == "__main__":
    main()
