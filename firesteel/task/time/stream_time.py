"""The event time of a stream that one subtask produces: it stamps records and emits watermarks.

A source has one generator per split, any other operator has one in all. The emitted watermark is
the least of those that are not idle, and the greatest once all are idle. The caller reports how
long it asked the input for records, and when there were none (see ``Silence``).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.constants import MIN_WATERMARK
from firesteel.common.expression_evaluation import Evaluation, evaluation_of
from firesteel.common.expressions import Expression
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.common.watermark_strategy import (
    FunctionTimestampAssigner,
    IngestionTime,
    TimestampAssigner,
    WatermarkStrategy,
)
from firesteel.errors import FiresteelError, shorten
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.record_batch import Emit, RecordBatch
from firesteel.task.time.future_guard import Front, FutureGuard
from firesteel.task.time.generators import Generator, PartialWatermark, create_generator
from firesteel.task.time.watermark_valve import combine
from firesteel.usercode.failures import user_function_error

_ANY_TYPE = Types.PICKLED_BYTE_ARRAY()

Assign = Callable[[list[Any], list[int] | None], list[int] | None]


class AscendingClock:
    """A clock that never goes back, even if the machine's clock does."""

    __slots__ = ("_now_millis", "newest")

    def __init__(self, now_millis: Callable[[], int]) -> None:
        self._now_millis = now_millis
        self.newest = MIN_WATERMARK

    def __call__(self) -> int:
        self.newest = max(self.newest, self._now_millis())
        return self.newest


class BadTimestampError(FiresteelError, TypeError):
    """A timestamp assigner returned a value that is not a timestamp."""


def create_assigner(
    strategy: WatermarkStrategy,
    operator: str,
    now_millis: AscendingClock,
    evaluation: Evaluation | None,
) -> Assign:
    """Return a function from values and their present timestamps to their new timestamps."""
    if isinstance(strategy.generator, IngestionTime):
        return lambda values, _: [now_millis()] * len(values)
    assigner = strategy.timestamp_assigner
    if assigner is None:
        return lambda _, timestamps: timestamps
    extract: Callable[[Any, int], int]
    if evaluation is not None:
        of_record = evaluation.of_record

        def extract(value: Any, _: int) -> int:
            timestamp: int = of_record(value)
            return timestamp

        extract.__qualname__ = repr(assigner)
    elif isinstance(assigner, FunctionTimestampAssigner):
        # A plain function is called directly, without the object around it.
        extract = assigner.function
    else:
        assert isinstance(assigner, TimestampAssigner)
        extract = assigner.extract_timestamp

    never = MIN_WATERMARK

    def assign(values: list[Any], timestamps: list[int] | None) -> list[int]:
        iterator = iter(values)
        try:
            # No map(): it takes a StopIteration of the user's function for the end of the records.
            if timestamps is None:
                assigned = [extract(value, never) for value in iterator]
            else:
                assigned = [
                    extract(value, timestamp)
                    for value, timestamp in zip(iterator, timestamps, strict=False)
                ]
        except Exception as error:
            raise user_function_error(error, operator, extract, values, iterator) from error
        try:
            # This is the fastest check of single timestamps, and accepts 64-bit integers only.
            array("q", assigned)
        except (TypeError, OverflowError) as error:
            raise _bad(assigned, values, operator, extract) from error
        return assigned

    return assign


def keeps_timestamps(strategy: WatermarkStrategy) -> bool:
    """Return True if records keep the timestamps that they have."""
    return strategy.timestamp_assigner is None and not isinstance(strategy.generator, IngestionTime)


def _stamps_of(evaluation: Evaluation, batch: ColumnBatch) -> pa.Array | None:
    """Return the timestamps of columns, or None if only the way of records knows the error."""
    try:
        stamps = evaluation.array_of(batch.columns).cast(pa.int64())
    except pa.ArrowException:
        return None
    return None if stamps.null_count else stamps


def ends_of_time(batch: RecordBatch) -> tuple[int, int] | None:
    """Return the greatest timestamp of a batch and the last one, or None without timestamps."""
    if isinstance(batch, ColumnBatch) and batch.stamps is not None:
        stamps = batch.stamps
        return pc.max(stamps).as_py(), stamps[-1].as_py()
    timestamps = batch.timestamps
    return None if timestamps is None else (max(timestamps), timestamps[-1])


def _bad(
    assigned: list[Any], values: list[Any], operator: str, extract: Callable[..., Any]
) -> FiresteelError:
    for timestamp, value in zip(assigned, values, strict=True):
        try:
            array("q", [timestamp])
        except (TypeError, OverflowError):
            name = getattr(extract, "__qualname__", type(extract).__qualname__)
            return BadTimestampError(
                f"{operator}: the timestamp assigner {name} returned {shorten(timestamp)} for the "
                f"record {shorten(value)}; a timestamp must be an int, in milliseconds since 1970"
            )
    raise AssertionError("one of them was refused")


@dataclass(slots=True)
class Silence:
    """The time for which an input has been silent: the longer one of two times.

    The first is the time for which a source's reader was asked since the last record. ``heard_at``
    is the time for which it had been asked in all by then. The reader is not asked while functions
    work, while rows wait to be sent, or while the split is paused.

    The second is proven: the input had no records at ``since``, and still none at ``until``.
    """

    heard_at: int
    since: int | None = None
    until: int = 0

    def end(self, asked_millis: int) -> None:
        self.heard_at = asked_millis
        self.since = None

    def prove(self, now: int) -> None:
        """Note that the input was asked just now and had no records."""
        if self.since is None:
            self.since = now
        self.until = now

    def millis(self, asked_millis: int) -> int:
        proven = 0 if self.since is None else self.until - self.since
        return max(asked_millis - self.heard_at, proven)


class TimedOutput(Protocol):
    """The consumers of records, watermarks and idleness."""

    @property
    def emit(self) -> Emit: ...

    @property
    def watermark(self) -> Callable[[int], None]: ...

    @property
    def idle(self) -> Callable[[bool], None]: ...


@dataclass(slots=True)
class _Part:
    """The time of one split. A paused split is too far ahead of others and is not read."""

    generator: Generator
    output: PartialWatermark
    silence: Silence
    front: Front = field(default_factory=Front)
    paused: bool = False


class StreamTime:
    """Stamps the records of a stream, and emits its watermarks and idleness.

    record_type: the type of the records.
    interval: the auto-watermark interval in milliseconds. With 0, periodic generators are not
        called.
    """

    def __init__(
        self,
        strategy: WatermarkStrategy,
        interval: int,
        operator: str,
        now_millis: Callable[[], int],
        output: TimedOutput,
        record_type: TypeInformation = _ANY_TYPE,
    ) -> None:
        self._strategy = strategy
        self._interval = interval
        self._operator = operator
        self._now_millis = now_millis
        self._output = output
        self._ingestion = AscendingClock(now_millis)
        assigner = strategy.timestamp_assigner
        self._evaluation = (
            evaluation_of(assigner, record_type) if isinstance(assigner, Expression) else None
        )
        self._assign = create_assigner(strategy, operator, self._ingestion, self._evaluation)
        self._keeps_stamps = keeps_timestamps(strategy)
        self._guard = FutureGuard(strategy, operator)
        timeout = strategy.idle_timeout
        self._idle_timeout = None if timeout is None or not interval else timeout.to_millis()
        self._parts: dict[str | None, _Part] = {}
        self._next_emit = now_millis() + interval
        # The time for which the input has been asked, in milliseconds.
        self._asked = 0
        # The silence of a stream without any split.
        self._silence = Silence(0)
        # A record has come in this epoch.
        self._fed = False
        self.watermark = MIN_WATERMARK
        # The watermark of the splits, and True if it must not be emitted (see ``hold``).
        self._combined = MIN_WATERMARK
        self._held = False
        self.idle = False

    @property
    def progress(self) -> int:
        """The watermark of the records so far, which is not emitted while it is held."""
        return max(self.watermark, self._combined)

    def process(self, split: str | None, batch: RecordBatch) -> None:
        """Stamp the records of one split and emit them, with the watermarks between them."""
        stamped = self._stamped(batch)
        part = self._parts.get(split) or self._begin(split)
        part.silence.end(self._asked)
        self._fed = True
        if part.output.idle or self.idle:
            # Consumers must wait for this stream again before its records come.
            part.output.mark_active()
            self._combine()
        ends = ends_of_time(stamped)
        if ends is None:
            self._output.emit(stamped)
            return
        now, (newest, last) = self._now_millis(), ends
        if newest - now > self._guard.tolerance:
            self._process_doubtful(part, stamped, now)
        else:
            self._process_believed(part, stamped, newest, last)

    def _stamped(self, batch: RecordBatch) -> RecordBatch:
        if not isinstance(batch, ColumnBatch):
            values = batch.values
            return RecordBatch(values, self._assign(values, batch.timestamps))
        if self._keeps_stamps:
            return batch.stamped(batch.stamps)
        if self._evaluation is not None:
            stamps = _stamps_of(self._evaluation, batch)
            if stamps is not None:
                return batch.stamped(stamps)
        return batch.stamped(self._assign(batch.values, batch.timestamps))

    def _process_believed(self, part: _Part, batch: RecordBatch, newest: int, last: int) -> None:
        front, leap = part.front, self._guard.leap
        if newest - last > leap or abs(newest - front.newest) > leap:
            stamps = batch.timestamps
            assert stamps is not None
            self._guard.examine(front, batch.values, stamps, newest, part.output.watermark)
        else:
            front.newest = max(front.newest, newest)
            front.suspect = None
        emit, sent = self._output.emit, 0
        for seen in part.generator.on_batch(batch, newest, part.output):
            emit(batch.part(sent, seen))
            sent = seen
            self._combine()
        if sent == 0:
            emit(batch)
        elif sent < len(batch):
            emit(batch.part(sent, len(batch)))

    def _process_doubtful(self, part: _Part, batch: RecordBatch, now: int) -> None:
        """Process record by record, because a timestamp is too far ahead of the clock."""
        latest, refuses = now + self._guard.tolerance, self._guard.refuses
        values, stamps = batch.values, batch.timestamps
        assert stamps is not None
        for value, stamp in zip(values, stamps, strict=True):
            one = RecordBatch([value], [stamp])
            if stamp > latest and refuses(value, stamp, now):
                self._output.emit(one)
            else:
                self._process_believed(part, one, stamp, stamp)

    # Periodic

    def tick(self) -> None:
        """Call the periodic generators if the interval has passed."""
        if self._interval and self._now_millis() >= self._next_emit:
            self.emit_periodically()

    def emit_periodically(self) -> None:
        """Call the periodic generators now, as at the end of an epoch."""
        if not self._interval:
            return
        self._next_emit = self._now_millis() + self._interval
        for part in self._parts.values():
            # Splits that are not read keep their state.
            if part.output.idle if part.paused else self._is_long(part.silence):
                part.output.mark_idle()
            else:
                part.generator.on_periodic_emit(part.output)
        if self._parts:
            self._combine()
        elif self._is_long(self._silence):
            self._set_idle(True)

    def next_tick(self) -> int | None:
        """The time at which an epoch is needed even if no record comes, or None."""
        if not self._interval:
            return None
        dues: list[int] = []
        if self._idle_timeout is not None and not self.idle:
            for silence in self._silences():
                since = silence.since
                # An input that has not been silent yet must first be found without records.
                dues.append(self._next_emit if since is None else since + self._idle_timeout)
        if any(part.generator.needs_ticks for part in self._parts.values()):
            dues.append(self._next_emit)
        return min(dues, default=None)

    # Idleness

    def asked(self, millis: int) -> None:
        """Note that a reader was asked for this time. Every split could have given records."""
        self._asked += millis

    def found_nothing(self) -> None:
        """Note that the input was asked just now and has no records."""
        now = self._now_millis()
        for silence in self._silences():
            silence.prove(now)

    def end_epoch(self) -> None:
        """End an epoch of a stream that is fed by others. Without a record, it was silent."""
        if not self._fed:
            self.found_nothing()
        self._fed = False
        self.emit_periodically()

    def _is_long(self, silence: Silence) -> bool:
        return self._idle_timeout is not None and silence.millis(self._asked) >= self._idle_timeout

    def _silences(self) -> list[Silence]:
        """The silences of all parts that may become idle."""
        if not self._parts:
            return [self._silence]
        parts = self._parts.values()
        return [part.silence for part in parts if not part.paused and not part.output.idle]

    # Splits

    def _begin(self, split: str | None) -> _Part:
        generator = create_generator(self._strategy, self._operator, self._ingestion)
        silence = Silence(self._asked)
        part = self._parts[split] = _Part(generator, PartialWatermark(), silence)
        return part

    def expect(self, splits: Iterable[str]) -> None:
        """Let the watermark wait for these splits, whose time is not known yet."""
        for split in splits:
            if split not in self._parts:
                self._begin(split)

    def knows(self, splits: Iterable[str]) -> bool:
        """Return True if each of these splits is expected or has had records."""
        return all(split in self._parts for split in splits)

    def hold(self, held: bool) -> None:
        """Stop the watermark, or let it continue from the splits that count by then."""
        released = self._held and not held
        self._held = held
        if released and self._parts:
            self._combine()
        elif released:
            self._advance()

    def keep_only(self, splits: Iterable[str]) -> None:
        """Forget the splits that have ended, so that they no longer hold the watermark back."""
        alive = {*splits, None}
        ended = [split for split in self._parts if split not in alive]
        for split in ended:
            del self._parts[split]
        if not ended:
            return
        if self._parts:
            self._combine()
        else:
            self._silence = Silence(self._asked)

    def splits_beyond(self, watermark: int) -> frozenset[str]:
        """The splits whose own watermark is greater than ``watermark``."""
        return frozenset(
            split
            for split, part in self._parts.items()
            if split is not None and part.output.watermark > watermark
        )

    def pause_splits(self, splits: Collection[str]) -> None:
        """Note that only the other splits are read now. Paused splits do not become idle."""
        for split, part in self._parts.items():
            if part.paused and not part.output.idle:
                part.silence.end(self._asked)
            part.paused = split in splits

    def pause(self) -> None:
        """Note that no split is read now."""
        for part in self._parts.values():
            part.paused = True

    def _combine(self) -> None:
        outputs = [part.output for part in self._parts.values()]
        for output in outputs:
            output.changed = False
        self._combined, idle = combine(outputs)
        if not idle:
            self._set_idle(False)
        self._advance()
        if idle:
            self._set_idle(True)

    def _advance(self) -> None:
        if self._combined > self.watermark and not self._held:
            self.watermark = self._combined
            self._output.watermark(self.watermark)

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
                self._kept(part.silence),
                part.generator.snapshot(),
            )
            for split, part in self._parts.items()
        }
        return self.watermark, self._combined, self.idle, self._kept(self._silence), parts

    def restore(self, state: Any) -> None:
        self._parts.clear()
        self._next_emit = self._now_millis() + self._interval
        self._asked = 0
        self._fed = False
        self._held = False
        self._combined = MIN_WATERMARK
        if state is None:
            self.resume(MIN_WATERMARK)
            self.idle, self._silence = False, Silence(0)
            return
        watermark, self._combined, self.idle, self._silence, parts = state
        self.resume(watermark)
        for split, (watermark, idle, silence, generator) in parts.items():
            part = self._begin(split)
            part.output.watermark, part.output.idle = watermark, idle
            part.silence = silence
            part.generator.restore(generator)

    def resume(self, watermark: int) -> None:
        """Continue from a watermark."""
        self.watermark = watermark
        self._ingestion.newest = max(self._ingestion.newest, watermark + 1)

    def _kept(self, silence: Silence) -> Silence:
        """The silence as a new process must count it, which has not asked yet."""
        return replace(silence, heard_at=silence.heard_at - self._asked)
