"""Bridges to Spark: DataFrames as sources and sinks, batch and streaming."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from firesteel.common import Instant, Row, Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.errors import TypeMismatchError
from tests.integration.conftest import MakeEnvironment
from tests.waiting import wait_until

pytestmark = pytest.mark.execution("micro-batch")

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

    wait_until(lambda: len(arrived()) >= 50)
    client.cancel().result()
    assert sorted(arrived()) == list(range(50))


ZONE = "spark.sql.session.timeZone"
TIME_TYPE = "spark.sql.timeType.enabled"
NOON = dt.datetime.fromisoformat("2024-07-01 12:00:00.123456")


@pytest.fixture
def berlin(env: StreamExecutionEnvironment) -> Iterator[SparkSession]:
    spark = env.get_spark_session()
    before = spark.conf.get(ZONE)
    assert before is not None
    spark.conf.set(ZONE, "Europe/Berlin")
    spark.conf.set(TIME_TYPE, "true")
    yield spark
    spark.conf.set(ZONE, before)
    spark.conf.unset(TIME_TYPE)


def test_nested_values_and_wall_times_of_the_session_go_through_a_job_unchanged(
    env: StreamExecutionEnvironment, berlin: SparkSession
) -> None:
    noon = "timestamp'2024-07-01 12:00:00.123456'"
    values = berlin.sql(f"""
        select 1 as id,
               named_struct('x', 1, 'at', {noon}) as inner,
               map('k', named_struct('y', 2), 'none', null) as by_key,
               array(named_struct('z', 'a'), named_struct('z', null)) as list,
               map({noon}, array({noon}, null)) as times,
               cast(1.50 as decimal(10, 2)) as price,
               date'2024-07-01' as day,
               time'12:30:00.5' as time,
               {noon} as at,
               timestamp_ntz'2024-07-01 12:00:00.123456' as wall,
               unhex('00FF') as bytes
    """)
    nulls = [f"cast(null as {f.dataType.simpleString()})" for f in values.schema.fields[1:]]
    frame = values.union(berlin.sql(f"select 2, {', '.join(nulls)}"))
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_dataframe(frame)
    written: list[Any] = []

    def write(frame: DataFrame, epoch: int) -> None:
        assert frame.schema["at"].dataType.typeName() == "timestamp_ntz"
        written.extend(frame.selectExpr("*", "unix_micros(cast(at as timestamp))").collect())

    stream.to_dataframe(write)
    with stream.execute_and_collect() as results:
        first, second = sorted(results, key=lambda row: row.id)
    names = frame.columns
    assert first == Row(*names)(
        1,
        Row(x=1, at=NOON),
        {"k": Row(y=2), "none": None},
        [Row(z="a"), Row(z=None)],
        {NOON: [NOON, None]},
        Decimal("1.50"),
        NOON.date(),
        dt.time(12, 30, 0, 500_000),
        NOON,
        NOON,
        b"\x00\xff",
    )
    assert second == Row(*names)(2, *[None] * 10)

    given = [tuple(row) for row in frame.selectExpr("*", "unix_micros(at)").orderBy("id").collect()]
    assert [row[-1] for row in given] == [1719828000123456, None]
    at = names.index("at")
    assert [row[at] for row in sorted(written)] == [NOON, None]
    # Where PySpark's collect() goes by the machine's zone, only what was not a timestamp compares.
    same = [p for p, name in enumerate([*names, "micros"]) if name not in ("inner", "times", "at")]
    for mine, theirs in zip(sorted(written), given, strict=True):
        assert [mine[p] for p in same] == [theirs[p] for p in same]


def test_a_dataframe_of_another_session_is_read_in_its_own_zone(
    env: StreamExecutionEnvironment,
) -> None:
    tokyo = env.get_spark_session().newSession()
    tokyo.conf.set(ZONE, "Asia/Tokyo")
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    frame = tokyo.sql("select timestamp'2024-07-01 12:00:00.123456' as at")
    with env.from_dataframe(frame).execute_and_collect() as results:
        assert list(results) == [Row(at=NOON)]


def test_rows_in_rows_lists_maps_and_tuples_become_structs(
    env: StreamExecutionEnvironment,
) -> None:
    point = Types.ROW_NAMED(["x"], [Types.INT()])
    record = Types.ROW_NAMED(
        ["id", "inner", "list", "map", "tuple", "instant", "third", "big", "time"],
        [
            Types.LONG(),
            point,
            Types.LIST(point),
            Types.MAP(Types.STRING(), point),
            Types.TUPLE([Types.STRING(), point]),
            Types.INSTANT(),
            Types.BIG_DEC(),
            Types.BIG_INT(),
            Types.SQL_TIME(),
        ],
    )
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    third = Decimal(1) / Decimal(3)
    rows = [
        Row(
            1,
            Row(5),
            [Row(6)],
            {"k": Row(7)},
            ("a", Row(8)),
            Instant.of_epoch_milli(1500),
            third,
            10**30,
            dt.time(12, 30),
        ),
        Row(2, None, [], {"none": None}, ("b", Row(None)), None, None, None, None),
    ]
    written: list[Any] = []

    def write(frame: DataFrame, epoch: int) -> None:
        written.extend(frame.withColumn("instant", frame.instant.cast("double")).collect())

    env.from_collection(rows, type_info=record).to_dataframe(write)
    env.execute("nested")
    assert sorted(tuple(row) for row in written) == [
        (
            1,
            (5,),
            [(6,)],
            {"k": (7,)},
            ("a", (8,)),
            1.5,
            third.quantize(Decimal("1E-18")),
            10**30,
            dt.time(12, 30),
        ),
        (2, None, [], {"none": None}, ("b", (None,)), None, None, None, None),
    ]


def test_a_record_that_no_column_can_hold_is_named(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    price = Types.ROW_NAMED(["price"], [Types.BIG_DEC()])
    prices = env.from_collection([Row(Decimal(1)), Row(Decimal("1E+20"))], type_info=price)
    prices.to_dataframe(lambda frame, epoch: frame.collect())
    with pytest.raises(TypeMismatchError, match=r"field price: .* 20 digits") as caught:
        env.execute("too large")
    assert caught.value.operator == "Sink: DataFrame"
    assert "1E+20" in caught.value.value
