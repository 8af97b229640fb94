"""Bridges to Spark: DataFrames as sources and sinks, batch and streaming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from firesteel.common import Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from tests.spark.conftest import MakeEnvironment

PAIR = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()])


def test_a_dataframe_is_a_source_of_a_batch_job(env: StreamExecutionEnvironment) -> None:
    frame = env.get_spark_session().range(100).selectExpr("id", "concat('n', id % 3) as name")
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    counts = (
        env.from_dataframe(frame).map(lambda row: (row.name, 1)).key_by(lambda pair: pair[0]).sum(1)
    )
    with counts.execute_and_collect() as results:
        assert dict(results) == {"n0": 34, "n1": 33, "n2": 33}


def test_a_batch_job_writes_a_dataframe(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    spark = env.get_spark_session()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    target = str(tmp_path / "out")

    def write(frame: DataFrame, epoch: int) -> None:
        frame.write.parquet(target)

    words = env.from_collection([("a", 1), ("b", 2), ("a", 3)], PAIR)
    words.key_by(lambda row: row.word).sum(1).to_dataframe(write)
    env.execute("to parquet")
    rows = {(row["word"], row["count"]) for row in spark.read.parquet(target).collect()}
    assert rows == {("a", 4), ("b", 2)}


def test_a_streaming_dataframe_goes_through_a_job_into_a_dataframe_sink(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    env = make_env(parallelism=2)
    spark = env.get_spark_session()
    source, target = tmp_path / "in", tmp_path / "out"
    spark.range(50).coalesce(1).write.parquet(str(source))
    stream = spark.readStream.schema("id long").parquet(str(source))

    def write(frame: DataFrame, epoch: int) -> None:
        frame.write.mode("append").parquet(str(target))

    pairs = env.from_dataframe(stream).map(lambda row: (f"k{row.id % 2}", row.id), PAIR)
    pairs.to_dataframe(write)
    client = env.execute_async("streaming frames")

    def arrived() -> list[Any]:
        if not target.exists():
            return []
        return [
            row["count"]
            for row in spark.read.schema("word string, count long").parquet(str(target)).collect()
        ]

    import time

    deadline = time.monotonic() + 60
    while len(arrived()) < 50 and time.monotonic() < deadline:
        time.sleep(0.2)
    client.cancel().result()
    assert sorted(arrived()) == list(range(50))
