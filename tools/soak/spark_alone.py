"""Arrow's buffers in the JVM after queries of Real-time Mode have stopped, without Firesteel.

Run with ``python -m tools.soak.spark_alone``. Each query leaves the buffers of its Python tasks.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

_QUERIES = 20
_SHOWN = 5
_QUERY_SECONDS = 2.5
_ROWS = 50
_PARTITIONS = 2


def same(batches: Iterable[Any]) -> Iterator[Any]:
    yield from batches


def run_query(spark: SparkSession) -> None:
    """Start a query with a function in Python, give it rows, and stop it."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public way
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    stream = getattr(getattr(sources, "LowLatencyMemoryStream$"), "MODULE$").apply(
        spark._jsparkSession,  # noqa: SLF001 - no public way
        _PARTITIONS,
        jvm.org.apache.spark.sql.Encoders.INT(),
    )
    frame = DataFrame(stream.toDF(), spark)
    # DataFrame.mapInArrow without its check for pandas.
    function = UserDefinedFunction(
        same, returnType="value int", evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = function(frame["value"])
    mapped = DataFrame(frame._jdf.mapInArrow(column._jc, False, None), spark)  # noqa: SLF001
    with tempfile.TemporaryDirectory() as directory:
        query = (
            mapped.writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", directory)
            .trigger(realTime="5 minutes")  # type: ignore[call-overload]  # its stub is older
            .start()
        )
        rows = jvm.java.util.ArrayList()
        for number in range(_ROWS):
            rows.add(number)
        for partition in range(_PARTITIONS):
            stream.addData(partition, jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows))
        time.sleep(_QUERY_SECONDS)
        query.stop()


def main() -> None:
    spark = (
        SparkSession.builder.master("local[8]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.realTimeMode.allowlistCheck", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    jvm: Any = spark._jvm  # noqa: SLF001 - no public way
    allocator = jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    for number in range(1, _QUERIES + 1):
        run_query(spark)
        if number % _SHOWN == 0:
            jvm.System.gc()
            held = allocator.getAllocatedMemory()
            sys.stdout.write(f"{number} queries have stopped, {held:,} bytes are left\n")


if __name__ == "__main__":
    main()
