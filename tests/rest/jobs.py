"""Real jobs in threads of the test process, without Spark, for tests of the REST server."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest import mock

from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.filesystems.scratch import scratch_of_process
from firesteel.master.edge import ThreadedEdge
from firesteel.master.job_runner import JobRunner
from firesteel.master.running_jobs import RunningJob
from firesteel.protocol.execution import Placement
from firesteel.protocol.program import JobProgram
from firesteel.testing.harness_slots import HarnessExecutor, HarnessSlots


class QuietEdge(ThreadedEdge):
    """Drops the lines of print sinks."""

    def print_lines(self, lines: list[str]) -> None:
        pass


def launch(stream_graph, levels, settings) -> RunningJob:
    directory = tempfile.mkdtemp(dir=scratch_of_process("rest-test").path)

    def slots(program: JobProgram) -> HarnessSlots:
        return HarnessSlots(
            program,
            Random(0),
            1 << 20,
            lambda: int(time.time() * 1000),
            pass_time=lambda _: time.sleep(0.01),
            before_close=lambda: None,
        )

    def executor(*_: object) -> HarnessExecutor:
        return HarnessExecutor(Placement(segment_directory=f"{directory}/segments"), slots)

    job_id = JobID.generate()
    runner = JobRunner(str(job_id), stream_graph, levels, settings, executor, QuietEdge())
    return RunningJob(job_id, settings, runner)


def start(
    dispatcher: Dispatcher,
    build: Callable[[StreamExecutionEnvironment], object],
    name: str = "a job",
    **settings: str,
) -> RunningJob:
    """Start a job in this process. Names of settings have ``__`` for dots, ``_`` for hyphens."""
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    build(env)
    found: list[RunningJob] = []

    def launch_and_keep(*arguments: object) -> RunningJob:
        found.append(launch(*arguments))
        return found[0]

    with mock.patch("firesteel.master.launcher.launch", launch_and_keep):
        env.execute_async(name)
    dispatcher.add(found[0])
    return found[0]


@contextmanager
def ended(*jobs: RunningJob) -> Iterator[None]:
    """Cancel the jobs at the end of the block, and wait for that."""
    try:
        yield
    finally:
        for job in jobs:
            job.cancel().result(30)


def checkpointed(directory: Path) -> dict[str, str]:
    return {
        "execution__checkpointing__interval": "50 ms",
        "execution__checkpointing__dir": str(directory / "checkpoints"),
        "execution__checkpointing__savepoint_dir": str(directory / "savepoints"),
        "execution__checkpointing__externalized_checkpoint_retention": "RETAIN_ON_CANCELLATION",
    }
