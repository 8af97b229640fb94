"""A job of a session, whose master is a process of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from pathlib import Path
from typing import Any

from firesteel.checkpoint.rules.stats import CheckpointStatsTracker
from firesteel.common.configuration import Configuration
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.config import options
from firesteel.config.sensitive import hide_secrets
from firesteel.dispatcher.channel import Channel
from firesteel.dispatcher.durable_results import DurableResultReader
from firesteel.dispatcher.job_handle import NoAnswerError
from firesteel.dispatcher.results import ResultReader
from firesteel.errors import FiresteelError, JobCancelledError, JobExecutionError
from firesteel.filesystems.file_systems import qualify
from firesteel.master.job_description import FailureRecord, JobDescription, record_failure
from firesteel.protocol.error_json import decode_error
from firesteel.protocol.submission import MANIFEST, Manifest

# A job master answers at once, unless its process hangs.
_ANSWER_SECONDS = 5.0
# Requests within this time share an answer, so that many clients cost a job as much as one.
_FRESH_SECONDS = 0.2
# The time beyond the cancellation timeout after which a job master that still runs is killed. One
# that has not started is killed after this time alone.
_CANCEL_SECONDS = 30.0
RESULTS = "results"
# The files of the job master's standard error and standard output, by their endings in REST.
MASTER_FILES = {"log": "log", "out": "stdout"}


class SessionJob:
    """A job from its submission to its end. It waits for slots first.

    Args:
        manifest: The facts about the job.
        directory: The unpacked submission. The job's output is written there.
        results: Makes the reader of a collected stream that outlives this master.
        replace_dead: Starts a job again whose master was killed, or could not start yet for the
            given reason. Returns False if it does not.
    """

    def __init__(
        self,
        manifest: Manifest,
        directory: Path,
        results: Callable[[int], DurableResultReader] | None = None,
        replace_dead: Callable[[SessionJob, FiresteelError | None], bool] | None = None,
    ) -> None:
        self.job_id = JobID(manifest.job_id)
        self.manifest = manifest
        self.directory = directory
        self._description = JobDescription.from_json(manifest.description)
        self._settings = Configuration.from_dict(manifest.configuration)
        self._lock = threading.Lock()
        self._status = JobStatus.CREATED
        # The session had too few slots for real time.
        self._runs_in_epochs = False
        self._submitted_at = _now()
        self._documents: dict[str, Any] = {
            "timestamps": {JobStatus.CREATED.name: self._submitted_at},
            "failures": [],
            "restarts": 0,
            "overview": _no_work(self._description),
            "accumulators": {},
            "metrics": {},
            "checkpoints": CheckpointStatsTracker(()).overview(),
        }
        self._details: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._calls: dict[int, Future[Any]] = {}
        self._next_call = 0
        # The last answers by call, each with the time of its question and the changes before it.
        self._answers: dict[str, tuple[float, int, Future[Any]]] = {}
        self._changes = 0
        # The job master answers calls.
        self._has_started = False
        self._is_canceled = False
        #: The job master has told the end of the job, and so could note it before.
        self.has_told_end = False
        # The reason for which the job master could not start yet.
        self._postponed: FiresteelError | None = None
        # The job master has not answered in time. Its next message ends that.
        self._hangs = False
        self._result: Future[JobExecutionResult] = Future()
        self._gone: Future[None] = Future()
        self._durable_results = results
        self._replace_dead = replace_dead
        self._readers: dict[int, DurableResultReader] = {}

    @property
    def name(self) -> str:
        return self.manifest.name

    def slot_choices(self) -> tuple[int, ...]:
        """Return the numbers of slots that the job can run with, the preferred one first.

        In real time, all levels run at the same time. In micro-batches, they run one by one.
        """
        slots = self._description.slots
        execution = self._settings.get(options.EXECUTION)
        if self._description.is_batch or self.manifest.has_dataframes:
            execution = "micro-batch"
        return {
            "micro-batch": (max(slots),),
            "real-time": (sum(slots),),
        }.get(execution, (sum(slots), max(slots)))

    # The process

    def start(self, slots: int, environment: Mapping[str, str], workers: str) -> None:
        """Start the process of the job master, unless the job has ended before.

        Args:
            slots: The number of slots that the job has got, one of its choices.
            environment: Variables with which the process attaches to Spark.
            workers: The name of its Python workers.
        """
        self._runs_in_epochs = slots < sum(self._description.slots)
        if self._runs_in_epochs:
            self._override(options.EXECUTION.key, "micro-batch")
        ours, theirs = socket.socketpair()
        with self._lock, theirs:
            if self._result.done():
                ours.close()
                return
            with (
                (self.directory / MASTER_FILES["out"]).open("ab") as stdout,
                (self.directory / MASTER_FILES["log"]).open("ab") as log,
            ):
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "firesteel.dispatcher.job_process",
                        str(theirs.fileno()),
                        str(self.directory),
                        workers,
                    ],
                    env={**os.environ, **environment},
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=log,
                    pass_fds=[theirs.fileno()],
                    # Ctrl-C on the session's terminal is for the session.
                    start_new_session=True,
                )
            self._channel = Channel(ours.detach())
        threading.Thread(target=self._listen, name=f"firesteel-{self.name}", daemon=True).start()

    def _override(self, key: str, value: str) -> None:
        """Change a setting of the job before it starts."""
        configuration = {**self.manifest.configuration, key: value}
        self.manifest = replace(self.manifest, configuration=configuration)
        (self.directory / MANIFEST).write_text(self.manifest.to_json())

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _listen(self) -> None:
        assert self._channel is not None
        assert self._process is not None
        try:
            while (message := self._channel.receive()) is not None:
                self._take(message)
                if message.get("event") in ("ended", "refused", "postponed"):
                    # The process ends when it has no more to read.
                    self._channel.end()
        finally:
            code = self._process.wait()
            self._channel.close()
            if not self._is_replaced(code):
                self._end(JobStatus.FAILED, self._postponed or _died(code))
            self._gone.set_result(None)

    def _is_replaced(self, code: int) -> bool:
        """Start the job again if its master was killed by a signal, or could not start yet.

        Calls to it fail.
        """
        was_ended = code < 0 or self._postponed is not None
        if not was_ended or self._result.done() or self._replace_dead is None:
            return False
        if self._is_canceled:
            self._end(JobStatus.CANCELED, JobCancelledError(str(self.job_id)))
            return False
        if not self._replace_dead(self, self._postponed):
            return False
        with self._lock:
            calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            call.set_exception(_died(code))
        return True

    def _take(self, message: dict[str, Any]) -> None:
        self._hangs = False
        match message:
            case {"event": "started"}:
                self._has_started = True
            case {"event": "postponed", "error": error}:
                self._postponed = decode_error(error)
            case {"event": "refused", "error": error}:
                self._end(JobStatus.FAILED, decode_error(error))
            case {"event": "ended"}:
                self.has_told_end = True
                self._documents.update(message["documents"])
                self._details = message["details"]
                error = message["error"]
                self._end(
                    JobStatus[message["status"]],
                    None if error is None else decode_error(error),
                    message["runtime"],
                )
            case {"id": number}:
                call = self._calls.pop(number, None)
                if call is None:
                    return
                if "error" in message:
                    call.set_exception(decode_error(message["error"]))
                else:
                    call.set_result(message["answer"])

    def _end(self, status: JobStatus, error: FiresteelError | None, runtime: int = 0) -> None:
        """Record the end of the job. Only the first call has an effect."""
        with self._lock:
            if self._result.done() or self._status.is_terminal_state():
                return
            self._status = status
            timestamps = self._documents["timestamps"]
            if status.name not in timestamps:
                timestamps[status.name] = _now()
            if status is JobStatus.FAILED and error is not None and not self._documents["failures"]:
                failure = record_failure(error, timestamps[status.name], restarted=False)
                self._documents["failures"] = [failure]
            self._documents["overview"]["status"] = status.name
            calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            call.set_exception(error or JobExecutionError("the job has ended"))
        if error is None:
            accumulators = self._documents["accumulators"]
            result = JobExecutionResult(self.job_id, runtime, accumulators, self.name)
            self._result.set_result(result)
        else:
            self._result.set_exception(error)

    def suspend(self) -> None:
        """End the job, but keep its checkpoints: its process ends when the channel does."""
        if self._channel is None:
            self._end(JobStatus.SUSPENDED, JobCancelledError(str(self.job_id)))
        else:
            self._channel.end()

    def abandon(self, message: str) -> None:
        """Kill the process of the job master: a different master may run the job, now or later."""
        self.kill()
        self._end(JobStatus.SUSPENDED, JobExecutionError(message))

    def when_gone(self, call: Callable[[Any], None]) -> None:
        """Call a function once the process of the job master has ended."""
        self._gone.add_done_callback(call)

    def wait_until_gone(self, seconds: float) -> bool:
        """Wait for the end of the process. Return False if it takes longer."""
        if self._process is None:
            return True
        return bool(wait([self._gone], max(0.0, seconds)).done)

    def kill(self) -> None:
        """End the process of the job master by force."""
        if self._process is not None:
            self._process.kill()

    # Calls

    def _ask(self, call: str, *arguments: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        with self._lock:
            if self._channel is None or self._status.is_terminal_state():
                answer.set_exception(JobExecutionError("the job is not running"))
                return answer
            self._next_call += 1
            number = self._next_call
            self._calls[number] = answer
            channel = self._channel
        # If the process is gone, the reader of the channel ends the job, and with it this call.
        with contextlib.suppress(OSError):
            channel.send({"id": number, "call": call, "arguments": arguments})
        return answer

    def _answer_to(self, call: str) -> Any:
        """Ask the job master for a document, or return its answer of a moment ago.

        Raises NoAnswerError if the job master hangs. Only the first call waits for that.
        """
        now, changes = time.monotonic(), self._changes
        asked_at, changes_before, answer = self._answers.get(call, (now, -1, None))
        is_old = answer is not None and answer.done() and now - asked_at > _FRESH_SECONDS
        if answer is None or is_old or changes_before != changes:
            asked_at, answer = now, self._ask(call)
            self._answers[call] = (now, changes, answer)
        return self._wait(answer, asked_at + _ANSWER_SECONDS - now)

    def _wait(self, answer: Future[Any], seconds: float) -> Any:
        """Wait for an answer. Raises NoAnswerError if the job master hangs."""
        try:
            return answer.result(0.0 if self._hangs else max(0.0, seconds))
        except FutureTimeoutError:
            self._hangs = True
            raise self._no_answer() from None

    def _no_answer(self) -> NoAnswerError:
        return NoAnswerError(
            f"The job master of {self.name} does not answer (process {self.process_id}). Cancel the "
            "job if this does not pass."
        )

    def _question(self, call: str, *arguments: Any) -> Future[Any]:
        """Ask the job master, unless it hangs: questions must not pile up before it."""
        if not self._hangs:
            return self._ask(call, *arguments)
        answer: Future[Any] = Future()
        answer.set_exception(self._no_answer())
        return answer

    def _change(self, call: str, *arguments: Any) -> Future[Any]:
        """Ask for a change of the job. Answers from before its end are out of date."""
        self._changes += 1
        changed = self._ask(call, *arguments)
        changed.add_done_callback(self._has_changed)
        return changed

    def _has_changed(self, _: Future[Any]) -> None:
        self._changes += 1

    def _document(self, name: str) -> Any:
        """Return the newest answer. Of a job that waits, has ended or hangs it is the last one."""
        if self._channel is not None and not self._status.is_terminal_state():
            try:
                document = self._answer_to(name)
            except FiresteelError:
                return self._documents[name]
            with self._lock:
                if not self._status.is_terminal_state():
                    self._documents[name] = document
        return self._documents[name]

    def status(self) -> JobStatus:
        if self._channel is not None and not self._status.is_terminal_state():
            try:
                status = JobStatus[self._answer_to("status")]
            except FiresteelError:
                return self._status
            with self._lock:
                # The job is over once its result is there.
                if not self._status.is_terminal_state() and not status.is_terminal_state():
                    self._status = status
        return self._status

    def timestamps(self) -> dict[str, int]:
        document: dict[str, int] = self._document("timestamps")
        return {**document, "INITIALIZING": self._submitted_at}

    def description(self) -> JobDescription:
        return self._description

    def configuration(self) -> dict[str, str]:
        return hide_secrets(self.manifest.configuration)

    def failures(self) -> list[FailureRecord]:
        found = self._document("failures")
        return [one if isinstance(one, FailureRecord) else FailureRecord(**one) for one in found]

    def restarts(self) -> int:
        return int(self._document("restarts"))

    def overview(self) -> dict[str, Any]:
        document: dict[str, Any] = self._document("overview")
        return document

    def accumulators(self) -> dict[str, Any]:
        document: dict[str, Any] = self._document("accumulators")
        return document

    def metrics(self) -> dict[str, Any]:
        document: dict[str, Any] = self._document("metrics")
        return document

    def checkpoints(self) -> dict[str, Any]:
        document: dict[str, Any] = self._document("checkpoints")
        return document

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        if self._status.is_terminal_state() or self._channel is None:
            return self._details.get(str(checkpoint_id))
        try:
            answer = self._question("checkpoint_details", checkpoint_id)
            details: dict[str, Any] | None = self._wait(answer, _ANSWER_SECONDS)
        except NoAnswerError:
            raise
        except FiresteelError:
            # The job has ended meanwhile, and has left its details.
            details = self._details.get(str(checkpoint_id))
        return details

    def cancel(self) -> Future[None]:
        """Cancel the job. A job master that does not end in time is killed."""
        with self._lock:
            self._is_canceled = True
            waits = self._channel is None or self._postponed is not None
        if waits:
            self._end(JobStatus.CANCELED, JobCancelledError(str(self.job_id)))
        else:
            self._change("cancel")
            if self._has_started:
                self._kill_later()
            else:
                self._after(_CANCEL_SECONDS, self._kill_unless_started)
        done: Future[None] = Future()
        self._result.add_done_callback(lambda _: done.set_result(None))
        return done

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after this time, unless the job has ended."""
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()
        self._result.add_done_callback(lambda _: timer.cancel())

    def _kill_unless_started(self) -> None:
        """Kill a job master that hangs while it starts. It does not answer calls."""
        if self._has_started:
            self._kill_later()
        else:
            self._kill_if_it_runs()

    def _kill_later(self) -> None:
        timeout = self._settings.get(options.CANCELLATION_TIMEOUT).total_seconds()
        self._after(timeout + _CANCEL_SECONDS, self._kill_if_it_runs)

    def _kill_if_it_runs(self) -> None:
        self._end(JobStatus.CANCELED, JobCancelledError(str(self.job_id)))
        self.kill()

    def fail(self, error: FiresteelError) -> None:
        """End a job that cannot start."""
        self._end(JobStatus.FAILED, error)

    def savepoint(
        self, directory: str | None, stop: str | None, native: bool = False
    ) -> Future[str]:
        # The working directory of the job's process is deleted with the job.
        return self._change("savepoint", directory and qualify(directory), stop, native)

    def checkpoint(self) -> Future[str]:
        return self._change("checkpoint")

    def plan_rescale(self, parallelism: int | Mapping[str, int]) -> JobDescription:
        answer = self._question("plan_rescale", parallelism)
        return JobDescription.from_json(self._wait(answer, _ANSWER_SECONDS))

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[JobDescription]:
        done: Future[JobDescription] = Future()

        def finish(answer: Future[Any]) -> None:
            error = answer.exception()
            if error is not None:
                done.set_exception(error)
                return
            self._description = JobDescription.from_json(answer.result())
            done.set_result(self._description)

        self._change("rescale", parallelism).add_done_callback(finish)
        return done

    def slots_of(self, description: JobDescription) -> int:
        """Return the slots that the running job would need with a different job graph."""
        in_epochs = self._runs_in_epochs or self._settings.get(options.EXECUTION) == "micro-batch"
        return max(description.slots) if in_epochs else sum(description.slots)

    def ask_slot(
        self, level: int, slot: int, what: str, arguments: Mapping[str, Any]
    ) -> Future[Any]:
        return self._question("ask_slot", level, slot, what, dict(arguments))

    def result(self) -> Future[JobExecutionResult]:
        return self._result

    # Collected records

    def results(self, node: int) -> ResultReader | DurableResultReader:
        """Return the reader of a collected stream."""
        if self._durable_results is None:
            return ResultReader(self.directory / RESULTS / str(node))
        if node not in self._readers:
            self._readers[node] = self._durable_results(node)
        return self._readers[node]


def _now() -> int:
    return int(time.time() * 1000)


def _died(code: int) -> JobExecutionError:
    how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
    return JobExecutionError(
        f"The process of the job master ended {how}. Its last output is in the log of the job. The "
        "checkpoints of the job are still there: start it again with -s and their directory."
    )


def _no_work(description: JobDescription) -> dict[str, Any]:
    """Return the overview of a job that has not started."""
    return {
        "status": JobStatus.CREATED.name,
        "epochs": 0,
        "last_epoch_seconds": 0.0,
        "longest_epoch_seconds": 0.0,
        "vertices": [
            {
                "id": vertex.number,
                "name": vertex.name,
                "subtasks": [{"host": None} for _ in range(vertex.parallelism)],
            }
            for vertex in description.vertices
        ],
    }
