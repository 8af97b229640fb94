"""An environment whose jobs are recorded instead of run."""

from __future__ import annotations

import sys
import types
from concurrent.futures import Future
from typing import Any

import pytest

from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.stream_execution_environment.job_compiler import CompiledJob
from firesteel.errors import JobCancelledError
from firesteel.graph.operator_specs import CollectSpec
from firesteel.graph.settings import DEFAULT_JOB_NAME


class FakeJob:
    """A job that ends when the test says so."""

    def __init__(self, job: CompiledJob) -> None:
        self.job = job
        self.cancelled = False
        self._result: Future[JobExecutionResult] = Future()
        self.job_id = JobID("0" * 32)

    def names(self) -> list[str]:
        return [node.name for node in self.job.stream_graph.nodes.values()]

    def collector(self) -> Any:
        graph = self.job.stream_graph
        (node_id,) = [
            id_ for id_, node in graph.nodes.items() if isinstance(node.spec, CollectSpec)
        ]
        return graph.driver_objects[node_id]

    def finish(self, error: BaseException | None = None) -> None:
        if error is not None:
            self._result.set_exception(error)
        else:
            self._result.set_result(JobExecutionResult(self.job_id, 1))

    # firesteel.common.job_client.JobControl

    def status(self) -> JobStatus:
        return JobStatus.FINISHED if self._result.done() else JobStatus.RUNNING

    def cancel(self) -> Future[None]:
        self.cancelled = True
        self.finish(JobCancelledError())
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def cancel_and_wait(self) -> None:
        self.cancel().result()

    def interrupt(self) -> None:
        self.cancel_and_wait()

    def result(self) -> Future[JobExecutionResult]:
        return self._result

    def accumulators(self) -> dict[str, Any]:
        return {}

    def metrics(self) -> dict[str, Any]:
        return {}


class Launcher:
    """Stands in for firesteel.master.launcher."""

    def __init__(self) -> None:
        self.jobs: list[FakeJob] = []
        self.end_at_once = True
        self.error: BaseException | None = None
        # What a job does as soon as it is launched.
        self.run: Any = lambda job: None

    def launch(self, stream_graph: Any, levels: Any, settings: Any) -> FakeJob:
        if self.error is not None:
            raise self.error
        job = FakeJob(CompiledJob(stream_graph, levels.job_graph, levels, settings))
        self.jobs.append(job)
        self.run(job)
        if self.end_at_once:
            job.finish()
        return job


@pytest.fixture(name="launcher")
def _launcher(monkeypatch: pytest.MonkeyPatch) -> Launcher:
    launcher = Launcher()
    module = types.ModuleType("firesteel.master.launcher")
    module.launch_of_program = launcher.launch  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "firesteel.master.launcher", module)
    return launcher


@pytest.fixture(name="env")
def _env(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> StreamExecutionEnvironment:
    monkeypatch.delenv("FIRESTEEL_CONF_DIR", raising=False)
    monkeypatch.delenv("FLINK_CONF_DIR", raising=False)
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


@pytest.fixture(name="node")
def _node(env: StreamExecutionEnvironment) -> Any:
    """The node that the environment's program has under a name."""

    def node(name: str) -> Any:
        graph = env._compile(DEFAULT_JOB_NAME).stream_graph
        (found,) = [node for node in graph.nodes.values() if node.name == name]
        return found

    return node
