"""The watermark of several channels: the least of those that count.

A channel counts while it is active, and, after it was idle, again once its watermark has caught
up with what was already passed on. So a silent channel holds nobody up, and one that wakes up
late cannot turn time back.
"""

from __future__ import annotations

from collections.abc import Callable

from firesteel.common.constants import MIN_WATERMARK


class ChannelTime:
    """What a valve knows of one channel. ``aligned``: it counts for the minimum."""

    __slots__ = ("aligned", "idle", "watermark")

    def __init__(self) -> None:
        self.watermark = MIN_WATERMARK
        self.idle = False
        self.aligned = True


class WatermarkValve:
    """``on_watermark`` and ``on_idle`` hear only what is new."""

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
        """The channel's watermark has come; an older one than before says nothing."""
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
            # Nobody will advance any more: what the furthest channel has said holds.
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
        """After the channels' own fields have been restored."""
        self.watermark = watermark
        self.idle = idle
        for channel in self._channels:
            channel.aligned = not channel.idle and channel.watermark >= watermark
