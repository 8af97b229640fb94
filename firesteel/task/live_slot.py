"""A live slot: a slot that works as long as an attempt of its job, on rows as they arrive.

A slot that runs epoch by epoch is in ``slot.py``. Here an epoch consists of the rows between two
marks in the stream. A source emits its mark when the driver says so, and reads on at once. A later
level ends the epoch when the marks of all its channels have arrived. With exactly once, the rows
that follow a mark wait for the other marks. With at least once, they overtake them.

With unaligned checkpoints only the epochs that end with a checkpoint have marks. A slot takes its
snapshot when the driver says so, and sends its marks at once. Rows that arrive before the marks of
their channels become part of the checkpoint. The slot reads them without processing them, so the
time of a checkpoint does not depend on how fast records are processed.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from firesteel.protocol.messages import (
    UNLIMITED,
    ConfirmedRuns,
    Credits,
    EndEpoch,
    Message,
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
from firesteel.protocol.reports import SlotReport
from firesteel.protocol.rows import (
    ACK,
    BARRIER,
    CREDITS,
    DATA,
    END_OF_EPOCH,
    END_OF_INPUT,
    END_WANTED,
    FAILURE,
    FINISHED,
    FOR_DRIVER,
    OUTPUT,
    BufferRow,
)
from firesteel.state.changelog import SegmentStore
from firesteel.task.exchange.flow_control import Receipts, SendWindows
from firesteel.task.exchange.in_flight import may_overtake
from firesteel.task.operators.iteration import IterationHead
from firesteel.task.slot import explained_failure, host_name, unloaded_error
from firesteel.task.slot_activity import SlotActivity
from firesteel.task.slot_wiring import producer_of, wire_slot
from firesteel.task.state.savepoint_writing import SlotSavepoints, Spawn, in_thread
from firesteel.task.subtask import Subtask
from firesteel.usercode.failures import InterruptedSlotError, is_failure

_log = logging.getLogger("firesteel")

Rows = list[BufferRow]

# Records that arrive within this time of the last sending travel together. It costs a record less
# than this on average, and a busy slot sends a few hundred times a second instead of thousands.
_LINGER_SECONDS = 0.002
# A slot that never waits gathers more rows per sending, because those cost more than their delay:
# Spark makes some twenty system calls for each of its rows.
_BUSY_LINGER_SECONDS = 0.025
# A slot that writes a savepoint looks for its end this often.
_SAVEPOINT_SECONDS = 0.05
# Rows leave the slot when their payloads reach this size, even if more work is waiting.
_SEND_BYTES = 1 << 18
# A loop within the slot pauses after this time, for other rows.
_LOOP_SECONDS = 0.01
# The longest wait for rows and messages.
_IDLE_SECONDS = 60.0
# Timers and messages of the driver wait for at most about this time, while records are processed.
_CHUNK_SECONDS = 0.005
# Bytes that all slots of a level may send after the mark of an epoch, before all slots have ended
# it. The rows may have to be held for other channels, in memory.
_BYTES_AHEAD = 64 << 20
_MOST_BYTES_AHEAD = 16 << 20
_LEAST_BYTES_AHEAD = 1 << 20
# The same with unaligned checkpoints, whose rows would become part of the next one.
_UNALIGNED_BYTES_AHEAD = 1 << 16
# Sources wait while more rows than this have been read and not processed somewhere.
_LOADED_BYTES = 1 << 14
# A barrier overtakes no more waiting rows than this: a slot that has more processes some first.
_MOST_OVERTAKEN_BYTES = 16 << 20
# With less on its way, a slot would wait for rows.
_LEAST_IN_FLIGHT_SECONDS = 0.05


class Inbox(Protocol):
    """Rows from other slots, and messages of the driver, in the order of their arrival."""

    def take(self, seconds: float) -> Rows | Message | None:
        """Return the next item. Wait for it at most ``seconds``, then return None.

        Raises InboxClosedError if the attempt is over.
        """

    def take_message(self, seconds: float = 0.0) -> Message | None:
        """Return the next message, like ``take``, and leave rows where they are."""

    @property
    def has_message(self) -> bool:
        """A message waits, or the attempt is over."""

    def wake(self) -> None:
        """Let ``take`` return None if it has nothing else. Any thread may call it."""


class InboxClosedError(Exception):
    """The driver has ended the attempt, or is gone."""


class LiveSlot:
    """Runs subtask i of every vertex of a level, until the driver closes it.

    to_driver: sends a row to the driver.
    renew: loads the program again, with unused functions.
    spawn: replaces the threads that write savepoints.
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
        spawn: Spawn = in_thread,
    ) -> None:
        self._job_name = program.job_name
        self._savepoints = SlotSavepoints(
            program.file_systems, compress=program.state_backend.compress, spawn=spawn
        )
        self._level = level
        self._slot = slot
        self._to_driver = to_driver
        self._renew = renew
        self._now_millis = now_millis
        # The seconds by which sources are asked again. In a harness they pass with its clock.
        self._seconds = time.perf_counter
        if now_millis is not None:
            self._seconds = lambda: now_millis() / 1000
        # The most records that a source may read in the running epoch.
        self._limit = 0
        self._store = program.open_segment_store() if store is None else store
        # Without periodic checkpoints the end of every epoch is a point to return to.
        self._aligns = program.exactly_once or not program.checkpointed
        self._unaligned = program.unaligned
        self._aligned_seconds = program.aligned_seconds
        fair_share = _BYTES_AHEAD // program.levels.slots[level]
        self._most_ahead = max(_LEAST_BYTES_AHEAD, min(_MOST_BYTES_AHEAD, fair_share))
        if program.unaligned:
            self._most_ahead = _UNALIGNED_BYTES_AHEAD
        # Sources do not read, because slots have rows that wait.
        self._waits = False
        # The slot has told the driver that rows wait.
        self._is_loaded = False
        # Bytes that were sent since the last end of an epoch.
        self._sent_ahead = 0
        self._out: Rows = []
        self._out_bytes = 0
        #: The consumer of ``run`` tells it the time that rows wait for later slots.
        self.activity = SlotActivity()
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
        # Rows that were read and not processed yet. No more is read as long as there are any.
        self._backlog: deque[BufferRow] = deque()
        self._backlog_bytes = 0
        # The time at which the barrier of the checkpoint may overtake rows.
        self._overtakes_at = 0.0
        self._inbox: Inbox | None = None
        self._sent_at = 0.0
        # The slot has waited for rows or messages since it sent something.
        self._has_waited = True
        #: The slot is at work, so that more rows will follow those that it has sent last.
        self.more_follows = False
        self._epoch_began_at = time.perf_counter()

    def _build(self, program: JobProgram) -> None:
        self._wiring = wire_slot(program, self._level, self._slot, self._send)
        self._subtasks: list[Subtask] = list(self._wiring.subtasks.values())
        self._sources = [subtask for subtask in self._subtasks if subtask.head.is_origin]
        # A source that found nothing says when it wants to be asked again.
        self._read_at = [0.0] * len(self._sources)
        self._loops = [one for one in self._subtasks if isinstance(one.head, IterationHead)]
        self._tails = [tail for one in self._subtasks for tail in one.tails.values()]
        writers = [writer for subtask in self._subtasks for writer in subtask.writers]
        self._writers = writers
        self._timed_writers = [writer for writer in writers if writer.timeout >= 0]
        timeouts = [writer.timeout / 1000 for writer in self._timed_writers]
        self._shortest_linger = self._linger = min([_LINGER_SECONDS, *timeouts])
        self._longest_linger = min([_BUSY_LINGER_SECONDS, *timeouts])
        self._channels = sum(len(subtask.gate.remote_channels) for subtask in self._subtasks)
        seconds = program.in_flight_seconds
        self._windows = SendWindows(writers, limited=seconds is not None)
        self._receipts: Receipts | None = None
        if seconds is not None:
            self._receipts = Receipts(
                self._slot,
                {
                    channel: producer_of(program, *channel)
                    for subtask in self._subtasks
                    for channel in subtask.gate.remote_channels
                },
                self.activity,
                self._windows,
                max(seconds, _LEAST_IN_FLIGHT_SECONDS),
            )
        # Channels whose rows no barrier may overtake.
        edges = {edge.id: edge for edge in program.levels.job_graph.edges}
        self._strict = frozenset(
            channel
            for subtask in self._subtasks
            for channel in subtask.gate.remote_channels
            if not may_overtake(edges[channel[0]])
        )
        for subtask in self._subtasks:
            subtask.gate.flowing = True
            subtask.gate.pace(
                partial(self._after_chunk, subtask), self._may_continue, _CHUNK_SECONDS
            )
            for writer in subtask.writers:
                writer.flowing = True
            if self._now_millis is not None:
                subtask.clock.now_millis = self._now_millis

    # The loop

    def run(self, inbox: Inbox) -> Iterator[Rows]:
        """Work until the inbox is closed. Yield rows for the next level, as soon as there are any.

        The list is empty if the slot has waited in vain, or if it is about to wait although it has
        said that more rows follow.
        """
        for subtask in self._subtasks:
            subtask.wake_with(inbox.wake)
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
                    self._release_and_log()
                    raise
                self._stop_working()
                try:
                    self._report(error)
                except InboxClosedError:
                    _log.error("level %d, slot %d also failed: %s", self._level, self._slot, error)
                    break
        self._release_and_log()

    def _work(self, inbox: Inbox) -> Iterator[Rows]:
        self._inbox = inbox
        while True:
            wait = self._flush_in_time(self._read())
            if self._out and (self._out_bytes >= _SEND_BYTES or self._is_late()):
                yield from self._hand_over()
            item = self._next_item(inbox)
            if item is None and wait > 0.0 and not self._has_work:
                if self.more_follows:
                    self.more_follows = False
                    yield []
                item = self._wait_for_item(inbox, wait)
                if item is None:
                    # Lets a caller without threads continue.
                    yield []
            self._wake()
            if self._told_to_end:
                yield from self._end_if_due(inbox)
            while item is not None or self._has_work:
                if item is None:
                    self._work_off()
                elif isinstance(item, list):
                    self._take_rows(item)
                else:
                    self._take_message(item)
                if self._told_to_end:
                    yield from self._end_if_due(inbox)
                if self._out_bytes >= _SEND_BYTES:
                    yield from self._hand_over()
                if self._sources or self._is_late():
                    break
                item = self._next_item(inbox)

    def _wait_for_item(self, inbox: Inbox, seconds: float) -> Rows | Message | None:
        self._has_waited = True
        seconds = min(seconds, self._until_wake(), self._until_overtaking())
        if self._windows.is_full:
            self.activity.wait_for_output()
        else:
            self.activity.wait_for_input()
        item = inbox.take(seconds) if self._reads_rows else inbox.take_message(seconds)
        self.activity.work()
        return item

    def _take_message(self, message: Message) -> None:
        if isinstance(message, Credits):
            self._windows.take(message.credits)
        elif isinstance(message, EndEpoch):
            self._told_to_end = True
            self._overtakes_at = time.perf_counter() + self._aligned_seconds
        else:
            self._take_control(message)

    def _next_item(self, inbox: Inbox) -> Rows | Message | None:
        leaves_rows = (self._has_work and not self._absorbs) or not self._reads_rows
        return inbox.take_message() if leaves_rows else inbox.take(0.0)

    @property
    def _reads_rows(self) -> bool:
        """False while the slot must not send, so that the slots before it wait as well.

        A slot that has ended its epoch reads on. Rows for later levels, which need them to end the
        epoch, may pass through it. Until all slots have ended it, only a bounded number can arrive.
        """
        return not self._windows.is_full or self._control is None or self._absorbs

    @property
    def _absorbs(self) -> bool:
        """With unaligned checkpoints: read on while other slots have to end the epoch.

        A slot that cannot send its rows does not hear the driver.
        """
        return (
            self._unaligned
            and self._control is None
            and self.is_open
            and self._backlog_bytes <= _MOST_OVERTAKEN_BYTES
        )

    @property
    def _has_work(self) -> bool:
        """Rows wait that may be processed now."""
        return bool(self._backlog) and not self._is_ahead and not self._windows.is_full

    def _hand_over(self, *, pauses: bool = False) -> Iterator[Rows]:
        """Yield the rows that are ready. The consumer may block, if later slots are slow.

        pauses: it may take long until the next rows follow.
        """
        rows, self._out = self._out, []
        self._out_bytes = 0
        now = time.perf_counter()
        is_quick = now - self._sent_at < 2 * _BUSY_LINGER_SECONDS
        self.more_follows = is_quick and not self._has_waited and not pauses
        self._linger = self._shortest_linger if self._has_waited else self._longest_linger
        self._has_waited = False
        self._sent_at = now
        yield rows

    def _send(self, row: BufferRow) -> None:
        if row.kind in FOR_DRIVER:
            self._to_driver(row)
            if row.kind == OUTPUT:
                self._want_end()
        else:
            if row.kind == DATA:
                self._windows.sent(row.edge, row.target, len(row.payload))
            self._pass_on(row)

    def _pass_on(self, row: BufferRow) -> None:
        self._out.append(row)
        size = len(row.payload)
        self._out_bytes += size
        self._sent_ahead += size

    # Time

    def _is_late(self) -> bool:
        return time.perf_counter() - self._sent_at >= self._linger

    def _flush_in_time(self, wait: float) -> float:
        """Flush buffers that have lingered long enough. Return the time that the slot may wait."""
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
        if self._savepoints.is_busy:
            return _SAVEPOINT_SECONDS
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
        if self._savepoints.has_news:
            self._want_end()

    # Records

    def _read(self) -> float:
        """Let each source read a chunk. Return the seconds until there may be more to do."""
        if self._halted or self._failed or not self.is_open or not self._limit:
            return _IDLE_SECONDS
        if self._waits or self._is_ahead or self._windows.is_full:
            return _IDLE_SECONDS
        soonest = _IDLE_SECONDS
        now = self._seconds()
        for index, subtask in enumerate(self._sources):
            if subtask.head.records_read >= self._limit:
                self._want_end()
                continue
            until_then = self._read_at[index] - now
            wait = self._read_chunk(subtask) if until_then <= 0.0 else until_then
            self._read_at[index] = now + wait if wait else now
            if wait is None:
                if subtask.head.needs_report:
                    self._want_end()
            else:
                soonest = min(soonest, wait)
        return soonest

    def _read_chunk(self, source: Subtask) -> float | None:
        """Let a source read a chunk. It is small if a later slot is slow."""
        if not self._windows.is_limited:
            return source.read_some(self._limit)
        before, sent_before = source.head.records_read, self._records_out()
        limit = min(self._limit, before + self._windows.most_records())
        wait = source.read_some(limit)
        self._windows.processed(
            source.head.records_read - before, self._records_out() - sent_before
        )
        return wait

    def _records_out(self) -> int:
        return sum(writer.records_out for writer in self._writers)

    @property
    def _is_ahead(self) -> bool:
        """The slot has sent much of an epoch before all slots have ended the epoch before it.

        Other slots may have to hold those rows. The slot waits until the driver says that all have
        ended. It still reads rows, because they may be for later levels.
        """
        return self._aligns and self._control is None and self._sent_ahead >= self._most_ahead

    def _take_rows(self, rows: Rows) -> None:
        """Take rows that were read. Those for later levels leave at once."""
        for row in rows:
            if self._is_own(row):
                self._wait(row)

    def _is_own(self, row: BufferRow) -> bool:
        if self._wiring.level_of_edge[row.edge] != self._level:
            self._pass_on(row)
            return False
        return not (self._failed or self._closed)

    def _wait(self, row: BufferRow) -> None:
        self._backlog.append(row)
        self._backlog_bytes += len(row.payload)

    def _work_off(self) -> None:
        """Process rows that wait, until something else is to be done."""
        backlog, inbox = self._backlog, self._inbox
        assert inbox is not None
        while backlog:
            row = backlog.popleft()
            self._backlog_bytes -= len(row.payload)
            self._accept(row)
            if inbox.has_message or self._out_bytes >= _SEND_BYTES:
                break
            if self._is_ahead or self._windows.is_full:
                break
            if self._absorbs or (self._out and self._is_late()):
                break
        if self._is_loaded and self._backlog_bytes <= _LOADED_BYTES:
            # The sources may continue.
            self._is_loaded = False
            self._want_end()

    def _accept(self, row: BufferRow) -> None:
        channel = (row.edge, row.channel)
        if not self.is_open or (self._aligns and channel in self._ended):
            self._held.append(row)
            return
        subtask = self._wiring.by_edge[row.edge]
        rest = self._process(subtask, row)
        if rest is not None:
            self._backlog.appendleft(rest)
            self._backlog_bytes += len(rest.payload)
        if row.kind == END_OF_EPOCH:
            self._ended.add(channel)
        elif row.kind == END_OF_INPUT:
            self._want_end()

    def _process(self, subtask: Subtask, row: BufferRow) -> BufferRow | None:
        """Process a row. Return the rest of it, if something else has to be done first."""
        windows = self._windows
        if row.kind != DATA:
            subtask.accept(row)
            return None
        gate = subtask.gate
        if windows.is_limited:
            before, sent_before = gate.records_in, self._records_out()
            gate.limit_chunks(windows.most_records())
            subtask.accept(row)
            windows.processed(gate.records_in - before, self._records_out() - sent_before)
        else:
            gate.limit_chunks(None)
            subtask.accept(row)
        rest = gate.take_rest()
        if self._receipts is not None:
            size = len(row.payload) - (0 if rest is None else len(rest.payload))
            if self._receipts.processed((row.edge, row.channel), size):
                self._send_credits(self._receipts)
        return rest

    def _send_credits(self, receipts: Receipts) -> None:
        found = receipts.credits()
        if found:
            self._to_driver(BufferRow(self._slot, 0, 0, 0, CREDITS, encode(found)))

    def _after_chunk(self, subtask: Subtask) -> None:
        subtask.fire_processing_time_timers()
        subtask.tick()

    def _may_continue(self) -> bool:
        """Called between two chunks of a row: messages of the driver do not wait for its end."""
        if self._inbox is None:
            return True
        return not (self._inbox.has_message or self._absorbs or self._windows.is_full)

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
        self._savepoints.confirm()
        self._savepoints.abort(control.aborted_checkpoints)
        self._control = control
        self._limit = control.budget.records
        self._sent_ahead = 0
        self._waits = control.waits
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
            # Rows of the restored checkpoint come before those that have arrived already.
            replayed = [row for subtask in self._subtasks for row in subtask.take_replayed()]
            self._held = [*replayed, *self._held]
            if self._receipts is not None:
                for row in replayed:
                    if row.kind == DATA:
                        self._receipts.expect((row.edge, row.channel), len(row.payload))
                self._receipts.begin()
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

    def _end_if_due(self, inbox: Inbox) -> Iterator[Rows]:
        """End the epoch, as the driver has said, if the marks of all channels have arrived.

        A barrier that overtakes does not wait for them. An epoch without marks ends at once.
        """
        control = self._control
        if control is None or self._failed or self._closed:
            self._told_to_end = False
        elif self._unaligned and control.checkpoint_id is None:
            self._pause_epoch(control)
        elif self._has_all_marks:
            yield from self._end_epoch(control)
        elif (
            control.overtakes
            and self._until_overtaking() <= 0.0
            and self._backlog_bytes <= _MOST_OVERTAKEN_BYTES
        ):
            yield from self._overtake(control, inbox)

    @property
    def _has_all_marks(self) -> bool:
        """The marks of all channels have arrived, and the rows before them were processed."""
        if not self._channels:
            # After rescaling, rows of a checkpoint may wait here although no more can arrive.
            return not self._backlog
        return len(self._ended) == self._channels

    def _until_overtaking(self) -> float:
        """Return the seconds until the barrier of a checkpoint may overtake rows."""
        control = self._control
        if not self._told_to_end or control is None or not control.overtakes:
            return _IDLE_SECONDS
        return max(0.0, self._overtakes_at - time.perf_counter())

    def _pause_epoch(self, control: SlotControl) -> None:
        """Report the state without a mark. No job returns to the end of this epoch."""
        began = time.perf_counter()
        for subtask in self._subtasks:
            subtask.stop_reading(drain=control.drain)
            subtask.pause_epoch()
        acks = self._seal(control)
        self._epoch_ended(control, acks, time.perf_counter() - began)

    def _end_epoch(self, control: SlotControl) -> Iterator[Rows]:
        """Send the marks on, then report the state. All channels have ended."""
        began = time.perf_counter()
        yield from self._send_marks(control)
        acks = self._seal(control)
        self._epoch_ended(control, acks, time.perf_counter() - began)
        self._ended.clear()
        self._release_held()

    def _overtake(self, control: SlotControl, inbox: Inbox) -> Iterator[Rows]:
        """Take a snapshot now. Rows before the marks of their channels are part of it.

        The slot only reads until all marks have arrived. So nothing that it does after the snapshot
        reaches the driver before the report of the snapshot.
        """
        began = time.perf_counter()
        waiting = [*self._held, *self._backlog]
        self._held, self._backlog, self._backlog_bytes = [], deque(), 0
        self._inbox = None
        for row in waiting:
            self._sort(row)
        if not (yield from self._sort_until(lambda: self._strict <= self._ended, inbox)):
            return
        snapshot_began = time.perf_counter()
        yield from self._send_marks(control, overtakes=True)
        acks = self._seal(control)
        snapshot_seconds = time.perf_counter() - snapshot_began
        if not (yield from self._sort_until(lambda: len(self._ended) == self._channels, inbox)):
            return
        self._inbox = inbox
        alignment = time.perf_counter() - began
        acks = [self._with_in_flight(ack, control.address.epoch, alignment) for ack in acks]
        # They arrived after the marks of their channels, so after all rows of the backlog.
        for row in self._held:
            self._wait(row)
        self._held = []
        self._ended.clear()
        self._epoch_ended(control, acks, snapshot_seconds)

    def _sort_until(
        self, has_come: Callable[[], bool], inbox: Inbox
    ) -> Generator[Rows, None, bool]:
        """Read until the marks have come. Return False if the slot was closed before."""
        while not has_come() and not self._closed:
            yield from self._sort_next(inbox)
        return not self._closed

    def _sort_next(self, inbox: Inbox) -> Iterator[Rows]:
        """Read, and sort what has arrived."""
        self.activity.wait_for_input()
        item = inbox.take(_IDLE_SECONDS)
        self.activity.work()
        if item is None:
            yield []
        elif isinstance(item, list):
            for row in item:
                if self._is_own(row):
                    self._sort(row)
        elif not isinstance(item, EndEpoch):
            self._take_message(item)
        if self._out:
            yield from self._hand_over(pauses=True)

    def _sort(self, row: BufferRow) -> None:
        """Put a row to those before the mark of its channel, or to those after it."""
        channel = (row.edge, row.channel)
        subtask = self._wiring.by_edge[row.edge]
        if channel in self._ended:
            self._held.append(subtask.gate.count(row))
        elif row.kind == END_OF_EPOCH:
            self._ended.add(channel)
            counted = subtask.gate.count(row)
            if row.payload == FINISHED:
                self._wait(counted._replace(kind=END_OF_INPUT, payload=b""))
        elif row.kind == BARRIER:
            subtask.gate.count(row)
        elif channel in self._strict:
            # The inbox is not asked now, so all of the row is processed.
            self._process(subtask, row)
        else:
            self._wait(subtask.gate.count(row))

    def _with_in_flight(self, ack: SubtaskAck, epoch: int, alignment: float) -> SubtaskAck:
        """Add the rows of a subtask that the barrier has overtaken."""
        began = time.perf_counter()
        subtask = self._wiring.subtasks[ack.vertex]
        rows = [row for row in self._backlog if self._wiring.by_edge[row.edge] is subtask]
        written = subtask.in_flight.written(rows, self._store, epoch)
        timing = replace(
            ack.timing,
            alignment=alignment,
            asynchronous=ack.timing.asynchronous + time.perf_counter() - began,
            is_unaligned=True,
            persisted_bytes=sum(segment.size for segment in written),
        )
        return replace(ack, in_flight=written, timing=timing)

    def _send_marks(self, control: SlotControl, *, overtakes: bool = False) -> Iterator[Rows]:
        for subtask in self._subtasks:
            subtask.stop_reading(drain=control.drain)
            subtask.end_epoch(checkpoint_id=control.checkpoint_id, overtakes=overtakes)
        if self._out:
            # The next level need not wait for the state of this one.
            yield from self._hand_over(pauses=True)

    def _seal(self, control: SlotControl) -> list[SubtaskAck]:
        epoch = control.address.epoch
        acks = []
        for subtask in self._subtasks:
            acks.append(
                subtask.ack(epoch, self._store, control.checkpoint_id, control.checkpoint_timestamp)
            )
            subtask.confirm()
            subtask.begin_epoch(epoch + 1)
        if control.savepoint is not None:
            frozen = [
                operator
                for subtask, ack in zip(self._subtasks, acks, strict=True)
                for operator in subtask.freeze(ack, self._store, native=control.savepoint.native)
            ]
            self._savepoints.begin(control.savepoint, frozen)
        return acks

    def _epoch_ended(
        self, control: SlotControl, acks: list[SubtaskAck], end_seconds: float
    ) -> None:
        """Report the epoch. What follows belongs to the next one."""
        self._told_to_end = False
        self._control = None
        self._sent_ahead = 0
        self._end_wanted = False
        self._halted = control.halt
        if self._limit < UNLIMITED:
            # The next control has a limit of its own.
            self._limit = 0
        self._acknowledge(tuple(acks), end_seconds)

    def _release_held(self) -> None:
        """Process the rows that were held, before those that arrived after them."""
        held, self._held = self._held, []
        self._backlog.extendleft(reversed(held))
        self._backlog_bytes += sum(len(row.payload) for row in held)

    def _acknowledge(self, acks: tuple[SubtaskAck, ...], end_seconds: float = 0.0) -> None:
        now = time.perf_counter()
        ack = SlotAck(
            address=self._address,
            host=host_name(),
            subtasks=acks,
            seconds=now - self._epoch_began_at,
            processing_time=max((one.clock.now_millis() for one in self._subtasks), default=0),
            end_seconds=end_seconds,
            is_loaded=self._unaligned and self._backlog_bytes > _LOADED_BYTES,
            savepoints=self._savepoints.progress(),
        )
        self._epoch_began_at = now
        self._is_loaded = ack.is_loaded
        self._to_driver(BufferRow(self._slot, 0, 0, 0, ACK, encode(ack)))

    @property
    def title(self) -> str:
        """The job and the subtasks, for log lines."""
        subtasks = ", ".join(
            f"{one.vertex.name} ({one.index + 1}/{one.vertex.parallelism})"
            for one in self._subtasks
        )
        return f"{self._job_name}: {subtasks}"

    def report(self, in_pool: float) -> SlotReport:
        """Report the work so far. Any thread may call it.

        in_pool: the part of the inbox that is full.
        """
        seconds, idle, back_pressured = self.activity.seconds()
        figures = [subtask.figures() for subtask in self._subtasks]
        working = sum(one.busy_seconds for one in figures)
        # Moving rows, ending epochs and saving state are work of all subtasks of the slot.
        shared = max(0.0, seconds - idle - back_pressured - working) / max(1, len(figures))
        for one, subtask in zip(figures, self._subtasks, strict=True):
            one.busy_seconds += shared
            if subtask.writers:
                one.back_pressured_seconds = back_pressured
            one.idle_seconds = max(0.0, seconds - one.busy_seconds - one.back_pressured_seconds)
            waits = 1.0 if self._backlog else in_pool
            one.in_pool = waits if subtask.gate.remote_channels else 0.0
            if subtask.writers:
                filled = self._out_bytes / _SEND_BYTES
                one.out_pool = 1.0 if self.activity.is_back_pressured else min(1.0, filled)
        address = self._address
        return SlotReport(
            self._level, self._slot, address.attempt, host_name(), seconds, tuple(figures)
        )

    # The end

    def _stop_working(self) -> None:
        """Do nothing more until the driver closes the slot.

        The running epoch is void, so sinks abort the transactions that they began in it.
        """
        self._failed = True
        self._savepoints.abandon()
        if self.is_open:
            for subtask in self._subtasks:
                subtask.abort_epoch()
        self._out.clear()
        self._out_bytes = 0
        self._ended.clear()
        self._held.clear()
        self._backlog.clear()
        self._backlog_bytes = 0

    def _report(self, error: BaseException) -> None:
        explained = explained_failure(error, self._job_name, self._level, self._slot)
        failure = SlotFailure(self._address, explained)
        self._to_driver(BufferRow(self._slot, 0, 0, 0, FAILURE, encode(failure)))

    def _close(self, control: SlotControl) -> None:
        """Commit the remaining committables and close the functions. The rest of the input is dropped."""
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
        self._held.clear()
        self._backlog.clear()
        for further in errors[1:]:
            _log.error("level %d, slot %d also failed: %s", self._level, self._slot, further)
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
        self._release_and_log()
        before = dict(self._wiring.subtasks)
        self._build(self._renew())
        for vertex_id, subtask in self._wiring.subtasks.items():
            subtask.replace(before[vertex_id])

    def _release_and_log(self) -> None:
        """Close all functions. No answer to the driver can have their errors."""
        for error in self._release():
            _log.warning("level %d, slot %d: %s", self._level, self._slot, error)

    def _release(self) -> list[Exception]:
        """Close all functions that are open, and return their errors."""
        self._savepoints.abandon()
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
        self.more_follows = False
        self.activity = SlotActivity()
        #: The job and the place, for log lines.
        self.title = f"{packed.job_name}: level {level}, slot {slot}"

    def report(self, in_pool: float) -> SlotReport:
        """Report that no subtask works."""
        address, (seconds, _, _) = self._address, self.activity.seconds()
        return SlotReport(address.level, address.slot, address.attempt, host_name(), seconds, ())

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
