"""A slot: partition i of a level, which runs subtask i of every vertex of that level.

It takes the rows of one epoch and yields the rows that leave. If it does not hold the state of the
previous epoch, it restores that state from handles, which it fetches from the driver.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from firesteel.errors import FiresteelError, JobExecutionError, UserFunctionError
from firesteel.protocol.messages import (
    ConfirmedRuns,
    SavepointOrder,
    SlotAck,
    SlotAddress,
    SlotControl,
    SlotFailure,
    SubtaskAck,
    SubtaskHandle,
    decode,
    encode,
    fetch_handles,
    new_run_id,
)
from firesteel.protocol.program import JobProgram
from firesteel.protocol.rows import (
    ACK,
    CONTROL,
    EXTERNAL,
    FAILURE,
    FOR_DRIVER,
    HEADER,
    BufferRow,
    RowBatcher,
)
from firesteel.state.changelog import SegmentStore
from firesteel.task.slot_wiring import wire_slot
from firesteel.task.state.savepoint_writing import SlotSavepoints, Spawn, in_thread
from firesteel.usercode.failures import exit_error, is_failure
from firesteel.usercode.unpicklable import UnpicklableRecordError

_log = logging.getLogger("firesteel")

_NO_STATE = -1

Batches = Iterator[pa.RecordBatch]


class Slot:
    """Runs epochs of one slot.

    renew: loads the program again, with unused functions.
    now_millis: replaces the machine's clock.
    spawn: replaces the threads that write savepoints.
    fetch: returns the handles of the slot's state, if it does not have the state.
    """

    def __init__(
        self,
        program: JobProgram,
        level: int,
        slot: int,
        renew: Callable[[], JobProgram] | None = None,
        now_millis: Callable[[], int] | None = None,
        *,
        store: SegmentStore | None = None,
        batcher: RowBatcher | None = None,
        spawn: Spawn = in_thread,
        fetch: Callable[[SlotControl], Mapping[int, SubtaskHandle]] = fetch_handles,
    ) -> None:
        self._job_name = program.job_name
        self._batch = program.batch
        self._level = level
        self._slot = slot
        self._batcher = RowBatcher() if batcher is None else batcher
        self._store = program.open_segment_store() if store is None else store
        slots = program.levels.slots
        self._next_slots = slots[level + 1] if level + 1 < len(slots) else 0
        self._renew = renew
        self._now_millis = now_millis
        self._fetch = fetch
        self._savepoints = SlotSavepoints(
            program.file_systems, compress=program.state_backend.compress, spawn=spawn
        )
        self._build(program)
        self._opened = False
        # The changes of the last epoch are part of the bases.
        self._is_confirmed = False
        self.closed = False
        # The run of each slot of the previous level that gave this epoch's input.
        self._upstream_runs: dict[int, int] = {}
        # The epoch whose changes are in memory, and the run that made them. Both are confirmed when
        # the next epoch begins.
        self._epoch = _NO_STATE
        self._run_id = 0

    def _build(self, program: JobProgram) -> None:
        self._wiring = wire_slot(program, self._level, self._slot, self._batcher.add)
        self._subtasks = self._wiring.subtasks
        if self._now_millis is not None:
            for subtask in self._subtasks.values():
                subtask.clock.now_millis = self._now_millis

    def has_state_for(self, address: SlotAddress) -> bool:
        """True if this slot ran the previous epoch, and the driver confirmed that very run.

        An epoch can run twice: an attempt that Spark gave up may end after the one it used.
        """
        return (
            self._opened
            and self._epoch == address.epoch - 1
            and address.confirmed_runs.includes(self._run_id)
        )

    def run_epoch(
        self,
        address: SlotAddress,
        rows: Iterable[BufferRow],
        control: SlotControl | None = None,
        *,
        last: bool = False,
        raise_errors: bool = False,
    ) -> Batches:
        """Process one epoch. Its output comes in batches, the ack at the end.

        control: given for level 0. Other levels find it among their rows.
        last: no epoch follows, because the job is a batch job.
        raise_errors: raise a failure, so that Spark retries. Otherwise it becomes a row for the
            driver, because a retry would only repeat it.
        """
        started = time.perf_counter()
        batcher = self._batcher
        batcher.clear()
        self._upstream_runs = {}
        run_id = new_run_id()
        level, known = self._level + 1, address.confirmed_runs
        for target in range(self._next_slots):
            told = encode(replace(address, confirmed_runs=known.told_to(level, target)))
            batcher.add(BufferRow(target, level, self._slot, run_id, HEADER, told))
        remaining = iter(rows)
        try:
            control = yield from self._consume(address, remaining, control)
            subtasks = self._subtasks.values()
            acks: tuple[SubtaskAck, ...] = ()
            # An epoch that only closes has no part in the job's results.
            if last or not control.close:
                yield from self._read_sources(control)
                yield from self._end_epoch(last=last, checkpoint_id=control.checkpoint_id)
                acks = tuple(
                    subtask.ack(
                        address.epoch,
                        self._store,
                        control.checkpoint_id,
                        control.checkpoint_timestamp,
                    )
                    for subtask in subtasks
                )
                if control.savepoint is not None:
                    self._save(control.savepoint, acks)
            self._epoch, self._run_id = address.epoch, run_id
            ack = SlotAck(
                address=replace(address, confirmed_runs=ConfirmedRuns()),
                host=host_name(),
                subtasks=acks,
                run_id=run_id,
                upstream_runs=self._upstream_runs,
                seconds=time.perf_counter() - started,
                processing_time=max((s.clock.now_millis() for s in subtasks), default=0),
                savepoints=self._savepoints.progress(),
            )
            batcher.add(BufferRow(self._slot, 0, 0, 0, ACK, encode(ack)))
            if control.close:
                self.close()
        except _EpochAbortedError:
            yield from self._abandon(remaining)
        except BaseException as error:
            if not is_failure(error):
                raise
            if raise_errors:
                self.close_quietly()
                raise explained_failure(error, self._job_name, self._level, self._slot) from error
            failure = SlotFailure(
                address, explained_failure(error, self._job_name, self._level, self._slot)
            )
            batcher.add(BufferRow(self._slot, 0, 0, 0, FAILURE, encode(failure)))
            yield from self._abandon(remaining)
        if batcher.rows:
            yield batcher.take()

    def _save(self, order: SavepointOrder, acks: tuple[SubtaskAck, ...]) -> None:
        """Write the state of the epoch to a savepoint.

        If this run does not count, the next one restores the state and writes it again.
        """
        self._confirm()
        frozen = [
            operator
            for subtask, ack in zip(self._subtasks.values(), acks, strict=True)
            for operator in subtask.freeze(ack, self._store, native=order.native)
        ]
        self._savepoints.begin(order, frozen)

    def _confirm(self) -> None:
        if not self._is_confirmed:
            self._is_confirmed = True
            for subtask in self._subtasks.values():
                subtask.confirm()

    def _consume(
        self, address: SlotAddress, rows: Iterator[BufferRow], control: SlotControl | None
    ) -> Generator[pa.RecordBatch, None, SlotControl]:
        """Consume all rows. Rows that arrive before the control row may have to wait for it."""
        batcher = self._batcher
        waiting: list[BufferRow] = []
        ready = control is not None or self.has_state_for(address)
        if ready:
            self._begin(address, control)
        if control is not None:
            self._apply(control)
        for row in rows:
            if self._is_passing(row):
                batcher.add(row)
            elif row.kind == CONTROL:
                received: SlotControl = decode(row.payload)
                control = received
                if not ready:
                    self._begin(address, received)
                    ready = True
                self._apply(received)
                for waited in waiting:
                    self._accept(waited)
                waiting.clear()
            elif ready:
                self._accept(row)
            else:
                waiting.append(row)
            if batcher.is_full():
                yield batcher.take()
        if control is None:
            raise JobExecutionError(
                f"level {self._level}, slot {self._slot}: the control row of epoch "
                f"{address.epoch} is missing"
            )
        return control

    def _read_sources(self, control: SlotControl) -> Batches:
        sources = sum(subtask.head.reads for subtask in self._subtasks.values())
        # The limit is for all sources together. Each gets its share, so that none starves.
        budget = replace(control.budget, seconds=control.budget.seconds / max(sources, 1))
        for subtask in self._subtasks.values():
            for _ in subtask.read_epoch(budget, self._store, drain=control.drain):
                if self._batcher.is_full():
                    yield self._batcher.take()

    def _end_epoch(self, *, last: bool, checkpoint_id: int | None) -> Batches:
        for subtask in self._subtasks.values():
            subtask.end_epoch(last=last, checkpoint_id=checkpoint_id)
            if self._batcher.is_full():
                yield self._batcher.take()

    def _begin(self, address: SlotAddress, control: SlotControl | None) -> None:
        if self.has_state_for(address):
            self._confirm()
            self._savepoints.confirm()
        else:
            assert control is not None
            self._savepoints.abandon()
            if self._opened and self._renew is not None:
                self._start_over(self._renew())
            if self._batch or control.has_work:
                self._restore(control)
        # The changes of an attempt that breaks off must not be taken for the state of an epoch.
        self._epoch = _NO_STATE
        self._is_confirmed = False
        for subtask in self._subtasks.values():
            subtask.begin_epoch(address.epoch)

    def _start_over(self, program: JobProgram) -> None:
        """Replace functions that hold the leftovers of a different attempt."""
        for error in self.close_quietly():
            _log.warning("level %d, slot %d: %s", self._level, self._slot, error)
        self.closed = False
        before = self._subtasks
        self._build(program)
        for vertex_id, subtask in self._subtasks.items():
            subtask.replace(before[vertex_id])

    def _restore(self, control: SlotControl) -> None:
        handles = self._fetch(control)
        try:
            for vertex_id, subtask in self._subtasks.items():
                subtask.restore(handles.get(vertex_id, SubtaskHandle()), self._store)
            if not self._opened:
                # Set first: a function that fails to open is closed like the others.
                self._opened = True
                for subtask in self._subtasks.values():
                    subtask.open()
        except BaseException:
            for vertex_id, subtask in self._subtasks.items():
                subtask.restore_failed(handles.get(vertex_id, SubtaskHandle()))
            raise

    def _apply(self, control: SlotControl) -> None:
        if not self._opened:
            return
        self._savepoints.abort(control.aborted_checkpoints)
        for subtask in self._subtasks.values():
            subtask.apply(control)
        if not control.close:
            for subtask in self._subtasks.values():
                subtask.fire_processing_time_timers()
            for subtask in self._subtasks.values():
                # Rows of an unaligned checkpoint of a live slot.
                for row in subtask.take_replayed():
                    subtask.accept(row)

    def _accept(self, row: BufferRow) -> None:
        if row.kind == HEADER:
            self._upstream_runs[row.channel] = row.seq
            return
        if row.kind == EXTERNAL:
            self._wiring.by_node[row.edge].accept_external(row.payload)
            return
        subtask = self._wiring.by_edge[row.edge]
        subtask.accept(row)
        if subtask.gate.aborted:
            raise _EpochAbortedError

    def _is_passing(self, row: BufferRow) -> bool:
        """True if the row is for the driver or for a later level."""
        kind = row.kind
        if kind in FOR_DRIVER:
            return True
        if kind in (CONTROL, HEADER):
            return row.edge != self._level
        if kind == EXTERNAL:
            return self._wiring.level_of_node[row.edge] != self._level
        return self._wiring.level_of_edge[row.edge] != self._level

    def _abandon(self, rows: Iterator[BufferRow]) -> Batches:
        """Consume the rest of the input after a failure, and tell all consumers about it."""
        self._epoch = _NO_STATE
        for subtask in self._subtasks.values():
            subtask.abort_epoch()
        for row in rows:
            if self._is_passing(row):
                self._batcher.add(row)
            if self._batcher.is_full():
                yield self._batcher.take()

    def close(self) -> None:
        """Close the user's functions, and raise the first of their errors."""
        errors = self.close_quietly()
        for error in errors[1:]:
            _log.error("level %d, slot %d also failed: %s", self._level, self._slot, error)
        if errors:
            raise errors[0]

    def close_quietly(self) -> list[Exception]:
        self.closed = True
        self._savepoints.abandon()
        if not self._opened:
            for subtask in self._subtasks.values():
                subtask.release()
            return []
        self._opened = False
        return [error for subtask in self._subtasks.values() for error in subtask.close()]


class _EpochAbortedError(Exception):
    """An upstream slot failed in this epoch, and has reported it to the driver."""


def explained_failure(error: BaseException, job_name: str, level: int, slot: int) -> FiresteelError:
    """Return an error of Firesteel's that names the job, or the slot where it happened."""
    if not isinstance(error, Exception):
        error = exit_error(error)
    if isinstance(error, UnpicklableRecordError | UserFunctionError):
        error.job = job_name
    if isinstance(error, FiresteelError):
        return error
    text = "".join(traceback.format_exception(error)).rstrip()
    return JobExecutionError(f"{text}\nlevel {level}, slot {slot} failed", job_name=job_name)


def unloaded_error(error: BaseException, job_name: str, level: int, slot: int) -> FiresteelError:
    """Return the error of a slot whose program cannot be loaded."""
    if isinstance(error, FiresteelError):
        return error
    text = "".join(traceback.format_exception(error)).rstrip()
    return JobExecutionError(
        f"{text}\nJob '{job_name}' failed: loading its program in level {level}, slot {slot} raised "
        "the error above",
        job_name=job_name,
    )


def host_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def control_row(control: SlotControl) -> BufferRow:
    address = control.address
    return BufferRow(address.slot, address.level, 0, 0, CONTROL, encode(control))
