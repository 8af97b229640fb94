"""Slot sharing groups, slots in the worker, a query that is stopped, a canceled batch, a hang."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from firesteel.common import JobStatus
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import JobCancelledError, JobExecutionError
from tests.integration.conftest import MakeEnvironment
from tests.integration.test_life_of_functions import BufferingSink, written
from tests.late_source import HANGING, HangingSource, hanging_enumerators
from tests.waiting import wait_until


def test_groups_have_slots_of_their_own(make_env: MakeEnvironment) -> None:
    env = make_env(parallelism=2)
    source = NumberSequenceSource(1, 100)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    other = numbers.map(lambda x: -x).slot_sharing_group("other")
    assert env._compile().levels.required_slots == 4
    with other.key_by(lambda x: x % 5).map(lambda x: x).execute_and_collect() as results:
        assert sorted(results) == list(range(-100, 0))


@pytest.mark.execution("micro-batch")
def test_slots_may_live_in_spark_workers_and_state_follows_them(make_env: MakeEnvironment) -> None:
    env = make_env(
        parallelism=2, firesteel_slot__host="in-worker", firesteel_epoch_max__records="100"
    )
    source = NumberSequenceSource(1, 2000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    counts = numbers.map(lambda x: (x % 7, 1)).key_by(lambda pair: pair[0]).sum(1)
    with counts.execute_and_collect() as results:
        everything = list(results)
    assert len(everything) == 2000
    for key in range(7):
        mine = [count for k, count in everything if k == key]
        assert mine == list(range(1, len(mine) + 1))


def endless(env: StreamExecutionEnvironment, directory: Path) -> None:
    source = DataGeneratorSource(lambda i: i, 10**9, RateLimiterStrategy.per_second(100))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.add_sink(BufferingSink(directory))


def test_a_job_whose_query_is_stopped_by_somebody_else_fails_and_closes_its_functions(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    env = make_env(parallelism=1)
    endless(env, tmp_path)
    client = env.execute_async("stopped")
    wait_until(lambda: client.get_overview()["epochs"] > 2)
    job: Any = client._control
    for session in (SparkSession.builder.getOrCreate(), job._runner._executor.session):
        for query in session.streams.active:
            query.stop()
    # In the middle of an epoch, the query's thread may die of a StackOverflowError instead of stopping.
    with pytest.raises(JobExecutionError, match="Job 'stopped' failed"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED
    assert len(written(tmp_path)) > 0


@pytest.mark.execution("micro-batch")
def test_a_batch_job_can_be_canceled(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def forever(value: int) -> int:
        begun.touch()
        time.sleep(0.05)
        return value

    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = NumberSequenceSource(1, 100_000)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(forever).print()
    client = env.execute_async("long batch")
    wait_until(begun.exists)
    started = time.monotonic()
    client.cancel().result()
    assert time.monotonic() - started < 60
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result()


def test_a_job_whose_enumerator_hangs_takes_checkpoints_and_is_canceled_at_once(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    env = make_env(
        parallelism=1,
        execution_checkpointing_interval="100 ms",
        execution_checkpointing_dir=str(tmp_path),
    )
    env.from_source(HangingSource(), WatermarkStrategy.no_watermarks(), "hangs").print()
    with hanging_enumerators():
        client = env.execute_async("hanging")
        assert HANGING.wait(60)
        before = client.get_checkpoints()["counts"]["completed"]
        wait_until(lambda: client.get_checkpoints()["counts"]["completed"] > before + 2)
        client.cancel().result(60)
    assert client.get_job_status().result() is JobStatus.CANCELED
