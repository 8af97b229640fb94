"""Batch mode: the same plan as one Spark job."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import JobStatus
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Committer, SourceSplit, SplitEnumerator
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.testing import ListSink
from tests.integration.conftest import MakeEnvironment
from tests.waiting import wait_until

pytestmark = pytest.mark.execution("micro-batch")


def test_a_batch_is_one_spark_job_with_a_stage_a_level_and_gives_the_last_result_of_each_key(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    sink = ListSink()
    source = NumberSequenceSource(1, 10_000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    sums = numbers.map(lambda x: (x % 3, x)).key_by(lambda pair: pair[0]).sum(1)
    sums.sink_to(sink)
    levels = env._compile().levels
    job_id = env.execute("sums").get_job_id()
    assert sorted(sink.values()) == [
        (key, sum(x for x in range(1, 10_001) if x % 3 == key)) for key in range(3)
    ]
    tracker = env.get_spark_session().sparkContext.statusTracker()
    # The tracker hears of jobs a moment later, in their order.
    wait_until(lambda: tracker.getJobIdsForGroup(f"firesteel-{job_id}"))
    (job,) = tracker.getJobIdsForGroup(f"firesteel-{job_id}")
    assert len(tracker.getJobInfo(job).stageIds) == len(levels.slots) == 2


def test_a_batch_uses_several_processes(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = NumberSequenceSource(1, 2_000_000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    processes = numbers.map(lambda x: os.getpid()).key_by(lambda pid: pid).reduce(lambda a, _: a)
    with processes.execute_and_collect() as results:
        assert len(set(results)) == 2


def test_a_cached_stream_is_computed_once_until_it_is_invalidated(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    env = make_env(parallelism=2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    calls = tmp_path / "calls"

    def square(number: int) -> int:
        with calls.open("a") as file:
            file.write(f"{number}\n")
        return number * number

    cached = env.from_collection(range(10)).map(square).cache()
    assert sorted(cached.execute_and_collect(limit=100)) == [n * n for n in range(10)]
    assert min(cached.map(lambda n: -n).execute_and_collect(limit=100)) == -81
    assert len(calls.read_text().splitlines()) == 10

    # A job that is ended early has not written everything, so it has not cached anything.
    other = env.from_collection(range(10)).map(square).cache()
    assert len(other.execute_and_collect(limit=1)) == 1
    assert len(other.execute_and_collect(limit=100)) == 10
    calls.write_text("\n" * 10)

    # What was made of a cached stream keeps its records.
    negative = cached.map(lambda n: -n)
    cached.invalidate()
    gc.collect()
    assert min(negative.execute_and_collect(limit=100)) == -81
    assert len(calls.read_text().splitlines()) == 10
    assert len(cached.execute_and_collect(limit=100)) == 10
    assert len(calls.read_text().splitlines()) == 20


class UnwillingCommitter(Committer):
    def commit(self, committables: Sequence[Any]) -> None:
        raise OSError("the disk is gone")


class UnwillingSink(ListSink):
    def create_committer(self) -> Committer:
        return UnwillingCommitter()


def test_a_batch_whose_commit_fails_has_failed(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([1]).sink_to(UnwillingSink()).name("unwilling")
    client = env.execute_async("uncommitted")
    with pytest.raises(UserFunctionError, match="disk is gone") as failure:
        client.get_job_execution_result().result()
    assert "Job 'uncommitted' failed: operator 'unwilling: Writer'" in str(failure.value)
    assert client.get_job_status().result() is JobStatus.FAILED


def test_a_stream_of_a_streaming_job_cannot_be_cached(make_env: MakeEnvironment) -> None:
    env = make_env(parallelism=1)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    cached = env.from_collection([1]).cache()
    with pytest.raises(InvalidProgramError, match="only in batch jobs"):
        cached.execute_and_collect()


class EndlessSearch(SplitEnumerator):
    def discover_splits(self) -> list[SourceSplit]:
        return []

    def is_complete(self) -> bool:
        return False

    def next_discovery_delay(self) -> float:
        return 60.0

    def snapshot_state(self) -> None:
        return None


class NeverFound(NumberSequenceSource):
    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return EndlessSearch()


def test_a_batch_that_waits_for_its_splits_can_be_canceled(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_source(NeverFound(1, 2), WatermarkStrategy.no_watermarks(), "nothing").print()
    client = env.execute_async("waiting")
    wait_until(lambda: client.get_job_status().result() is JobStatus.RUNNING)
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
