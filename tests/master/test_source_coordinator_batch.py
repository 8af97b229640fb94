"""A batch job waits for enumerators that do not find everything at once."""

from __future__ import annotations

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.data_stream import DataStream
from firesteel.testing import JobHarness
from tests.late_source import LateSource


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.BATCH, RuntimeExecutionMode.STREAMING])
def test_splits_that_are_found_later_are_read(mode: RuntimeExecutionMode) -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        env.set_runtime_mode(mode)
        first = env.from_source(LateSource(splits=3, delay=0.5), None, "first")
        second = env.from_source(LateSource(splits=2, delay=1.5), None, "second")
        return first.union(second.map(lambda value: -value))

    harness = JobHarness(program, parallelism=2)
    harness.run()
    assert sorted(harness.collected) == [-2, -1, 1, 2, 3]
    # The sources are waited for side by side, as long as they say.
    assert 1.5 <= harness.now_millis() / 1000 < 2.0


def _batch(first: LateSource, second: LateSource) -> JobHarness:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        return env.from_source(first, None, "a").union(env.from_source(second, None, "b"))

    return JobHarness(program)


def test_each_enumerator_is_asked_when_it_wants_to_be() -> None:
    sources = {"a": LateSource(splits=3, delay=0.25), "b": LateSource(splits=2, delay=0.6)}
    asked: list[tuple[str, float]] = []

    class Recording(LateSource):
        def __init__(self, name: str) -> None:
            super().__init__(splits=sources[name].splits, delay=sources[name].delay)
            self.name = name

        def called(self, method: str) -> None:
            if method == "discover_splits":
                asked.append((self.name, harness.now_millis() / 1000))

    harness = _batch(Recording("a"), Recording("b"))
    harness.run_epoch()
    assert asked == [("a", 0.0), ("b", 0.0), ("a", 0.25), ("a", 0.5), ("b", 0.6)]


def test_a_job_that_is_canceled_while_its_splits_are_looked_for_reads_nothing() -> None:
    class Canceling(LateSource):
        def called(self, method: str) -> None:
            if method == "discover_splits" and harness.now_millis():
                harness.cancel()

    harness = _batch(LateSource(delay=3600.0), Canceling(delay=1.0))
    harness.run()
    assert harness.status is JobStatus.CANCELED
    assert harness.collected == []
    assert harness.now_millis() == 1000
