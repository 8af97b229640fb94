"""A live slot: a slot that works as long as an attempt of its job, on rows as they arrive.

A slot that runs epoch by epoch is in ``slot.py``. Here an epoch is what lies between two marks in
the stream of rows. A source emits its mark when the driver says so, and reads on at once. A later
level ends the epoch when the marks of all its channels have arrived. With exactly once, the rows
that follow a mark wait for the other marks. With at least once, they overtake them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from firesteel.protocol.messages import (
    UNLIMITED,
    ConfirmedRuns,
    EndEpoch,
    ReadBudget,
    SlotAck,
    SlotAddress,
    SlotControl,
    SlotFailure,
    SubtaskAck,
    SubtaskHandle,
    encode,
)
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.protocol.rows import (
    ACK,
    END_OF_EPOCH,
    END_WANTED,
    FAILURE,
    FOR_DRIVER,
    OUTPUT,
    BufferRow,
)
from firesteel.state.changelog import SegmentStore
from firesteel.task.operators.iteration import IterationHead
from firesteel.task.slot import explained_failure, host_name, unloaded_error
from firesteel.task.slot_wiring import wire_slot
from firesteel.task.subtask import Subtask
from firesteel.usercode.failures import InterruptedSlotError, is_failure

_log = logging.getLogger("firesteel")

Rows = list[BufferRow]

# Records that arrive within this time of the last sending travel together. It costs a record less
# than this on average, and a busy slot sends a few hundred times a second instead of thousands.
_LINGER_SECONDS = 0.002
# Rows leave the slot when their payloads reach this size, even if more work is waiting.
_SEND_BYTES = 1 << 17
# A loop within the slot pauses after this time, for other rows.
_LOOP_SECONDS = 0.01
# The longest wait for rows and messages.
_IDLE_SECONDS = 60.0


class Inbox(Protocol):
    """Rows from other slots, and messages of the driver, in the order of their arrival."""

    def take(self, seconds: float) -> Rows | SlotControl | EndEpoch | None:
        """Return the next item. Wait for it at most ``seconds``, then return None.

        Raises InboxClosedError if the attempt is over.
        """


class InboxClosedError(Exception):
    """The driver has ended the attempt, or is gone."""


class LiveSlot:
    """Runs subtask i of every vertex of a level, until the driver closes it.

    to_driver: sends a row to the driver.
    renew: loads the program again, with unused functions.
    """

    def __init__(
        self,
        program: JobProgram,
        level: int,
        slot: int,
        to_driver: Callable[[BufferRow], None],
        renew: Callable[[], JobProgram],
        *,
        store: SegmentStore | None = None,
        now_millis: Callable[[], int] | None = None,
    ) -> None:
        self._job_name = program.job_name
        self._level = level
        self._slot = slot
        self._to_driver = to_driver
        self._renew = renew
        self._now_millis = now_millis
        # The most records that a source may read in the running epoch.
        self._limit = 0
        self._store = program.open_segment_store() if store is None else store
        # Without periodic checkpoints the end of every epoch is a point to return to.
        self._aligns = program.exactly_once or not program.checkpointed
        self._out: Rows = []
        self._out_bytes = 0
        self._build(program)
        #: The functions are open.
        self.is_open = False
        self._failed = False
        self._closed = False
        self._control: SlotControl | None = None
        self._address = SlotAddress(program.job_id, program.attempt, level, slot, 0)
        # The driver has ended the running epoch.
        self._told_to_end = False
        # Nothing may be read before the next control.
        self._halted = False
        self._end_wanted = False
        # Channels whose mark of the running epoch has arrived, and the rows that wait for the rest.
        self._ended: set[tuple[int, int]] = set()
        self._held: Rows = []
        self._sent_at = 0.0
        self._epoch_began_at = time.perf_counter()
        self.idle_seconds = 0.0
        self.back_pressured_seconds = 0.0

    def _build(self, program: JobProgram) -> None:
        self._wiring = wire_slot(program, self._level, self._slot, self._send)
        self._subtasks: list[Subtask] = list(self._wiring.subtasks.values())
        self._sources = [subtask for subtask in self._subtasks if subtask.head.is_origin]
        # A source that found nothing says when it wants to be asked again.
        self._read_at = [0.0] * len(self._sources)
        self._loops = [one for one in self._subtasks if isinstance(one.head, IterationHead)]
        self._tails = [tail for one in self._subtasks for tail in one.tails.values()]
        writers = [writer for subtask in self._subtasks for writer in subtask.writers]
        self._timed_writers = [writer for writer in writers if writer.timeout >= 0]
        timeouts = [writer.timeout / 1000 for writer in self._timed_writers]
        self._linger = min([_LINGER_SECONDS, *timeouts])
        self._channels = sum(subtask.gate.remote_channels for subtask in self._subtasks)
        for subtask in self._subtasks:
            subtask.gate.flowing = True
            if self._now_millis is not None:
                subtask.clock.now_millis = self._now_millis

    # The loop

    def run(self, inbox: Inbox) -> Iterator[Rows]:
        """Work until the inbox is closed. Yield rows for the next level, as soon as there are any.

        The list is empty if the slot has waited in vain.
        """
        while True:
            try:
                yield from self._work(inbox)
            except InboxClosedError:
                if not self._closed:
                    self._stop_working()
                break
            except InterruptedSlotError:
                # The functions are in an unknown state. The control that closes them follows.
                self._stop_working()
            except BaseException as error:
                if not is_failure(error):
                    self._release()
                    raise
                self._stop_working()
                try:
                    self._report(error)
                except InboxClosedError:
                    break
        self._release()

    def _work(self, inbox: Inbox) -> Iterator[Rows]:
        while True:
            wait = self._flush_in_time(self._read())
            if self._out and (self._out_bytes >= _SEND_BYTES or self._is_late()):
                yield from self._hand_over()
            item = inbox.take(0.0)
            if item is None and wait > 0.0:
                began = time.perf_counter()
                item = inbox.take(min(wait, self._until_wake()))
                self.idle_seconds += time.perf_counter() - began
                if item is None:
                    # Lets a caller without threads go on.
                    yield []
            self._wake()
            while item is not None:
                if isinstance(item, list):
                    self._accept_rows(item)
                elif isinstance(item, EndEpoch):
                    self._told_to_end = True
                else:
                    self._take_control(item)
                if self._told_to_end and len(self._ended) == self._channels:
                    yield from self._end_epoch()
                if self._out_bytes >= _SEND_BYTES:
                    yield from self._hand_over()
                if self._sources or self._is_late():
                    break
                item = inbox.take(0.0)

    def _hand_over(self) -> Iterator[Rows]:
        """Yield the rows that are ready. The consumer may block, if later slots are slow."""
        rows, self._out = self._out, []
        self._out_bytes = 0
        began = self._sent_at = time.perf_counter()
        yield rows
        self.back_pressured_seconds += time.perf_counter() - began

    def _send(self, row: BufferRow) -> None:
        if row.kind in FOR_DRIVER:
            self._to_driver(row)
            if row.kind == OUTPUT:
                self._want_end()
        else:
            self._out.append(row)
            self._out_bytes += len(row.payload)

    # Time

    def _is_late(self) -> bool:
        return time.perf_counter() - self._sent_at >= self._linger

    def _flush_in_time(self, wait: float) -> float:
        """Flush buffers that have lingered long enough. Return how long the slot may wait."""
        if not self._out and not any(writer.has_records for writer in self._timed_writers):
            return wait
        left = self._sent_at + self._linger - time.perf_counter()
        if left > 0.0:
            return min(wait, left)
        for writer in self._timed_writers:
            writer.flush()
        return wait

    def _until_wake(self) -> float:
        """Return the seconds until a timer is due, or until something else changes by itself."""
        if self._halted or self._failed or not self.is_open:
            return _IDLE_SECONDS
        times = [at for one in self._subtasks if (at := one.next_wake()) is not None]
        if not times:
            return _IDLE_SECONDS
        now = self._subtasks[0].clock.now_millis()
        return min(max(0.0, (min(times) - now) / 1000), _IDLE_SECONDS)

    def _wake(self) -> None:
        if self._halted or self._failed or not self.is_open:
            return
        for subtask in self._subtasks:
            subtask.fire_processing_time_timers()
            subtask.tick()
        self._go_round()

    # Records

    def _read(self) -> float:
        """Let each source read a chunk. Return the seconds until there may be more to do."""
        if self._halted or self._failed or not self.is_open or not self._limit:
            return _IDLE_SECONDS
        soonest = _IDLE_SECONDS
        now = time.perf_counter()
        for index, subtask in enumerate(self._sources):
            if subtask.head.records_read >= self._limit:
                self._want_end()
                continue
            until_then = self._read_at[index] - now
            wait = subtask.read_some(self._limit) if until_then <= 0.0 else until_then
            self._read_at[index] = now + wait if wait else now
            if wait is None:
                if subtask.head.needs_report:
                    self._want_end()
            else:
                soonest = min(soonest, wait)
        return soonest

    def _accept_rows(self, rows: Rows) -> None:
        by_edge, level_of_edge, level = (
            self._wiring.by_edge,
            self._wiring.level_of_edge,
            self._level,
        )
        for row in rows:
            if level_of_edge[row.edge] != level:
                self._send(row)
            elif self._failed or self._closed:
                continue
            elif not self.is_open or (self._aligns and (row.edge, row.channel) in self._ended):
                self._held.append(row)
            else:
                by_edge[row.edge].accept(row)
                if row.kind == END_OF_EPOCH:
                    self._ended.add((row.edge, row.channel))

    def _go_round(self) -> None:
        """Let records of loops go round again, and tell the driver of those that leave the slot."""
        for subtask in self._loops:
            for _ in subtask.read_epoch(ReadBudget(UNLIMITED, _LOOP_SECONDS), self._store):
                pass
        if any(tail.has_records for tail in self._tails):
            self._want_end()

    def _want_end(self) -> None:
        if not self._end_wanted:
            self._end_wanted = True
            self._to_driver(BufferRow(self._slot, self._level, 0, 0, END_WANTED, b""))

    # Epochs

    def _take_control(self, control: SlotControl) -> None:
        self._address = replace(control.address, confirmed_runs=ConfirmedRuns())
        if control.close:
            self._close(control)
            return
        if self._failed:
            return
        self._control = control
        self._limit = control.budget.records
        if control.new_splits:
            self._read_at = [0.0] * len(self._sources)
        self._halted = False
        is_first = not self.is_open
        if is_first:
            self._restore(control)
        for subtask in self._subtasks:
            subtask.apply(control)
        # The feedback of a loop belongs to this epoch, even if it ends at once.
        self._go_round()
        if is_first:
            self._release_held()

    def _restore(self, control: SlotControl) -> None:
        for vertex_id, subtask in self._wiring.subtasks.items():
            subtask.restore(control.handles.get(vertex_id, SubtaskHandle()), self._store)
        # Set first: a function that fails to open is closed like the others.
        self.is_open = True
        for subtask in self._subtasks:
            subtask.open()
        for subtask in self._subtasks:
            subtask.begin_epoch(control.address.epoch)

    def _end_epoch(self) -> Iterator[Rows]:
        """All channels have ended: send the marks on, then report the state."""
        control = self._control
        self._told_to_end = False
        if control is None or self._failed or self._closed:
            return
        began = time.perf_counter()
        for subtask in self._subtasks:
            subtask.stop_reading(drain=control.drain)
            subtask.end_epoch(checkpoint_id=control.checkpoint_id)
        if self._out:
            # The next level need not wait for the state of this one.
            yield from self._hand_over()
        epoch = control.address.epoch
        acks = []
        for subtask in self._subtasks:
            acks.append(
                subtask.ack(epoch, self._store, control.checkpoint_id, control.checkpoint_timestamp)
            )
            subtask.confirm()
            subtask.begin_epoch(epoch + 1)
        self._control = None
        self._end_wanted = False
        self._halted = control.halt
        if self._limit < UNLIMITED:
            # The next control has a limit of its own.
            self._limit = 0
        self._acknowledge(tuple(acks), time.perf_counter() - began)
        self._ended.clear()
        self._release_held()

    def _release_held(self) -> None:
        held, self._held = self._held, []
        self._accept_rows(held)

    def _acknowledge(self, acks: tuple[SubtaskAck, ...], end_seconds: float = 0.0) -> None:
        now = time.perf_counter()
        ack = SlotAck(
            address=self._address,
            host=host_name(),
            subtasks=acks,
            seconds=now - self._epoch_began_at,
            processing_time=max((one.clock.now_millis() for one in self._subtasks), default=0),
            end_seconds=end_seconds,
            idle_seconds=self.idle_seconds,
            back_pressured_seconds=self.back_pressured_seconds,
        )
        self._epoch_began_at = now
        self.idle_seconds = self.back_pressured_seconds = 0.0
        self._to_driver(BufferRow(self._slot, 0, 0, 0, ACK, encode(ack)))

    # The end

    def _stop_working(self) -> None:
        """Do nothing more until the driver closes the slot.

        The running epoch is void, so sinks abort what they have written in it.
        """
        self._failed = True
        if self.is_open:
            for subtask in self._subtasks:
                subtask.abort_epoch()
        self._out.clear()
        self._out_bytes = 0
        self._ended.clear()
        self._held.clear()

    def _report(self, error: BaseException) -> None:
        explained = explained_failure(error, self._job_name, self._level, self._slot)
        failure = SlotFailure(self._address, explained)
        self._to_driver(BufferRow(self._slot, 0, 0, 0, FAILURE, encode(failure)))

    def _close(self, control: SlotControl) -> None:
        """Commit what is left, and close the functions. The rest of the input is dropped."""
        errors: list[BaseException] = []
        try:
            if control.has_work:
                self._commit_last(control)
        except BaseException as error:
            if not is_failure(error):
                raise
            errors.append(error)
        errors += self._release()
        self._closed = True
        if errors:
            self._report(errors[0])
        else:
            self._acknowledge(())

    def _commit_last(self, control: SlotControl) -> None:
        if self._failed:
            self._start_over()
        if not self.is_open:
            self._restore(control)
        for subtask in self._subtasks:
            subtask.apply(control)

    def _start_over(self) -> None:
        """Replace functions that hold the leftovers of a failure, to commit with new ones."""
        for error in self._release():
            _log.warning("level %d, slot %d: %s", self._level, self._slot, error)
        before = dict(self._wiring.subtasks)
        self._build(self._renew())
        for vertex_id, subtask in self._wiring.subtasks.items():
            subtask.replace(before[vertex_id])

    def _release(self) -> list[Exception]:
        """Close all functions that are open, and return their errors."""
        if not self.is_open:
            for subtask in self._subtasks:
                subtask.release()
            return []
        self.is_open = False
        return [error for subtask in self._subtasks for error in subtask.close()]


class UnloadedLiveSlot:
    """A slot whose program cannot be loaded. It reports the reason, and waits to be closed."""

    def __init__(
        self,
        error: BaseException,
        packed: PackedProgram,
        level: int,
        slot: int,
        to_driver: Callable[[BufferRow], None],
    ) -> None:
        self._error = unloaded_error(error, packed.job_name, level, slot)
        self._address = SlotAddress(packed.job_id, packed.attempt, level, slot, 0)
        self._to_driver = to_driver

    def run(self, inbox: Inbox) -> Iterator[Rows]:
        """Answer every control. No row leaves."""
        with suppress(InboxClosedError):
            while True:
                item = inbox.take(_IDLE_SECONDS)
                if isinstance(item, SlotControl):
                    self._answer(item)
        yield from ()

    def _answer(self, control: SlotControl) -> None:
        slot, address = self._address.slot, control.address
        if control.has_work:
            failure = SlotFailure(address, self._error)
            self._to_driver(BufferRow(slot, 0, 0, 0, FAILURE, encode(failure)))
        else:
            ack = SlotAck(replace(address, confirmed_runs=ConfirmedRuns()), host_name(), ())
            self._to_driver(BufferRow(slot, 0, 0, 0, ACK, encode(ack)))
