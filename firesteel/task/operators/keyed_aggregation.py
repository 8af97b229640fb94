"""Keyed aggregations without windows: one value per key, and the results that leave.

reduce, fold and the aggregations of a field are built on this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, ClassVar

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.graph.operator_specs import KeyedAggregationSpec
from firesteel.state.tables import MISSING, ValueTable
from firesteel.task.copies import copy_of, copying, copying_get, differs
from firesteel.task.operators.base import FunctionOperator, OperatorContext, Output
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS

# Results per emitted batch.
_BATCH = 10_000


class EveryResult:
    """A result for every record, with the record's timestamp, as in Flink."""

    rolls: ClassVar[bool] = True
    """``add`` needs the results."""

    compares: ClassVar[bool] = False
    """Results are compared with those of the base."""

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
        """Called after the last record of an epoch that is not the last one."""

    def finish(self) -> None:
        """Called after the last record of all."""

    def end_key(self) -> None:
        """Called in batch jobs after the last record of a key. The table has the key only."""

    def reset(self) -> None:
        """Forget what an abandoned epoch has left."""


class ResultsOfKeys(EveryResult):
    """One result per key with the maximum timestamp, as in Flink's batch jobs."""

    rolls = False

    def __init__(self, table: ValueTable, output: Output) -> None:
        super().__init__(table, output)
        self._results: list[Any] = []

    def add(self, results: list[Any], batch: RecordBatch) -> None:
        """Wait for the last record of the key."""

    def end_key(self) -> None:
        self._results += self.table.overlay.values()
        if len(self._results) >= _BATCH:
            self._emit()

    def watermark(self, watermark: int) -> None:
        self._emit()
        super().watermark(watermark)

    def finish(self) -> None:
        self._emit()

    def _emit(self) -> None:
        results, self._results = self._results, []
        if results:
            self.output.emit(RecordBatch(results, [MAX_WATERMARK] * len(results)))

    def reset(self) -> None:
        self._results = []


class FinalResults(EveryResult):
    """One result per key, once the input has ended: output mode append."""

    rolls = False

    def __init__(self, table: ValueTable, output: Output) -> None:
        super().__init__(table, output)
        self._time_has_ended = False

    def add(self, results: list[Any], batch: RecordBatch) -> None:
        """No result is final yet."""

    def watermark(self, watermark: int) -> None:
        # After the last watermark everything is late, so the results come first.
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
    """Results as (key, result) at the end of an epoch.

    Watermarks and idleness wait until then, so that they do not overtake results.
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

    def end_key(self) -> None:
        self.emit_results()
        self.reset()

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
        """Keys whose result differs from that before the epoch, with the new result."""
        in_base, missing = self.table.base.get, MISSING
        for key, result in self.table.overlay.items():
            last = in_base(key, missing)
            if last is missing or differs(result, last):
                yield key, result


class ChangedResults(ResultsOfEpoch):
    """Changed results, with the timestamp of the key's last record: output mode update."""

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
        # Only some streams of a union may have timestamps.
        stamps = [known.get(key, MIN_WATERMARK) for key, _ in changed] if known else None
        self.output.emit(RecordBatch(changed, stamps))


class AllResults(ResultsOfEpoch):
    """All results, if one has changed, with the epoch's last timestamp: output mode complete."""

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
    if batch and mode in (None, "append"):
        return ResultsOfKeys(table, output)
    return _MODES[mode](table, output)


# Drops results that are not wanted, at the cost of a list's append.
_forget: Callable[[Any], None] = deque[Any](maxlen=0).append


class KeyedAggregationOperator(FunctionOperator):
    """Keeps one value per key in ``table``, and combines it with each record of the key."""

    may_change: ClassVar[bool] = True
    """The function may change its arguments in place."""

    def __init__(
        self, spec: KeyedAggregationSpec, context: OperatorContext, function: Any, table: str
    ) -> None:
        super().__init__(context, function)
        self.table = context.keyed_state.value_table(table)
        self.results = create_results(
            spec.output_mode, self.table, self.output, batch=context.subtask.batch
        )

    def combine(
        self,
        batch: RecordBatch,
        function: Callable[[Any, Any], Any],
        first: Callable[[Any], Any],
        *,
        copies: bool,
    ) -> None:
        """Combine each record with the value of its key.

        function: the user's function of the value and a record.
        first: makes the value from the first record of a key.
        copies: values can change in place after they were emitted.
        """
        values, keys = batch.values, batch.keys
        assert keys is not None
        keys_in_order: Iterable[Any] = keys
        if self.uses_keys:
            keys_in_order = self.context.key_context.following(keys)
        overlay, missing = self.table.overlay, MISSING
        find, in_base = overlay.get, self._reader(batch, copies=copies)
        results: list[Any] = []
        append = self._adder(results, copies=copies)
        iterator = iter(values)
        try:
            # The keys come second: zip must not take a value that it then finds no key for.
            for value, key in zip(iterator, keys_in_order, strict=False):
                kept = find(key, missing)
                if kept is missing:
                    kept = in_base(key, missing)
                result = first(value) if kept is missing else function(kept, value)
                overlay[key] = result
                append(result)
        except USER_ERRORS as error:
            raise self.failure(error, function, values, iterator) from error
        self.results.add(results, batch)

    def _adder(self, results: list[Any], *, copies: bool) -> Callable[[Any], None]:
        if not self.results.rolls:
            return _forget
        return copying(results.append) if copies else results.append

    def base_reader(self, batch: RecordBatch) -> Callable[[Any, Any], Any]:
        """Return the ``get`` of the base for the keys of a batch."""
        if self.context.keyed_state.in_memory:
            return self.table.base.get
        assert batch.keys is not None
        return self.table.reader(batch.keys)

    def _reader(self, batch: RecordBatch, *, copies: bool) -> Callable[[Any, Any], Any]:
        get = self.base_reader(batch)
        # Results that are compared with the base must not change in it.
        if copies or (self.results.compares and self.may_change):
            return copying_get(get)
        return get

    def process_watermark(self, watermark: int) -> None:
        self.results.watermark(watermark)

    def process_idle(self, idle: bool) -> None:
        self.results.idle(idle)

    def end_key(self) -> None:
        self.results.end_key()
        super().end_key()

    def end_epoch(self, *, finished: bool) -> None:
        if not finished:
            self.results.end_epoch()

    def finish(self) -> None:
        self.results.finish()

    def restore(self, whole: Any) -> None:
        self.results.reset()
