"""Batch jobs on Spark: Spark sorts, and the operators see one key after the other."""

from __future__ import annotations

import resource
from collections import Counter
from random import Random
from typing import Any

import pytest

from firesteel.common.typeinfo import Types
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.datastream import (
    KeyedProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ListStateDescriptor
from firesteel.protocol.rows import SPARK_SCHEMA, BufferRow
from firesteel.spark.row_sorting import sort_rows
from tests.batch_programs import PROGRAMS, BatchProgram
from tests.integration.conftest import MakeEnvironment
from tests.protocol.test_row_order import ORDER, ROWS


def test_spark_sorts_rows_as_the_harness_does(env: StreamExecutionEnvironment) -> None:
    rows = list(ROWS)
    Random(1).shuffle(rows)
    frame = env.get_spark_session().createDataFrame(rows, SPARK_SCHEMA).coalesce(1)
    found = [
        BufferRow._make([*row[:5], bytes(row[5])]) for row in sort_rows(frame, ORDER).collect()
    ]
    assert found == sorted(rows, key=ORDER.place) == ROWS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.build.__name__)
def test_the_facts_of_flinks_batch_tests(program: BatchProgram, make_env: MakeEnvironment) -> None:
    stream = program(make_env(parallelism=1))
    with stream.execute_and_collect() as results:
        assert list(results) == program.expected


def test_they_hold_for_several_subtasks(make_env: MakeEnvironment) -> None:
    for program in PROGRAMS[:2]:
        with program(make_env(parallelism=2)).execute_and_collect() as results:
            assert Counter(results) == Counter(program.expected)


_RECORDS, _SIZE, _KEYS = 600_000, 1_000, 300
# Room for a fraction of the records. They have 600 MB.
_MEMORY = 160 << 20


class LimitedMemory(KeyedProcessFunction):
    """Keeps the records of a key in its state, in a process that cannot hold all keys."""

    def open(self, runtime_context: Any) -> None:
        self._records = runtime_context.get_list_state(
            ListStateDescriptor("records", Types.PICKLED_BYTE_ARRAY())
        )
        self._before = resource.getrlimit(resource.RLIMIT_DATA)
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + _MEMORY, self._before[1]))

    def close(self) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, self._before)

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[0] == 0:
            # A key whose records alone exceed the memory. It keeps none of them.
            yield 0, 1
            return
        self._records.add(value)
        ctx.timer_service().register_event_time_timer(0)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), len(list(self._records.get()))


def _key(number: int) -> int:
    return 0 if number % 2 else number // 2 % _KEYS


def _record(number: int) -> tuple[int, bytes]:
    return _key(number), number.to_bytes(4, "big") * (_SIZE // 4)


class Scattered(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int.from_bytes(value[1][:4], "big") * 7_919 % 1_000_003


@pytest.mark.slow
@pytest.mark.parametrize("assigner", [None, Scattered()], ids=["no timestamps", "no order"])
def test_a_batch_larger_than_the_memory_of_a_worker(
    make_env: MakeEnvironment, assigner: TimestampAssigner | None
) -> None:
    env = make_env(parallelism=1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = NumberSequenceSource(0, _RECORDS - 1)
    records = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").map(_record)
    if assigner is not None:
        strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)
        records = records.assign_timestamps_and_watermarks(strategy)
    counts = records.key_by(lambda record: record[0]).process(LimitedMemory())
    totals = counts.key_by(lambda count: count[0]).sum(1)
    with totals.execute_and_collect() as results:
        found = dict(results)
    assert found == Counter(_key(number) for number in range(_RECORDS))
