"""reduce and fold: one value per key, combined with each record.

In a stream they roll, with a result for every record. A batch gives the last result of each key. An
output mode of the stream overrides both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firesteel.graph.operator_specs import FoldSpec, ReduceSpec
from firesteel.task.codegen.fusion import FusedNode, KeyedLoop, Step, StepKind
from firesteel.task.copies import copy_of, is_immutable
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.keyed_aggregation import KeyedAggregationOperator
from firesteel.task.record_batch import Emit, RecordBatch


class ReduceOperator(KeyedAggregationOperator):
    """Starts with the first record of a key."""

    def __init__(self, spec: ReduceSpec, context: OperatorContext) -> None:
        super().__init__(spec, context, spec.function, "reduce")
        self._reduce = self.method("reduce")
        # Some records can be changed in place.
        self._copies = False
        self._shared: FusedNode | None = None
        # Made for the first batch, when the chain is connected and the records are known.
        self._loop: KeyedLoop | None = None

    def step(self) -> Step:
        return self.step_of(StepKind.REDUCE, self._reduce)

    def begin_loop(self, loop: FusedNode) -> Emit:
        self._shared = loop
        return self.process

    def _look_at(self, record: Any) -> None:
        """Learn from the first record of a batch. To look at all costs more than most functions."""
        if not is_immutable(record):
            self._copies = True

    def process(self, batch: RecordBatch) -> None:
        self._look_at(batch.values[0])
        if self._copies or self.uses_keys or not self.results.rolls:
            self.combine(batch, self._reduce, _itself, copies=self._copies)
            return
        if self._loop is None:
            assert self._shared is not None
            self._loop = KeyedLoop(replace(self._shared, step=self.step()))
        self._loop.process(batch, self.table.overlay, self.base_reader(batch))


class FoldOperator(KeyedAggregationOperator):
    """Starts with a given value."""

    def __init__(self, spec: FoldSpec, context: OperatorContext) -> None:
        super().__init__(spec, context, spec.function, "fold")
        self._fold = fold = self.method("fold")
        initial = spec.initial_value
        # Every key starts with its own copy, as in Flink, where the value is serialized.
        self._first: Callable[[Any], Any] = lambda value: fold(copy_of(initial), value)
        # An accumulator that is changed in place keeps changing after it was emitted.
        self._copies = not (is_immutable(initial) and _is_representative(initial))

    def process(self, batch: RecordBatch) -> None:
        self.combine(batch, self._fold, self._first, copies=self._copies)


def _itself(value: Any) -> Any:
    return value


def _is_representative(initial: Any) -> bool:
    """Later accumulators look like this one. An empty value can become anything."""
    if isinstance(initial, tuple):
        return bool(initial) and all(map(_is_representative, initial))
    return initial is not None
