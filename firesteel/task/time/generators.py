"""Running watermark generators. All except the user's own see whole batches."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.common.constants import MIN_WATERMARK
from firesteel.common.watermark_strategy import (
    BoundedOutOfOrderness,
    CustomGenerator,
    IngestionTime,
    MonotonousTimestamps,
    NoWatermarks,
    WatermarkGenerator,
    WatermarkStrategy,
)
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import value_pickler
from firesteel.usercode.failures import user_function_error


class PartialWatermark:
    """The output of one generator: a WatermarkOutput that remembers its state."""

    __slots__ = ("changed", "idle", "watermark")

    def __init__(self) -> None:
        self.watermark = MIN_WATERMARK
        self.idle = False
        self.changed = False

    def emit_watermark(self, timestamp: int) -> None:
        self.mark_active()
        if timestamp > self.watermark:
            self.watermark = timestamp
            self.changed = True

    def mark_idle(self) -> None:
        if not self.idle:
            self.idle = True
            self.changed = True

    def mark_active(self) -> None:
        if self.idle:
            self.idle = False
            self.changed = True


class Generator(ABC):
    """Computes the watermark of one split.

    needs_ticks: the watermark advances even if no record comes.
    """

    needs_ticks = False

    @abstractmethod
    def on_batch(self, batch: RecordBatch, newest: int, output: PartialWatermark) -> Iterator[int]:
        """Take records with timestamps. ``newest`` is the greatest one.

        Yields the number of records so far after each record that changed the output.
        """

    @abstractmethod
    def on_periodic_emit(self, output: PartialWatermark) -> None: ...

    @abstractmethod
    def snapshot(self) -> Any: ...

    @abstractmethod
    def restore(self, state: Any) -> None: ...


class NoGenerator(Generator):
    def on_batch(self, batch: RecordBatch, newest: int, output: PartialWatermark) -> Iterator[int]:
        return iter(())

    def on_periodic_emit(self, output: PartialWatermark) -> None:
        """Emit nothing."""

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        """Restore nothing."""


class BoundedOutOfOrdernessGenerator(Generator):
    """Keeps the watermark ``bound`` + 1 milliseconds below the newest timestamp."""

    def __init__(self, bound: int) -> None:
        self._behind = bound + 1
        self._newest = MIN_WATERMARK + self._behind

    def on_batch(self, batch: RecordBatch, newest: int, output: PartialWatermark) -> Iterator[int]:
        self._newest = max(self._newest, newest)
        return iter(())

    def on_periodic_emit(self, output: PartialWatermark) -> None:
        output.emit_watermark(self._newest - self._behind)

    def snapshot(self) -> Any:
        return self._newest

    def restore(self, state: Any) -> None:
        self._newest = state


class IngestionTimeGenerator(NoGenerator):
    needs_ticks = True

    def __init__(self, now_millis: Callable[[], int]) -> None:
        self._now_millis = now_millis

    def on_periodic_emit(self, output: PartialWatermark) -> None:
        output.emit_watermark(self._now_millis() - 1)


class UserGenerator(Generator):
    """Calls the user's generator for every record."""

    needs_ticks = True

    def __init__(self, supplier: Callable[[], WatermarkGenerator], operator: str) -> None:
        self._supplier = supplier
        self._operator = operator
        self._generator = supplier()

    def on_batch(self, batch: RecordBatch, newest: int, output: PartialWatermark) -> Iterator[int]:
        on_event = self._generator.on_event
        values, timestamps = batch.values, batch.timestamps
        assert timestamps is not None
        iterator = iter(values)
        for index, value in enumerate(iterator):
            try:
                on_event(value, timestamps[index], output)
            except Exception as error:
                raise user_function_error(
                    error, self._operator, on_event, values, iterator
                ) from error
            if output.changed:
                yield index + 1

    def on_periodic_emit(self, output: PartialWatermark) -> None:
        emit = self._generator.on_periodic_emit
        try:
            emit(output)
        except Exception as error:
            raise user_function_error(error, self._operator, emit, None, None) from error

    def snapshot(self) -> Any:
        try:
            return value_pickler.dumps(self._generator)
        except (TypeError, pickle.PicklingError, AttributeError):
            # It holds a connection or the like. A new process begins with a new generator.
            return None

    def restore(self, state: Any) -> None:
        self._generator = self._supplier() if state is None else pickle.loads(state)


_GENERATORS: dict[type, Callable[[Any, str, Callable[[], int]], Generator]] = {
    NoWatermarks: lambda _, __, ___: NoGenerator(),
    MonotonousTimestamps: lambda _, __, ___: BoundedOutOfOrdernessGenerator(0),
    BoundedOutOfOrderness: lambda described, _, __: BoundedOutOfOrdernessGenerator(
        described.max_out_of_orderness.to_millis()
    ),
    IngestionTime: lambda _, __, now_millis: IngestionTimeGenerator(now_millis),
    CustomGenerator: lambda described, operator, _: UserGenerator(described.supplier, operator),
}


def create_generator(
    strategy: WatermarkStrategy, operator: str, now_millis: Callable[[], int]
) -> Generator:
    described = strategy.generator
    return _GENERATORS[type(described)](described, operator, now_millis)
