"""Futures, job ids, states, results and clients."""

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest

from firesteel.common import (
    CompletableFuture,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
    SavepointFormatType,
)


class FakeJob:
    def __init__(self):
        self.job_id = JobID("0123456789abcdef" * 2)
        self.ended: Future = Future()

    def status(self):
        return JobStatus.FINISHED if self.ended.done() else JobStatus.RUNNING

    def cancel(self):
        return self.ended

    def result(self):
        return self.ended

    def accumulators(self):
        return {"count": 3}

    def metrics(self):
        return {"map.lines": 7}

    def savepoint(self, directory, stop, native=False):
        answer: Future = Future()
        answer.set_result(f"{directory} {stop}" + (" native" if native else ""))
        return answer


def test_a_client_speaks_for_its_job():
    job: Any = FakeJob()
    client = JobClient(job)
    assert str(client.get_job_id()) == "0123456789abcdef" * 2
    assert client.get_job_status().result() is JobStatus.RUNNING
    outcome = client.get_job_execution_result()
    assert not outcome.done()
    job.ended.set_result(JobExecutionResult(job.job_id, 12, {"count": 3}))
    assert outcome.done()
    assert outcome.result().get_net_runtime() == 12
    assert outcome.result().get_accumulator_result("count") == 3
    assert outcome.result().get_accumulator_result("none") is None
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_accumulators().result() == {"count": 3}
    assert client.get_metrics() == {"map.lines": 7}


def test_savepoints_are_asked_of_the_job():
    job: Any = FakeJob()
    client = JobClient(job)
    assert client.trigger_savepoint().result() == "None None"
    assert client.stop_with_savepoint(True, "/data").result() == "/data drain"
    assert client.stop_with_savepoint(False, "/data").result() == "/data suspend"
    native = SavepointFormatType.NATIVE
    assert client.trigger_savepoint("/data", native).result() == "/data None native"
    assert client.stop_with_savepoint(True, None, native).result() == "None drain native"


def test_a_future_raises_what_the_work_raised():
    inner: Future = Future()
    future = CompletableFuture(inner, lambda value: value + 1)
    inner.set_exception(KeyError("x"))
    assert isinstance(future.exception(), KeyError)
    with pytest.raises(KeyError):
        future.result()


def test_a_future_converts_and_can_be_cancelled():
    inner: Future = Future()
    inner.set_result(1)
    assert CompletableFuture(inner, lambda value: value + 1).result() == 2
    waiting: CompletableFuture = CompletableFuture(Future())
    assert waiting.cancel()
    assert waiting.cancelled()
    assert isinstance(waiting.exception(), CancelledError)


def test_canceling_a_future_ends_the_waiting_of_other_threads_but_not_the_work():
    work: Future = Future()
    one: CompletableFuture = CompletableFuture(work)
    other: CompletableFuture = CompletableFuture(work)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(one.result, 10)
        assert one.cancel()
        with pytest.raises(CancelledError):
            waiting.result(10)
    work.set_result("done")  # would fail if the work's own future were canceled
    assert other.result() == "done"
    assert not other.cancel()
    assert one.cancel()
    assert one.cancelled()


def test_waiting_for_a_future_can_time_out():
    with pytest.raises(TimeoutError):
        CompletableFuture(Future()).result(timeout=0.01)


def test_job_ids():
    one, other = JobID.generate(), JobID.generate()
    assert one != other
    assert len(str(one)) == 32
    assert JobID(str(one)) == one
    assert len({one, JobID(str(one).upper())}) == 1
    with pytest.raises(ValueError, match="32 hexadecimal"):
        JobID("xyz")


def test_terminal_states():
    terminal = {status for status in JobStatus if status.is_terminal_state()}
    assert terminal == {
        JobStatus.FAILED,
        JobStatus.CANCELED,
        JobStatus.FINISHED,
        JobStatus.SUSPENDED,
    }
    globally = {status for status in JobStatus if status.is_globally_terminal_state()}
    assert globally == terminal - {JobStatus.SUSPENDED}


def test_a_result_says_what_happened():
    text = str(JobExecutionResult(JobID("a" * 32), 12, {"count": 3}))
    assert "Job Runtime: 12 ms" in text
    assert "- count: 3" in text
