"""Batch mode: the same plan as one Spark job."""

from __future__ import annotations

import os

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource


def test_a_batch_gives_the_last_result_of_each_key(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = NumberSequenceSource(1, 10_000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    sums = numbers.map(lambda x: (x % 3, x)).key_by(lambda pair: pair[0]).sum(1)
    with sums.execute_and_collect() as results:
        assert dict(results) == {
            key: sum(x for x in range(1, 10_001) if x % 3 == key) for key in range(3)
        }


def test_a_batch_uses_several_processes(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = NumberSequenceSource(1, 2_000_000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    processes = numbers.map(lambda x: os.getpid()).key_by(lambda pid: pid).reduce(lambda a, _: a)
    with processes.execute_and_collect() as results:
        assert len(set(results)) == 2
