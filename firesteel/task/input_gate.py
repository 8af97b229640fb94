"""The input gate of a subtask: what it knows of each of its channels.

It checks that nothing was lost or swapped on the way, combines the channels' watermarks into
their minimum, and tells when all channels have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from firesteel import pickling
from firesteel.errors import ChannelSequenceError
from firesteel.task.buffers import decode_buffer
from firesteel.task.rows import DATA, END_OF_EPOCH, WATERMARK, BufferRow
from firesteel.task.watermarks import MAX_WATERMARK, MIN_WATERMARK

Receive = Callable[[list[Any], list[Any] | None, list[int] | None], None]

# In an error: the channel ended without the row that was due.
_NOTHING = -1

# What an END_OF_EPOCH row says about its channel.
OPEN, FINISHED, ABORTED = b"\x00", b"\x01", b"\x02"


class Channel:
    """The path from one upstream subtask. ``seq`` counts the rows of the epoch."""

    __slots__ = ("ended", "finished", "receive", "seq", "watermark")

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.seq = 0
        self.watermark = MIN_WATERMARK
        self.finished = False
        self.ended = False


class InputGate:
    """Channels by (edge, upstream subtask)."""

    def __init__(self, name: str, on_watermark: Callable[[int], None]) -> None:
        self._name = name
        self._on_watermark = on_watermark
        self._channels: dict[tuple[int, int], Channel] = {}
        self.watermark = MIN_WATERMARK
        self.aborted = False
        self.records_in = 0
        self.bytes_in = 0
        # When the first channel had given all of its epoch.
        self.first_end: float | None = None

    def add_channel(self, edge: int, upstream: int, receive: Receive) -> None:
        self._channels[edge, upstream] = Channel(receive)

    @property
    def finished(self) -> bool:
        """Whether every channel has ended for good. A gate without channels never does."""
        return bool(self._channels) and all(c.finished for c in self._channels.values())

    def begin_epoch(self) -> None:
        self.aborted = False
        self.records_in = 0
        self.bytes_in = 0
        self.first_end = None
        for channel in self._channels.values():
            channel.seq = 0
            channel.ended = False

    def accept(self, row: BufferRow) -> None:
        """A row of this subtask's, from an exchange."""
        channel = self._channels[row.edge, row.channel]
        if row.kind == END_OF_EPOCH and row.payload == ABORTED:
            self.aborted = True
            return
        if row.seq != channel.seq or channel.ended:
            raise ChannelSequenceError(
                f"{row.channel} of edge {row.edge} into {self._name}", channel.seq, row.seq
            )
        channel.seq += 1
        if row.kind == DATA:
            values, keys, timestamps = decode_buffer(row.payload)
            self.records_in += len(values)
            self.bytes_in += len(row.payload)
            channel.receive(values, keys, timestamps)
        elif row.kind == WATERMARK:
            self._advance(channel, pickling.loads(row.payload))
        else:
            self._end(channel, finished=row.payload == FINISHED)

    def accept_local(
        self, edge: int, upstream: int
    ) -> tuple[Callable[[list[Any], list[int] | None], None], Callable[[int], None]]:
        """Entrances (records, watermarks) for an edge that stays inside the slot."""
        channel = self._channels[edge, upstream]

        def emit(values: list[Any], timestamps: list[int] | None) -> None:
            self.records_in += len(values)
            channel.receive(values, None, timestamps)

        return emit, lambda watermark: self._advance(channel, watermark)

    def end_local(self, edge: int, upstream: int, *, finished: bool) -> None:
        self._end(self._channels[edge, upstream], finished=finished)

    def _end(self, channel: Channel, *, finished: bool) -> None:
        if self.first_end is None:
            self.first_end = time.perf_counter()
        channel.ended = True
        channel.finished = finished

    def check_complete(self) -> None:
        """At the end of an epoch every channel must have said so itself."""
        for (edge, upstream), channel in self._channels.items():
            if not channel.ended:
                raise ChannelSequenceError(
                    f"{upstream} of edge {edge} into {self._name}", channel.seq, _NOTHING
                )

    def _advance(self, channel: Channel, watermark: int) -> None:
        if watermark <= channel.watermark:
            return
        channel.watermark = watermark
        lowest = min(MAX_WATERMARK if c.finished else c.watermark for c in self._channels.values())
        if lowest > self.watermark:
            self.watermark = lowest
            self._on_watermark(lowest)

    def snapshot(self) -> Any:
        return {key: (c.watermark, c.finished) for key, c in self._channels.items()}

    def restore(self, state: Any) -> None:
        for key, channel in self._channels.items():
            channel.watermark, channel.finished = (state or {}).get(key, (MIN_WATERMARK, False))
        self.watermark = min((c.watermark for c in self._channels.values()), default=MIN_WATERMARK)
