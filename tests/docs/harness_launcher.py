"""Runs the jobs of documentation examples in this process, without Spark.

``on_harness`` replaces the launcher, so that ``env.execute()`` and its siblings run on
``firesteel.testing.JobHarness``. Processing time jumps, so no example waits for the clock.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any
from unittest import mock

from firesteel.checkpoint.rules.requests import StopMode
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.config import checkpoint_options
from firesteel.datastream.stream_execution_environment.job_compiler import CompiledJob
from firesteel.errors import JobCancelledError
from firesteel.testing import JobHarness

# Enough for an unbounded job to show its first results. It continues when it is asked for more.
_FIRST_EPOCHS = 20


class HarnessJob:
    """The ``JobControl`` of a job on a harness.

    A bounded job has ended when it has been launched. An unbounded one has run some epochs, and
    runs more for each savepoint or checkpoint, until it is canceled or stopped.
    """

    def __init__(self, job: CompiledJob) -> None:
        self.job_id = JobID.generate()
        self._settings = job.settings
        self._harness = JobHarness(job)
        self._printed = 0
        self._result: Future[JobExecutionResult] = Future()
        epochs = 0
        while not self._result.done() and (job.settings.bounded or epochs < _FIRST_EPOCHS):
            self._run_epoch()
            epochs += 1

    def _run_epoch(self) -> None:
        continues = self._harness.run_epoch()
        lines = self._harness.printed[self._printed :]
        self._printed += len(lines)
        sys.stdout.writelines(f"{line}\n" for line in lines)
        if not continues:
            self._end()

    def _end(self) -> None:
        if self.status() is JobStatus.CANCELED:
            self._result.set_exception(JobCancelledError(str(self.job_id)))
        elif (failure := self._harness.master.failure) is not None:
            self._result.set_exception(failure)
        else:
            name = self._settings.job_name
            self._result.set_result(JobExecutionResult(self.job_id, 0, self.accumulators(), name))

    def _answered(self, answer: Future[str], *, ends: bool) -> Future[str]:
        while not self._result.done() and (ends or not answer.done()):
            self._run_epoch()
        return answer

    # firesteel.common.job_client.JobControl

    def status(self) -> JobStatus:
        return self._harness.status

    def cancel(self) -> Future[None]:
        self._harness.cancel()
        while not self._result.done():
            self._run_epoch()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def cancel_and_wait(self) -> None:
        self.cancel()

    def result(self) -> Future[JobExecutionResult]:
        return self._result

    def accumulators(self) -> dict[str, Any]:
        return dict(self._harness.master.metrics.user_counters())

    def metrics(self) -> dict[str, Any]:
        return self._harness.metrics()

    def overview(self) -> dict[str, Any]:
        return self._harness.master.overview()

    def savepoint(
        self, directory: str | None, stop: str | None, native: bool = False
    ) -> Future[str]:
        default = self._settings.configuration.get(checkpoint_options.SAVEPOINT_DIR)
        answer = self._harness.request_savepoint(
            directory or default, None if stop is None else StopMode(stop), native=native
        )
        return self._answered(answer, ends=stop is not None)

    def checkpoint(self) -> Future[str]:
        return self._answered(self._harness.request_checkpoint(), ends=False)

    def checkpoints(self) -> dict[str, Any]:
        return self._harness.master.checkpoints.overview()

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        stats = self._harness.master.checkpoints.coordinator.stats.find(checkpoint_id)
        return None if stats is None else stats.details()


def _launch(stream_graph: Any, levels: Any, settings: Any) -> HarnessJob:
    return HarnessJob(CompiledJob(stream_graph, levels.job_graph, levels, settings))


@contextmanager
def on_harness() -> Iterator[None]:
    """Jobs that are launched in the block run on a harness."""
    with mock.patch("firesteel.master.launcher.launch", _launch):
        yield
