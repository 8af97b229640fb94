"""A batch job waits for enumerators that do not find everything at once."""

from __future__ import annotations

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.data_stream import DataStream
from firesteel.master.source_coordinator import SourceCoordinator, discover_everything
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


def test_each_enumerator_is_asked_when_it_wants_to_be() -> None:
    sources = {"a": LateSource(splits=3, delay=0.25), "b": LateSource(splits=2, delay=0.6)}
    elapsed = [0.0]
    asked: list[tuple[str, float]] = []

    def called(name: str, method: str) -> None:
        if method == "discover_splits":
            asked.append((name, round(elapsed[0], 3)))

    for name, source in sources.items():
        source.called = lambda method, name=name: called(name, method)  # type: ignore[method-assign, misc]
    coordinators = [SourceCoordinator(1, source, 1) for source in sources.values()]

    def wait(seconds: float) -> None:
        elapsed[0] += seconds

    assert discover_everything(coordinators, wait, lambda: False)
    assert asked == [("a", 0.0), ("b", 0.0), ("a", 0.25), ("a", 0.5), ("b", 0.6)]


def test_a_job_that_is_canceled_while_its_splits_are_looked_for_reads_nothing() -> None:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        return env.from_source(LateSource(delay=3600.0), None, "late")

    harness = JobHarness(program, parallelism=2)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        harness.cancel()

    harness._let_pass = wait  # type: ignore[method-assign]
    harness.run()
    assert harness.status is JobStatus.CANCELED
    assert harness.collected == []
    assert sum(waited) < 1.0
