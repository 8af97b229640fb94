"""A job's state becomes a DataFrame on Spark, is changed there, and the job continues with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.errors import JobExecutionError
from firesteel.state_processor import SavepointReader, SavepointWriter
from tests.integration.conftest import MakeEnvironment

pytestmark = pytest.mark.execution("micro-batch")

RECORDS, KEYS = 3000, 7
BONUS = 1_000_000
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
KEY = Types.TUPLE([Types.STRING(), Types.LONG()])


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", PAIR))

    def process_element(self, value: int, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.last.update([(value, self.count.value())])
        yield ctx.get_current_key()[1], self.count.value()


def _counts(env: StreamExecutionEnvironment) -> Any:
    source = NumberSequenceSource(1, RECORDS)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    keyed = numbers.key_by(lambda n: ("key", n % KEYS), KEY)
    return keyed.process(Count()).uid("count")


def test_a_job_goes_on_from_state_that_spark_has_changed(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    env = make_env(parallelism=2, firesteel_epoch_max__records="20")
    _counts(env).print()
    client = env.execute_async("stopped early")
    savepoint = client.stop_with_savepoint(False, str(tmp_path)).result()

    reader = SavepointReader.read(env, savepoint)
    counts = reader.read_keyed_state("count", "count")
    assert counts.schema.simpleString() == ("struct<key:struct<f0:string,f1:bigint>,value:bigint>")
    before = {row.key.f1: row.value for row in counts.collect()}
    assert sum(before.values()) < RECORDS
    last = reader.read_keyed_state("count", "last")
    assert {row.key.f1: row.value[0].f1 for row in last.collect()} == before

    more = counts.selectExpr("key", f"value + {BONUS} as value")
    writer = SavepointWriter.from_existing_savepoint(env, savepoint)
    writer.with_keyed_state("count", "count", more).with_keyed_state(
        "count", "last", last.where("key.f1 <> 0")
    ).write(str(tmp_path / "changed"))

    resumed = make_env(
        parallelism=3,
        state_backend_type="rocksdb",
        execution_state__recovery_path=str(tmp_path / "changed"),
    )
    with _counts(resumed).execute_and_collect() as results:
        records = list(results)
    for key in range(KEYS):
        mine = [count - BONUS for of_key, count in records if of_key == key]
        total = len([number for number in range(1, RECORDS + 1) if number % KEYS == key])
        assert mine == list(range(before.get(key, 0) + 1, total + 1))

    with pytest.raises(JobExecutionError, match="has more than one row"):
        SavepointWriter.new_savepoint(env, 128).with_keyed_state(
            "x", ValueStateDescriptor("count", Types.LONG()), counts.union(counts), KEY
        ).write(str(tmp_path / "twice"))
    assert not (tmp_path / "twice").exists()
