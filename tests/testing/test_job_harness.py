import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.datastream import RuntimeExecutionMode
from firesteel.datastream.functions import MapFunction
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.testing import (
    Fault,
    JobHarness,
    ListSink,
    ManualClock,
    OperatorHarness,
    Pause,
    ScriptedSource,
)


class Life(MapFunction):
    events: list[Any] = []

    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()
        self.seen = runtime_context.get_metrics_group().counter("seen")
        self.events.append(("open", self.index))

    def map(self, value):
        self.seen.inc()
        return (self.index, value)

    def close(self):
        self.events.append(("close", self.index))


@pytest.fixture(autouse=True)
def _fresh():
    Life.events = []


def _lived(env):
    return env.from_collection(range(20)).rebalance().map(Life())


def test_functions_are_opened_and_closed_once_per_subtask():
    harness = JobHarness(_lived, parallelism=3, records_per_epoch=2)
    harness.run()
    assert sorted(Life.events) == sorted(
        [(event, index) for event in ("open", "close") for index in range(3)]
    )
    assert {index for index, _ in harness.collected} == {0, 1, 2}
    assert harness.metrics()["Map.seen"]["count"] == 20
    assert harness.status is JobStatus.FINISHED


def test_cancel_closes_the_functions():
    harness = JobHarness(
        lambda env: env.from_source(ScriptedSource([1], bounded=False), None, "s").map(Life())
    )
    assert harness.run_epoch()
    harness.cancel()
    assert not harness.run_epoch()
    assert harness.status is JobStatus.CANCELED
    assert Life.events == [("open", 0), ("close", 0)]
    assert not harness.run_epoch()


def test_a_failed_job_raises_its_error():
    harness = JobHarness(lambda env: env.from_collection([1, 0]).map(lambda v: 1 // v))
    with pytest.raises(UserFunctionError, match="operator 'Map'"):
        harness.run()
    assert harness.status is JobStatus.FAILED


def test_print_and_several_streams():
    def program(env):
        numbers = env.from_collection([1, 2])
        numbers.print("n")
        return numbers.map(str), numbers.map(float)

    harness = JobHarness(program)
    harness.run()
    assert harness.printed == ["n> 1", "n> 2"]
    assert harness.collected_by_stream == [["1", "2"], [1.0, 2.0]]
    with pytest.raises(InvalidProgramError, match="2 streams"):
        harness.collected


def test_a_batch_program():
    sink = ListSink()

    def program(env):
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        counted = env.from_collection("aab").key_by(lambda c: c).fold(0, lambda n, _: n + 1)
        counted.sink_to(sink)
        return counted

    harness = JobHarness(program, parallelism=2)
    harness.run()
    assert sorted(harness.collected) == sorted(sink.values()) == [1, 2]
    assert harness.status is JobStatus.FINISHED


def test_epochs_read_what_they_may():
    def program(env):
        return env.from_source(ScriptedSource([1, 2, Pause(), 3, 4, 5, 6]), None, "s").map(int)

    harness = JobHarness(program, records_per_epoch=[3, 1])
    seen = []
    while harness.run_epoch():
        seen.append(len(harness.collected))
    assert seen == [2, 3, 6]


def test_a_compiled_job_runs_too():
    from firesteel.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment().set_parallelism(2)
    env.from_collection([1, 2, 3]).print()
    harness = JobHarness(env._compile("compiled"))
    harness.run()
    assert sorted(line.split("> ")[1] for line in harness.printed) == ["1", "2", "3"]


@pytest.mark.parametrize("fault", Fault)
def test_the_last_epochs_survive_faults_too(fault):
    harness = JobHarness(_lived, parallelism=2, records_per_epoch=5)
    faults = dict.fromkeys(harness.places(), fault)
    harness.run(dict.fromkeys(range(1, 20), faults))
    assert sorted(value for _, value in harness.collected) == list(range(20))


def test_a_manual_clock_does_not_go_back():
    clock = ManualClock(10)
    clock.advance(5)
    assert clock() == 15
    with pytest.raises(ValueError, match="cannot go back"):
        clock.set(14)


def test_functions_find_cached_files(tmp_path):
    (tmp_path / "factor.txt").write_text("7")

    class Multiply(MapFunction):
        def open(self, runtime_context):
            path = runtime_context.get_distributed_cache().get_file("factor")
            self.factor = int(Path(path).read_text())

        def map(self, value):
            return value * self.factor

    def program(env):
        env.register_cached_file(str(tmp_path / "factor.txt"), "factor")
        return env.from_collection([1, 2]).map(Multiply())

    harness = JobHarness(program)
    harness.run()
    assert harness.collected == [7, 14]


class TellParameter(MapFunction):
    def open(self, runtime_context):
        self.parameter = runtime_context.get_job_parameter("a", "default")

    def map(self, value):
        return self.parameter


def test_functions_in_both_harnesses_read_the_global_job_parameters():
    def told(stream):
        config = stream.get_execution_environment().get_config()
        config.set_global_job_parameters({"a": 5})
        return stream.map(TellParameter())

    job = JobHarness(lambda env: told(env.from_collection([1])))
    job.run()
    assert job.collected == ["5"]
    with OperatorHarness.of(told) as operator:
        operator.process_element(1)
        assert operator.output == ["5"]


@pytest.mark.parametrize("kind", ["checkpoint", "savepoint"])
def test_a_snapshot_that_was_asked_for_outlives_its_harness(kind):
    def program(env):
        numbers = env.from_collection(list(range(10)))
        return numbers.key_by(lambda value: 0).reduce(lambda a, b: a + b)

    def snapshot():
        harness = JobHarness(program, records_per_epoch=1, checkpoint_every=0)
        harness.run_epoch()
        return getattr(harness, kind)()

    path = snapshot()
    gc.collect()
    resumed = JobHarness(program, checkpoint_every=0).resume(path)
    resumed.run()
    assert resumed.collected[-1] == 45


_HARNESSES = """
import os, sys
from firesteel.testing import JobHarness, ListSink, ScriptedSource
for _ in range(5):
    source, sink = ScriptedSource([1, 2, 3]), ListSink()
    harness = JobHarness(
        lambda env: env.from_source(source, None, "script").sink_to(sink), checkpoint_every=1
    )
    harness.savepoint()
    harness.run()
if sys.argv[1] == "abruptly":
    os._exit(0)
"""


def test_no_directories_are_left_in_the_temporary_directory(tmp_path):
    """A process that ends abruptly, as workers of pytest-xdist do, leaves one for the next."""

    def left_by(how):
        environment = {
            **os.environ,
            "TMPDIR": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        subprocess.run([sys.executable, "-c", _HARNESSES, how], env=environment, check=True)
        return len(list(tmp_path.iterdir()))

    assert left_by("normally") == 0
    assert left_by("abruptly") == 1
    assert left_by("abruptly") == 1
    assert left_by("normally") == 0
