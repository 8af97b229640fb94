"""The thread that writes and deletes checkpoints while the job goes on."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Condition
from typing import Any, TypeVar

from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    CleanUp,
    DeleteCheckpoint,
    WriteSnapshot,
)
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.checkpoint.snapshot_writer import SnapshotWriter
from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.master.job_checkpoints import EdgeDecision
from firesteel.master.job_master import JobMaster

T = TypeVar("T")

_Work = tuple["Future[Any]", Callable[[], Any]]


class SingleThread(Executor):
    """A ThreadPoolExecutor takes nothing any more once the main thread has ended; jobs may run on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_shut_down = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError(f"{self._name} has been shut down")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._work.put((future, lambda: fn(*args, **kwargs)))
        return future

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - it reaches whoever waits for the future
                future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more. What was submitted is done all the same."""
        with self._lock:
            if not self._is_shut_down:
                self._is_shut_down = True
                self._work.put(None)
            thread = self._thread
        if wait and thread is not None:
            thread.join()


_log = logging.getLogger("firesteel")


class CheckpointExecutor:
    """Carries decisions out, in their order, and tells the job master what came of it.

    ``changed`` guards the job master, which is another one for every attempt of the job. Tests
    bring a ``thread`` and a ``clock`` of their own.
    """

    def __init__(
        self,
        writer: SnapshotWriter,
        changed: Condition,
        thread: Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._changed = changed
        self._clock = clock
        self._master: JobMaster | None = None
        self._answers: dict[str, Future[str]] = {}
        self._thread = thread or SingleThread("firesteel-checkpoints")

    def serve(self, master: JobMaster) -> None:
        self._master = master

    def request(self, make: Callable[[str], SnapshotRequest]) -> Future[str]:
        """Ask for a savepoint or checkpoint; its location is the answer."""
        request_id = uuid.uuid4().hex
        answer: Future[str] = Future()
        with self._changed:
            if self._master is None or self._master.status.is_terminal_state():
                answer.set_exception(JobExecutionError("the job is not running"))
                return answer
            self._answers[request_id] = answer
            self._master.request_snapshot(make(request_id))
            self.carry_out(self._master.checkpoints.take_for_edge())
            self._changed.notify_all()
        return answer

    def carry_out(self, decisions: Iterable[EdgeDecision]) -> None:
        """The caller holds the lock."""
        master = self._master
        assert master is not None
        for decision in decisions:
            match decision:
                case WriteSnapshot():
                    self._thread.submit(self._write, decision, master)
                case DeleteCheckpoint() | CleanUp():
                    self._thread.submit(self._delete, decision)
                case AnswerRequest():
                    self._answer(decision)

    def _write(self, order: WriteSnapshot, master: JobMaster) -> None:
        checkpoint_id = order.metadata.checkpoint_id
        try:
            written = self._writer.write(order)
        except Exception as error:  # noqa: BLE001 - storage may raise anything; the job decides
            _log.warning("checkpoint %d could not be written: %s", checkpoint_id, error)
            with self._changed:
                master.snapshot_failed(checkpoint_id, error, self._clock())
                self._go_on(master)
            return
        with self._changed:
            master.snapshot_written(
                written.checkpoint_id, written.location, written.metadata, self._clock()
            )
            self._go_on(master)

    def _go_on(self, master: JobMaster) -> None:
        self.carry_out(master.checkpoints.take_for_edge())
        self._changed.notify_all()

    def _delete(self, order: DeleteCheckpoint | CleanUp) -> None:
        try:
            self._writer.delete(order)
        except Exception:  # noqa: BLE001 - what is left behind costs space only
            _log.exception("a checkpoint could not be deleted")

    def _answer(self, decision: AnswerRequest) -> None:
        answer = self._answers.pop(decision.request_id, None)
        if answer is None:
            return
        if decision.error is not None:
            answer.set_exception(decision.error)
        else:
            answer.set_result(decision.location or "")

    def settle(self) -> None:
        """Wait for what is under way."""
        self._thread.submit(_nothing).result()

    def close(self) -> None:
        """Wait for what is under way; refuse what nobody will answer any more."""
        self._thread.shutdown(wait=True)
        ended: FiresteelError = JobExecutionError("the job has ended")
        for answer in self._answers.values():
            answer.set_exception(ended)
        self._answers.clear()


def _nothing() -> None:
    """The thread comes to it when it has done what came before."""
