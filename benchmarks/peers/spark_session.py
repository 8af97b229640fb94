"""The Spark session of transformWithState, and mapInArrow without pandas.

transformWithState runs in its own environment without Firesteel's dependencies. This module
therefore repeats the relevant settings of Firesteel's session. The other references use that
session directly (job_session).
"""

import os
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from firesteel.spark.java import java_environment

Level = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def start_session(parallelism: int, **settings: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master(f"local[{parallelism}]")  # type: ignore[attr-defined, unused-ignore]
        .appName("benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.shuffle.compress", "false")
        .config("spark.sql.shuffle.orderIndependentChecksum.enabled", "false")
        .config("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false")
        .config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
        .config("spark.sql.streaming.pollingDelay", "1ms")
        .config("spark.sql.shuffle.partitions", str(parallelism))
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    with java_environment():
        session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def map_in_arrow(frame: DataFrame, level: Level, schema: str) -> DataFrame:
    """Call `DataFrame.mapInArrow` without its unused requirement of pandas."""
    function = UserDefinedFunction(level, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = function(*[frame[name] for name in frame.columns])
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)  # noqa: SLF001 - as Spark does it
