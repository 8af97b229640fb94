"""sink_to: a writer in the slot, committables, and a committer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from firesteel.connectors.base import SinkWriter, WriteContext, WriterContext
from firesteel.graph.operator_specs import SinkSpec
from firesteel.protocol.messages import AbandonedState
from firesteel.task.capabilities import Committing, Rescalable, Scheduled
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling
from firesteel.usercode.failures import USER_ERRORS, called


class SinkOperator(Operator, Scheduled, Committing, Rescalable):
    """Runs the writer of a sink. Its state is that of the writer, such as files in progress."""

    def __init__(self, spec: SinkSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._sink = spec.sink
        self._writer: SinkWriter | None = None
        self._write_context = WriteContext()
        self._abandoned: tuple[Any, ...] = ()

    def undo(self, abandoned: Sequence[AbandonedState]) -> None:
        """Keep the work of failed attempts for the writer, which removes it."""
        states = [pickling.loads(one.whole) for one in abandoned if one.whole is not None]
        committables = [committable for one in abandoned for committable in one.committables]
        self._abandoned = (*states, *committables)

    def restore(self, whole: Any) -> None:
        if self._writer is not None:
            self._call(self._writer.close)
        subtask = self.context.subtask
        context = WriterContext(
            subtask.index,
            self.context.node.parallelism,
            subtask.job_id,
            subtask.attempt,
            self._abandoned,
            subtask.checkpointed,
        )
        self._writer = self._call(self._sink.create_writer, context, whole)

    def restore_several(self, wholes: Sequence[Any]) -> None:
        self.restore(list(wholes))

    @property
    def saves_itself(self) -> bool:
        """With checkpoints, only they make committables of an open transaction."""
        writer = self._writer
        checkpointed = self.context.subtask.checkpointed
        return checkpointed and writer is not None and self._call(writer.has_open_transaction)

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        if checkpoint_id is not None and self._writer is not None:
            self._call(self._writer.begin_checkpoint, checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._writer is not None:
            self._call(self._writer.notify_checkpoint_complete, checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        if self._writer is not None:
            self._call(self._writer.notify_checkpoint_aborted, checkpoint_id)

    def snapshot(self) -> Any:
        return self._call(self._writer.snapshot_state) if self._writer is not None else None

    def process(self, batch: RecordBatch) -> None:
        values, timestamps = batch.values, batch.timestamps
        writer = self._writer
        assert writer is not None
        context = self._write_context
        context.watermark = self.context.clock.watermark
        context.processing_time = self.context.clock.now_millis()
        if type(writer).write_batch is not SinkWriter.write_batch:
            self._call(writer.write_batch, values, timestamps, context)
            return
        iterator = iter(values)
        try:
            # The loop of the base class, with an iterator that shows which record failed.
            for index, value in enumerate(iterator):
                context.record_timestamp = None if timestamps is None else timestamps[index]
                writer.write(value, context)
        except USER_ERRORS as error:
            raise self.failure(error, type(writer).write, values, iterator) from error

    def end_epoch(self, *, finished: bool) -> None:
        assert self._writer is not None
        self._call(self._writer.flush, finished)

    def next_tick(self) -> int | None:
        """The time of the next flush. Files that roll by time need an epoch without records."""
        if self._writer is None:
            return None
        delay: float | None = self._call(self._writer.next_flush_delay)
        return None if delay is None else self.context.clock.now_millis() + round(delay * 1000)

    def prepare_commit(self, *, finished: bool) -> Sequence[Any]:
        assert self._writer is not None
        prepared: Sequence[Any] = self._call(self._writer.prepare_commit, finished)
        return prepared

    def commit(self, committables: Sequence[Any]) -> None:
        commit(self._sink, committables, self._call)

    def close(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            self._call(writer.close)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        return called(self.name, method, *arguments)


def commit(sink: Any, committables: Sequence[Any], call: Callable[..., Any]) -> None:
    """Commit in this process, which may be the driver. ``call`` calls the user's methods."""
    committer = call(sink.create_committer)
    if committer is None:
        return
    try:
        call(committer.commit, committables)
    except BaseException:
        # The error of the commit is the one to raise.
        with suppress(*USER_ERRORS):
            committer.close()
        raise
    call(committer.close)
