"""The input gate of a subtask: the place where the rows of its channels arrive.

The gate checks that no row was lost or swapped, combines the watermarks of the channels into their
minimum, and counts their barriers. It knows when all channels have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.errors import ChannelSequenceError, JobExecutionError
from firesteel.protocol.rows import (
    ABORTED,
    BARRIER,
    COUNTED,
    DATA,
    END_OF_EPOCH,
    END_OF_INPUT,
    FINISHED,
    IDLENESS,
    WATERMARK,
    BufferRow,
)
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.column_batch import ColumnKeys
from firesteel.task.exchange.buffers import BufferEncoder, decode_buffer
from firesteel.task.record_batch import Emit, RecordBatch
from firesteel.task.time.clock import ChunkPacer
from firesteel.task.time.watermark_valve import ChannelTime, GateTime
from firesteel.usercode import pickling
from firesteel.usercode.failures import USER_ERRORS, raised_by

# The sequence number in an error about a channel that ended too early, and of a channel that must
# not send anything until the next epoch begins.
_NOTHING = -1

# Payloads of IDLENESS rows.
ACTIVE, IDLE = b"\x00", b"\x01"


@dataclass(frozen=True, slots=True)
class Entrance:
    """The way into a gate for an edge that stays inside the slot.

    count: counts records that a shared loop brings to the operator after the gate.
    """

    emit: Emit
    watermark: Callable[[int], None]
    idle: Callable[[bool], None]
    count: Callable[[int], None]
    barrier: Callable[[int], None]
    end: Callable[[bool], None]


class Channel:
    """The state of the path from one upstream subtask. ``seq`` counts the rows of the epoch."""

    __slots__ = ("ended", "finished", "process", "selection", "seq", "time")

    def __init__(
        self, process: Emit, selection: KeySelection | ColumnKeys | None, time: ChannelTime
    ) -> None:
        self.process = process
        self.selection = selection
        self.time = time
        self.seq = 0
        self.finished = False
        self.ended = False


class InputGate:
    """Receives rows, and hands batches, watermarks and idleness to the first operator.

    Channels are identified by (edge, upstream subtask).
    """

    def __init__(
        self,
        name: str,
        on_watermark: Callable[[int], None],
        on_idle: Callable[[bool], None],
        *,
        operator: str = "",
    ) -> None:
        """Create a gate without channels.

        name: the subtask in error messages.
        operator: the name of the first operator in error messages.
        """
        self._name = name
        self._operator = operator
        self.barriers = BarrierTracker()
        self._time = GateTime(on_watermark, on_idle)
        self._channels: dict[tuple[int, int], Channel] = {}
        self._local_channels: set[tuple[int, int]] = set()
        self.aborted = False
        # The rows of the next epoch may follow at once. The slot decides which of them must wait.
        self.flowing = False
        # Records also come back through a loop, so the gate does not finish with its channels.
        self.held_open = False
        self.records_in = 0
        self.bytes_in = 0
        self._pacer: ChunkPacer | None = None
        self._after_chunk: Callable[[], None] = lambda: None
        self._may_continue: Callable[[], bool] = lambda: True
        # The part of a row that was not processed, because the slot has something else to do.
        self._rest: BufferRow | None = None

    def pace(
        self,
        after_chunk: Callable[[], None],
        may_continue: Callable[[], bool] = lambda: True,
        seconds: float | None = None,
    ) -> None:
        """Process large buffers in chunks of some milliseconds, and call back after each.

        may_continue: if it returns False, the rest of the buffer is left for ``take_rest``.
        """
        self._pacer = ChunkPacer() if seconds is None else ChunkPacer(seconds)
        self._after_chunk = after_chunk
        self._may_continue = may_continue

    def limit_chunks(self, records: int | None) -> None:
        """Set the most records of a chunk, because their results may be many for later slots."""
        if self._pacer is not None:
            self._pacer.most = records

    def take_rest(self) -> BufferRow | None:
        """Return the part of the last row that was not processed, to be accepted next."""
        rest, self._rest = self._rest, None
        return rest

    def add_channel(
        self,
        edge: int,
        upstream: int,
        process: Emit,
        selection: KeySelection | ColumnKeys | None = None,
        *,
        input_index: int = 0,
    ) -> None:
        """Add the channel of an upstream subtask.

        process: takes its batches.
        selection: computes the keys of the records whose keys are not sent.
        input_index: the input whose watermark the channel is part of.
        """
        time = self._time.add_channel(input_index)
        self._channels[edge, upstream] = Channel(process, selection, time)

    @property
    def remote_channels(self) -> list[tuple[int, int]]:
        """The channels from other slots: an edge and an upstream subtask."""
        return [channel for channel in self._channels if channel not in self._local_channels]

    @property
    def watermark(self) -> int:
        return self._time.watermark

    @property
    def input_watermarks(self) -> dict[int, int]:
        """The watermark of each input. An operator with two inputs has the lower one."""
        return {index: watermark for index, (watermark, _) in self._time.snapshot().items()}

    @property
    def finished(self) -> bool:
        """True if every channel has ended for good. A gate without channels never finishes."""
        if self.held_open or not self._channels:
            return False
        return all(c.finished for c in self._channels.values())

    def begin_epoch(self) -> None:
        self.aborted = False
        self.records_in = 0
        self.bytes_in = 0
        self.barriers.begin_epoch()
        for channel in self._channels.values():
            if not self.flowing:
                channel.seq = 0
            channel.ended = False

    def accept(self, row: BufferRow) -> None:
        """Take a row that an exchange has brought."""
        channel = self._channels[row.edge, row.channel]
        if row.kind == END_OF_EPOCH and row.payload == ABORTED:
            self.aborted = True
            return
        if row.seq != COUNTED:
            self._count_row(channel, row)
        if row.kind == DATA:
            try:
                batch = decode_buffer(row.payload, channel.selection)
            except USER_ERRORS as error:
                raise raised_by(error, self._operator, "the unpickling of its records") from error
            self.bytes_in += len(row.payload)
            if self._pacer is None:
                self.records_in += len(batch)
                channel.process(batch)
            else:
                self._process_paced(self._pacer, channel.process, batch, row)
        elif row.kind == WATERMARK:
            channel.time.advance(pickling.loads(row.payload))
        elif row.kind == IDLENESS:
            channel.time.set_idle(row.payload == IDLE)
        elif row.kind == BARRIER:
            self._barrier((row.edge, row.channel), pickling.loads(row.payload))
        elif row.kind == END_OF_INPUT:
            self._finish(channel)
        else:
            self._end(channel, finished=row.payload == FINISHED)

    def count(self, row: BufferRow) -> BufferRow:
        """Check the place of a row in its channel when it is read, long before it is processed."""
        if row.seq == COUNTED:
            return row
        self._count_row(self._channels[row.edge, row.channel], row)
        return row._replace(seq=COUNTED)

    def _count_row(self, channel: Channel, row: BufferRow) -> None:
        if row.seq != channel.seq:
            raise ChannelSequenceError(
                f"{row.channel} of edge {row.edge} into {self._name}", channel.seq, row.seq
            )
        channel.seq += 1
        if row.kind == END_OF_EPOCH:
            channel.seq = 0 if self.flowing else _NOTHING

    def _barrier(self, channel: tuple[int, int], checkpoint_id: int) -> None:
        self.barriers.arrived(channel, checkpoint_id, len(self._channels))

    def _process_paced(
        self, pacer: ChunkPacer, process: Emit, batch: RecordBatch, row: BufferRow
    ) -> None:
        start, count = 0, len(batch)
        while start < count:
            stop = start + pacer.chunk
            chunk = batch if start == 0 and stop >= count else batch.part(start, stop)
            self.records_in += len(chunk)
            began = time.perf_counter()
            process(chunk)
            pacer.took(time.perf_counter() - began, len(chunk))
            self._after_chunk()
            start = stop
            if start < count and not self._may_continue():
                payload, _ = BufferEncoder().encode(batch.part(start, count))
                self.bytes_in -= len(payload)
                self._rest = row._replace(seq=COUNTED, payload=payload)
                return

    def accept_local(self, edge: int, upstream: int) -> Entrance:
        channel = self._channels[edge, upstream]
        self._local_channels.add((edge, upstream))

        def count(records: int) -> None:
            self.records_in += records

        def emit(batch: RecordBatch) -> None:
            count(len(batch))
            channel.process(batch)

        return Entrance(
            emit,
            channel.time.advance,
            channel.time.set_idle,
            count,
            lambda checkpoint_id: self._barrier((edge, upstream), checkpoint_id),
            lambda finished: self._end(channel, finished=finished),
        )

    def _end(self, channel: Channel, *, finished: bool) -> None:
        """The channel has ended for this epoch, or for good."""
        channel.ended = True
        channel.finished = finished
        if finished:
            channel.time.advance(MAX_WATERMARK)

    def _finish(self, channel: Channel) -> None:
        """Nothing follows on the channel but marks."""
        channel.finished = True
        channel.time.advance(MAX_WATERMARK)

    def check_complete(self) -> None:
        """Raise an error unless every channel has reported the end of the epoch."""
        for (edge, upstream), channel in self._channels.items():
            if not channel.ended:
                raise ChannelSequenceError(
                    f"{upstream} of edge {edge} into {self._name}", channel.seq, _NOTHING
                )

    def snapshot(self) -> Any:
        channels = {
            key: (c.time.watermark, c.time.idle, c.finished) for key, c in self._channels.items()
        }
        return self._time.watermark, self._time.idle, channels, self._time.snapshot()

    def restore(self, state: Any) -> None:
        channels: dict[tuple[int, int], tuple[int, bool, bool]]
        # Checkpoints of version 0.1 do not have the time of each input.
        watermark, idle, channels, *inputs = (MIN_WATERMARK, False, {}) if state is None else state
        for key, channel in self._channels.items():
            channel.time.watermark, channel.time.idle, channel.finished = channels.get(
                key, (MIN_WATERMARK, False, False)
            )
        self._time.restore(watermark, idle=idle, inputs=inputs[0] if inputs else None)

    def resume_time(self, watermark: int) -> None:
        """Set the watermark of all channels after the job was restored."""
        for channel in self._channels.values():
            channel.time.watermark = watermark
        self._time.restore(watermark, idle=False)


class BarrierTracker:
    """Collects the barriers of a checkpoint, one per channel, and measures how long that takes."""

    def __init__(self) -> None:
        self._arrived: set[Hashable] = set()
        self._checkpoint_id: int | None = None
        # The time at which the first barrier of this epoch arrived.
        self.first_at: float | None = None
        # Seconds from the first barrier to the last.
        self.alignment_seconds = 0.0
        # The checkpoint whose barriers have all arrived in this epoch.
        self.aligned: int | None = None

    def begin_epoch(self) -> None:
        """Clear everything, because an abandoned attempt may have left something."""
        self._arrived.clear()
        self._checkpoint_id = None
        self.first_at = None
        self.aligned = None
        self.alignment_seconds = 0.0

    def arrived(self, channel: Hashable, checkpoint_id: int, channels: int) -> None:
        """Note the barrier of a channel. ``channels`` is the number of all channels."""
        if self._checkpoint_id is None:
            self._checkpoint_id = checkpoint_id
            self.first_at = time.perf_counter()
        if checkpoint_id != self._checkpoint_id or channel in self._arrived:
            raise JobExecutionError(
                f"barrier {checkpoint_id} came where barrier {self._checkpoint_id} was expected"
            )
        self._arrived.add(channel)
        if len(self._arrived) < channels:
            return
        assert self.first_at is not None
        self.alignment_seconds = time.perf_counter() - self.first_at
        self.aligned = checkpoint_id
        self._arrived.clear()
        self._checkpoint_id = None
