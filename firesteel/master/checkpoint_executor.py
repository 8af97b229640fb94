"""Carries out the checkpoint decisions of a job: writes, deletes and answers."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from concurrent.futures import Executor, Future

from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    CleanUp,
    DeleteCheckpoint,
    WriteSnapshot,
)
from firesteel.checkpoint.snapshot_writer import SnapshotWriter
from firesteel.errors import JobExecutionError
from firesteel.master.decisions import CheckpointDecision
from firesteel.master.job_master import Event, raising

_log = logging.getLogger("firesteel")


class CheckpointExecutor:
    """Writes in a thread of its own, while the job continues.

    ``post`` takes the events that follow. The executor outlives the attempts of the job.
    """

    def __init__(
        self, writer: SnapshotWriter, thread: Executor, post: Callable[[Event], None]
    ) -> None:
        self._writer = writer
        self._thread = thread
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
                self._submit(lambda: self._write(decision))
            case DeleteCheckpoint() | CleanUp():
                self._submit(lambda: self._delete(decision))
            case AnswerRequest():
                self._answer(decision)

    def _submit(self, work: Callable[[], None]) -> None:
        """Do work in the thread. An error that the work does not handle fails the job."""

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - no error vanishes in a thread
                self._post(raising(error))

        self._thread.submit(run)

    def _write(self, order: WriteSnapshot) -> None:
        checkpoint_id = order.metadata.checkpoint_id
        try:
            written = self._writer.write(order)
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

    def _delete(self, order: DeleteCheckpoint | CleanUp) -> None:
        try:
            self._writer.delete(order)
        except Exception:  # noqa: BLE001 - leftover files only cost space
            _log.exception("a checkpoint could not be deleted; its files remain")

    def _answer(self, decision: AnswerRequest) -> None:
        answer = self._answers.pop(decision.request_id, None)
        if answer is None:
            return
        if decision.error is not None:
            answer.set_exception(decision.error)
        else:
            answer.set_result(decision.location or "")

    def settle(self) -> None:
        """Wait until all decisions so far are carried out."""
        self._thread.submit(_nothing).result()

    def close(self) -> None:
        """Wait for decisions that are under way, and for those that follow; refuse open requests."""
        self.settle()
        self._thread.shutdown(wait=True)
        for answer in self._answers.values():
            answer.set_exception(
                JobExecutionError("the job ended before the checkpoint or savepoint was complete")
            )
        self._answers.clear()


def _nothing() -> None:
    """Mark a place in the order of work."""
