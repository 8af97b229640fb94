"""Carries out the checkpoint decisions of a job: writes, deletes and answers."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial

from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    CleanUp,
    DeleteCheckpoint,
    DeleteSavepoint,
    DiscardCheckpoints,
    WriteSnapshot,
)
from firesteel.checkpoint.snapshot_writer import SnapshotWriter
from firesteel.errors import JobExecutionError, LeadershipLostError
from firesteel.master.decisions import CheckpointDecision
from firesteel.master.edge import log_failure
from firesteel.master.job_master import Event, Raised

_log = logging.getLogger("firesteel")

# A job that ends waits this long for checkpoint storage.
_CLOSE_SECONDS = 60.0


class CheckpointExecutor:
    """Writes in threads of its own, while the job continues.

    Savepoints have a thread of their own, so that a slow one does not delay checkpoints.

    ``post`` takes the events that follow. The executor outlives the attempts of the job.
    """

    def __init__(
        self,
        writer: SnapshotWriter,
        thread: Executor,
        savepoint_thread: Executor,
        post: Callable[[Event], None],
    ) -> None:
        self._writer = writer
        self._thread = thread
        self._savepoint_thread = savepoint_thread
        self._post = post
        self._answers: dict[str, Future[str]] = {}

    def expect(self, answer: Future[str]) -> str:
        """Return an id for a request whose AnswerRequest is for ``answer``."""
        request_id = uuid.uuid4().hex
        self._answers[request_id] = answer
        return request_id

    def carry_out(self, decision: CheckpointDecision) -> None:
        """Carry a decision out, after those before it. The caller holds the runner's lock."""
        match decision:
            case WriteSnapshot():
                is_savepoint = decision.request is not None and decision.request.target is not None
                thread = self._savepoint_thread if is_savepoint else self._thread
                self._submit(thread, lambda: self._write(decision))
            case DeleteSavepoint():
                self._submit(self._savepoint_thread, lambda: self._delete(decision))
            case DeleteCheckpoint() | CleanUp():
                self._submit(self._thread, lambda: self._delete(decision))
            case DiscardCheckpoints():
                self._submit(self._thread, lambda: self._discard(decision))
            case AnswerRequest():
                self._answer(decision)

    def _submit(self, thread: Executor, work: Callable[[], None]) -> None:
        """Do work in a thread. An error that the work does not handle fails the job."""

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - no error vanishes in a thread
                self._post(Raised(error))

        thread.submit(run).add_done_callback(log_failure)

    def _write(self, order: WriteSnapshot) -> None:
        checkpoint_id = order.metadata.checkpoint_id
        try:
            written = self._writer.write(order)
        except LeadershipLostError:
            # It is not this checkpoint that failed: the job must end here.
            raise
        except Exception as caught:  # noqa: BLE001 - storage may raise anything; the job decides
            error = caught
            _log.warning("checkpoint %d could not be written: %s", checkpoint_id, error)
            self._post(lambda master, now: master.snapshot_failed(checkpoint_id, error, now))
            return
        self._post(
            lambda master, now: master.snapshot_written(
                written.checkpoint_id, written.location, written.metadata, now
            )
        )

    def _delete(self, order: DeleteCheckpoint | DeleteSavepoint | CleanUp) -> None:
        try:
            self._writer.delete(order)
        except LeadershipLostError as error:
            _log.warning("no checkpoint is deleted: %s", error)
        except Exception:  # noqa: BLE001 - leftover files only cost space
            _log.exception("a checkpoint could not be deleted; its files remain")

    def _discard(self, order: DiscardCheckpoints) -> None:
        try:
            self._writer.discard(order)
        except Exception as error:  # noqa: BLE001 - storage may raise anything
            _log.warning("a checkpoint could not be deleted before its job ended: %s", error)
            return
        self._post(lambda master, now: master.checkpoints_discarded())

    def _answer(self, decision: AnswerRequest) -> None:
        answer = self._answers.pop(decision.request_id, None)
        if answer is None:
            return
        if decision.error is not None:
            answer.set_exception(decision.error)
        else:
            answer.set_result(decision.location or "")

    def settled(self) -> Future[None]:
        """Return a future that is done when all decisions so far are carried out."""
        return self._thread.submit(_nothing)

    def close(self) -> None:
        """Wait for decisions that are under way, and for those that follow; refuse open requests.

        Work in storage that hangs is left to its thread.
        """
        deadline = time.monotonic() + _CLOSE_SECONDS
        try:
            for thread in (self._savepoint_thread, self._thread, self._thread):
                thread.submit(_nothing).result(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            _log.warning(
                "checkpoint storage is still busy %g s after the end of the job. It finishes its "
                "work in the background; if the program ends before, files may remain",
                _CLOSE_SECONDS,
            )
        for thread in (self._savepoint_thread, self._thread):
            rest = thread.submit(_nothing)
            rest.add_done_callback(partial(_shut_down, thread))
        for answer in self._answers.values():
            answer.set_exception(
                JobExecutionError("the job ended before the checkpoint or savepoint was complete")
            )
        self._answers.clear()


def _shut_down(thread: Executor, _: Future[None]) -> None:
    thread.shutdown(wait=False)


def _nothing() -> None:
    """Mark a place in the order of work."""
