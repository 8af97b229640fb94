"""What reduce, fold and the aggregations of a field have in common: one value for each key."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, ClassVar

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.graph.operator_specs import KeyedAggregationSpec
from firesteel.state.tables import MISSING, ValueTable
from firesteel.task.copies import copy_of, copying, copying_get, is_another
from firesteel.task.operators.base import FunctionOperator, OperatorContext, Output
from firesteel.task.record_batch import RecordBatch

# Results that are emitted at once.
_BATCH = 10_000


class EveryResult:
    """Flink's way: a result for every record, with the record's timestamp."""

    rolls: ClassVar[bool] = True
    """Whether ``add`` needs the results."""

    compares: ClassVar[bool] = False
    """Whether results are compared with those of the base."""

    def __init__(self, table: ValueTable, output: Output) -> None:
        self.table = table
        self.output = output

    def add(self, results: list[Any], batch: RecordBatch) -> None:
        """Take the results of a batch."""
        self.output.emit(RecordBatch(results, batch.timestamps))

    def watermark(self, watermark: int) -> None:
        self.output.watermark(watermark)

    def idle(self, idle: bool) -> None:
        self.output.idle(idle)

    def end_epoch(self) -> None:
        """All records of the epoch have come, and more will."""

    def finish(self) -> None:
        """No more records will come."""

    def reset(self) -> None:
        """Forget what an epoch that broke off has left."""


class FinalResults(EveryResult):
    """append, and every batch job: each key's result once the input has ended."""

    rolls = False

    def __init__(self, table: ValueTable, output: Output) -> None:
        super().__init__(table, output)
        self._time_has_ended = False

    def add(self, results: list[Any], batch: RecordBatch) -> None:
        """None is final yet."""

    def watermark(self, watermark: int) -> None:
        # Behind the end of time everything is late: the results come first.
        if watermark == MAX_WATERMARK:
            self._time_has_ended = True
        else:
            super().watermark(watermark)

    def finish(self) -> None:
        results = (copy_of(result) for _, result in self.table.items())
        while batch := list(islice(results, _BATCH)):
            self.output.emit(RecordBatch(batch))
        if self._time_has_ended:
            self.output.watermark(MAX_WATERMARK)

    def reset(self) -> None:
        self._time_has_ended = False


class ResultsOfEpoch(EveryResult):
    """At the end of an epoch, as (key, result).

    Watermarks and idleness wait until then: none overtakes the results of records that it was behind.
    """

    rolls = False
    compares = True

    def __init__(self, table: ValueTable, output: Output) -> None:
        super().__init__(table, output)
        self.reset()

    def reset(self) -> None:
        self._watermark: int | None = None
        self._idle: bool | None = None

    def watermark(self, watermark: int) -> None:
        self._watermark = watermark

    def idle(self, idle: bool) -> None:
        self._idle = idle

    def finish(self) -> None:
        self.end_epoch()

    def end_epoch(self) -> None:
        if self._idle is False:
            self.output.idle(False)
        self.emit_results()
        if self._watermark is not None:
            self.output.watermark(self._watermark)
        if self._idle:
            self.output.idle(True)
        self.reset()

    def emit_results(self) -> None:
        raise NotImplementedError

    def changed(self) -> Iterable[tuple[Any, Any]]:
        """Keys whose result is another than before the epoch, and that result."""
        in_base, missing = self.table.base.get, MISSING
        for key, result in self.table.overlay.items():
            last = in_base(key, missing)
            if last is missing or is_another(result, last):
                yield key, result


class ChangedResults(ResultsOfEpoch):
    """update: what has changed. A result has the timestamp of its key's last record."""

    def reset(self) -> None:
        super().reset()
        self._timestamps: dict[Any, int] = {}

    def add(self, results: list[Any], batch: RecordBatch) -> None:
        if batch.timestamps is not None:
            assert batch.keys is not None
            self._timestamps.update(zip(batch.keys, batch.timestamps, strict=True))

    def emit_results(self) -> None:
        changed = [(key, copy_of(result)) for key, result in self.changed()]
        if not changed:
            return
        known = self._timestamps
        # Of a union, some streams may have timestamps.
        stamps = [known.get(key, MIN_WATERMARK) for key, _ in changed] if known else None
        self.output.emit(RecordBatch(changed, stamps))


class AllResults(ResultsOfEpoch):
    """complete: the whole table, if anything has changed. All of it has the epoch's last timestamp."""

    def reset(self) -> None:
        super().reset()
        self._timestamp: int | None = None

    def add(self, results: list[Any], batch: RecordBatch) -> None:
        if batch.timestamps is not None:
            last = max(batch.timestamps)
            if self._timestamp is None or last > self._timestamp:
                self._timestamp = last

    def emit_results(self) -> None:
        if next(iter(self.changed()), None) is None:
            return
        stamp = self._timestamp
        table = ((key, copy_of(result)) for key, result in self.table.items())
        while batch := list(islice(table, _BATCH)):
            stamps = None if stamp is None else [stamp] * len(batch)
            self.output.emit(RecordBatch(batch, stamps))


_MODES: dict[str | None, type[EveryResult]] = {
    None: EveryResult,
    "append": FinalResults,
    "update": ChangedResults,
    "complete": AllResults,
}


def create_results(
    mode: str | None, table: ValueTable, output: Output, *, batch: bool
) -> EveryResult:
    if mode is None and batch:
        return FinalResults(table, output)
    return _MODES[mode](table, output)


# Takes what nobody wants, at the price of a list's append.
_forget: Callable[[Any], None] = deque[Any](maxlen=0).append


class KeyedAggregationOperator(FunctionOperator):
    """Subclasses combine the records of a batch with what ``table`` has."""

    may_change: ClassVar[bool] = True
    """Whether the function may change its arguments in place."""

    def __init__(
        self, spec: KeyedAggregationSpec, context: OperatorContext, function: Any, table: str
    ) -> None:
        super().__init__(context, function)
        self.table = context.keyed_state.value_table(table)
        self.results = create_results(
            spec.output_mode, self.table, self.output, batch=context.subtask.batch
        )

    def adder(self, results: list[Any], *, copies: bool) -> Callable[[Any], None]:
        """Takes the result of each record. ``copies``: it may go on changing in place."""
        if not self.results.rolls:
            return _forget
        return copying(results.append) if copies else results.append

    def reader(self, *, copies: bool) -> Callable[[Any, Any], Any]:
        """Reads the base, from which a function gets what it may change in place."""
        get = self.table.base.get
        # Where results are compared with the base, nothing in it may change, whatever it looks like.
        if copies or (self.results.compares and self.may_change):
            return copying_get(get)
        return get

    def process_watermark(self, watermark: int) -> None:
        self.results.watermark(watermark)

    def process_idle(self, idle: bool) -> None:
        self.results.idle(idle)

    def end_epoch(self, *, finished: bool) -> None:
        if not finished:
            self.results.end_epoch()

    def finish(self) -> None:
        self.results.finish()

    def restore(self, whole: Any) -> None:
        self.results.reset()
