"""The watermark of several channels: the least of those that count.

A channel counts while it is active. After it was idle, it counts again when its watermark has
caught up with the emitted one. So a silent channel delays nothing, and a channel that wakes up late
cannot turn time back.
"""

from __future__ import annotations

from collections.abc import Callable

from firesteel.common.constants import MIN_WATERMARK


class ChannelTime:
    """The time of one channel. An aligned channel counts for the minimum."""

    __slots__ = ("aligned", "idle", "watermark")

    def __init__(self) -> None:
        self.watermark = MIN_WATERMARK
        self.idle = False
        self.aligned = True


class WatermarkValve:
    """Combines the channels. ``on_watermark`` and ``on_idle`` are called on changes only."""

    def __init__(
        self, on_watermark: Callable[[int], None], on_idle: Callable[[bool], None]
    ) -> None:
        self._on_watermark = on_watermark
        self._on_idle = on_idle
        self._channels: list[ChannelTime] = []
        self.watermark = MIN_WATERMARK
        self.idle = False

    def add_channel(self) -> ChannelTime:
        channel = ChannelTime()
        self._channels.append(channel)
        return channel

    def advance(self, channel: ChannelTime, watermark: int) -> None:
        """Take the watermark of a channel. One that is not newer is ignored."""
        if channel.idle:
            self.set_idle(channel, idle=False)
        if watermark <= channel.watermark:
            return
        channel.watermark = watermark
        if not channel.aligned and watermark >= self.watermark:
            channel.aligned = True
        self._pass_on_minimum()

    def set_idle(self, channel: ChannelTime, *, idle: bool) -> None:
        if channel.idle == idle:
            return
        channel.idle = idle
        if not idle:
            channel.aligned = channel.watermark >= self.watermark
            if self.idle:
                self.idle = False
                self._on_idle(False)
            return
        held_up_the_others = channel.watermark == self.watermark
        channel.aligned = False
        if all(other.idle for other in self._channels):
            # No channel will advance, so the watermark of the furthest one holds.
            if held_up_the_others:
                self._pass_on(max(other.watermark for other in self._channels))
            self.idle = True
            self._on_idle(True)
        elif held_up_the_others:
            self._pass_on_minimum()

    def _pass_on_minimum(self) -> None:
        counting = [channel.watermark for channel in self._channels if channel.aligned]
        if counting:
            self._pass_on(min(counting))

    def _pass_on(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            self._on_watermark(watermark)

    def restore(self, watermark: int, *, idle: bool) -> None:
        """Restore the valve, after the fields of its channels."""
        self.watermark = watermark
        self.idle = idle
        for channel in self._channels:
            channel.aligned = not channel.idle and channel.watermark >= watermark
