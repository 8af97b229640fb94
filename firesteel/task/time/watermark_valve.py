"""The watermark of a gate, from those of its channels.

A channel counts while it is active. After it was idle, it counts again when its watermark has
caught up with that of its input. So a silent channel delays nothing, and a channel that wakes up
late cannot turn time back.

An operator with two inputs combines their watermarks. An input counts as soon as it is active. An
input that wakes up late holds time back until it has caught up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from firesteel.common.constants import MIN_WATERMARK


class PartTime(Protocol):
    """The time of a part of a stream: a split of a source, or an input of an operator."""

    @property
    def watermark(self) -> int: ...

    @property
    def idle(self) -> bool: ...


def combine(parts: Collection[PartTime]) -> tuple[int, bool]:
    """Return the watermark and the idleness of all parts: the least watermark of the active parts.

    If all parts are idle, none will advance, and the greatest watermark holds. Otherwise the result
    would depend on the order in which they become idle.
    """
    active = [part.watermark for part in parts if not part.idle]
    if active:
        return min(active), False
    return max(part.watermark for part in parts), True


class ChannelTime:
    """The time of one channel. An aligned channel counts for the minimum."""

    __slots__ = ("_valve", "aligned", "idle", "watermark")

    def __init__(self, valve: WatermarkValve) -> None:
        self._valve = valve
        self.watermark = MIN_WATERMARK
        self.idle = False
        self.aligned = True

    def advance(self, watermark: int) -> None:
        """Take the watermark of the channel. One that is not newer is ignored."""
        self._valve.advance(self, watermark)

    def set_idle(self, idle: bool) -> None:
        self._valve.set_idle(self, idle=idle)


class GateTime:
    """Combines the inputs of a gate. ``on_watermark`` and ``on_idle`` are called on changes only."""

    def __init__(
        self, on_watermark: Callable[[int], None], on_idle: Callable[[bool], None]
    ) -> None:
        self._on_watermark = on_watermark
        self._on_idle = on_idle
        self._inputs: dict[int, WatermarkValve] = {}
        self.watermark = MIN_WATERMARK
        self.idle = False

    def add_channel(self, input_index: int = 0) -> ChannelTime:
        valve = self._inputs.get(input_index)
        if valve is None:
            valve = self._inputs[input_index] = WatermarkValve(self._combine)
        return valve.add_channel()

    def _combine(self) -> None:
        watermark, idle = combine(self._inputs.values())
        if self.idle and not idle:
            self.idle = False
            self._on_idle(False)
        if watermark > self.watermark:
            self.watermark = watermark
            self._on_watermark(watermark)
        if idle and not self.idle:
            self.idle = True
            self._on_idle(True)

    def snapshot(self) -> dict[int, tuple[int, bool]]:
        """The watermark and the idleness of each input."""
        return {index: (valve.watermark, valve.idle) for index, valve in self._inputs.items()}

    def restore(
        self, watermark: int, *, idle: bool, inputs: Mapping[int, tuple[int, bool]] | None = None
    ) -> None:
        """Restore the time, after the fields of the channels.

        inputs: the result of ``snapshot``. An input that it does not name has the gate's time.
        """
        self.watermark = watermark
        self.idle = idle
        for index, valve in self._inputs.items():
            valve.restore(*(inputs or {}).get(index, (watermark, idle)))


class WatermarkValve:
    """Combines the channels of one input. ``on_change`` is called after each change of the result."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._channels: list[ChannelTime] = []
        self.watermark = MIN_WATERMARK
        self.idle = False

    def add_channel(self) -> ChannelTime:
        channel = ChannelTime(self)
        self._channels.append(channel)
        return channel

    def advance(self, channel: ChannelTime, watermark: int) -> None:
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
                self._on_change()
            return
        held_up_the_others = channel.watermark == self.watermark
        channel.aligned = False
        if all(other.idle for other in self._channels):
            # No channel will advance, so the watermark of the furthest one holds.
            if held_up_the_others:
                self._pass_on(max(other.watermark for other in self._channels))
            self.idle = True
            self._on_change()
        elif held_up_the_others:
            self._pass_on_minimum()

    def _pass_on_minimum(self) -> None:
        counting = [channel.watermark for channel in self._channels if channel.aligned]
        if counting:
            self._pass_on(min(counting))

    def _pass_on(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            self._on_change()

    def restore(self, watermark: int, idle: bool) -> None:
        """Restore the valve, after the fields of its channels."""
        self.watermark = watermark
        self.idle = idle
        for channel in self._channels:
            channel.aligned = not channel.idle and channel.watermark >= watermark
