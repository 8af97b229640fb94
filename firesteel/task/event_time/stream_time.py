"""The event time of a stream that one subtask produces: stamps records and emits watermarks.

A source has a generator for each of its splits, any other operator has one. What goes on is the
least watermark of those that are not idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.task.event_time.future_guard import FutureGuard
from firesteel.task.event_time.generators import Generator, PartialWatermark, create_generator
from firesteel.task.event_time.timestamps import create_assigner
from firesteel.task.watermarks import MIN_WATERMARK


class TimedOutput(Protocol):
    """Where records, watermarks and idleness go."""

    @property
    def emit(self) -> Callable[[list[Any], list[int] | None], None]: ...

    @property
    def watermark(self) -> Callable[[int], None]: ...

    @property
    def idle(self) -> Callable[[bool], None]: ...


@dataclass(slots=True)
class _Part:
    """The generator of one split. ``active_at``: when its last record came."""

    generator: Generator
    output: PartialWatermark
    active_at: int


class StreamTime:
    """``interval`` is the auto-watermark interval in milliseconds; 0: periodic generators rest."""

    def __init__(
        self,
        strategy: WatermarkStrategy,
        interval: int,
        operator: str,
        now_millis: Callable[[], int],
        output: TimedOutput,
    ) -> None:
        self._strategy = strategy
        self._interval = interval
        self._operator = operator
        self._now_millis = now_millis
        self._output = output
        self._assign = create_assigner(strategy, operator, now_millis)
        self._guard = FutureGuard(strategy, operator)
        timeout = strategy.idle_timeout
        self._idle_timeout = None if timeout is None or not interval else timeout.to_millis()
        self._parts: dict[str | None, _Part] = {}
        self._next_emit = now_millis() + interval
        # Since when there has been no split at all.
        self._empty_since = now_millis()
        self.watermark = MIN_WATERMARK
        self.idle = False

    def process(self, split: str | None, values: list[Any], timestamps: list[int] | None) -> None:
        """Stamp the records of one split and send them on, with the watermarks between them."""
        stamps = self._assign(values, timestamps)
        part = self._parts.get(split) or self._begin(split)
        now = part.active_at = self._now_millis()
        if part.output.idle or self.idle:
            # Those downstream must wait for this stream again before its records come.
            part.output.mark_active()
            self._combine()
        if stamps is None:
            self._output.emit(values, None)
            return
        newest = max(stamps)
        if newest - now > self._guard.tolerance:
            self._process_doubtful(part, values, stamps, now)
            return
        self._process_believed(part, values, stamps, newest)

    def _process_believed(
        self, part: _Part, values: list[Any], stamps: list[int], newest: int
    ) -> None:
        emit, sent = self._output.emit, 0
        for seen in part.generator.on_batch(values, stamps, newest, part.output):
            emit(values[sent:seen], stamps[sent:seen])
            sent = seen
            self._combine()
        if sent == 0:
            emit(values, stamps)
        elif sent < len(values):
            emit(values[sent:], stamps[sent:])

    def _process_doubtful(
        self, part: _Part, values: list[Any], stamps: list[int], now: int
    ) -> None:
        """Record by record: some timestamp is further ahead of the clock than it should be."""
        latest, refuses = now + self._guard.tolerance, self._guard.refuses
        for value, stamp in zip(values, stamps, strict=True):
            if stamp > latest and refuses(value, stamp, now):
                self._output.emit([value], [stamp])
            else:
                self._process_believed(part, [value], [stamp], stamp)

    # Periodic

    def tick(self) -> None:
        """Ask the generators if the interval has passed."""
        if self._interval and self._now_millis() >= self._next_emit:
            self.emit_periodically()

    def emit_periodically(self) -> None:
        """Ask the generators now, as at the end of an epoch, after which nothing may come for long."""
        if not self._interval:
            return
        now = self._now_millis()
        self._next_emit = now + self._interval
        timeout = self._idle_timeout
        for part in self._parts.values():
            if timeout is not None and now - part.active_at >= timeout:
                part.output.mark_idle()
            else:
                part.generator.on_periodic_emit(part.output)
        if self._parts:
            self._combine()
        elif timeout is not None and now - self._empty_since >= timeout:
            self._set_idle(True)

    def next_tick(self) -> int | None:
        """When ``tick`` has something to say though no record has come."""
        if not self._interval:
            return None
        dues: list[int] = []
        if self._idle_timeout is not None and not self.idle:
            active = [p.active_at for p in self._parts.values() if not p.output.idle]
            if not self._parts:
                active = [self._empty_since]
            dues += [since + self._idle_timeout for since in active]
        if any(part.generator.needs_ticks for part in self._parts.values()):
            dues.append(self._next_emit)
        return min(dues, default=None)

    # Splits

    def _begin(self, split: str | None) -> _Part:
        generator = create_generator(self._strategy, self._operator, self._now_millis)
        part = self._parts[split] = _Part(generator, PartialWatermark(), self._now_millis())
        return part

    def expect(self, splits: Iterable[str]) -> None:
        """Wait for these splits: nothing is known yet about their time."""
        for split in splits:
            if split not in self._parts:
                self._begin(split)

    def keep_only(self, splits: Iterable[str]) -> None:
        """Forget the splits that have ended: they hold nobody up any more."""
        alive = {*splits, None}
        ended = [split for split in self._parts if split not in alive]
        for split in ended:
            del self._parts[split]
        if ended and not self._parts:
            self._empty_since = self._now_millis()

    def _combine(self) -> None:
        parts = [part.output for part in self._parts.values()]
        active = [output.watermark for output in parts if not output.idle]
        for output in parts:
            output.changed = False
        self._set_idle(not active)
        if active:
            lowest = min(active)
            if lowest > self.watermark:
                self.watermark = lowest
                self._output.watermark(lowest)

    def _set_idle(self, idle: bool) -> None:
        if self.idle != idle:
            self.idle = idle
            self._output.idle(idle)

    # State

    def snapshot(self) -> Any:
        parts = {
            split: (
                part.output.watermark,
                part.output.idle,
                part.active_at,
                part.generator.snapshot(),
            )
            for split, part in self._parts.items()
        }
        return self.watermark, self.idle, self._empty_since, parts

    def restore(self, state: Any) -> None:
        self._parts.clear()
        self._next_emit = self._now_millis() + self._interval
        if state is None:
            self.watermark, self.idle = MIN_WATERMARK, False
            self._empty_since = self._now_millis()
            return
        self.watermark, self.idle, self._empty_since, parts = state
        for split, (watermark, idle, active_at, generator) in parts.items():
            part = self._begin(split)
            part.output.watermark, part.output.idle = watermark, idle
            part.active_at = active_at
            part.generator.restore(generator)
