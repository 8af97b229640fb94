"""reduce: a reduction per key.

In a stream it rolls, with a result for every record; a batch gives each key's last result only, and an
output mode says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from firesteel.graph.operator_specs import ReduceSpec
from firesteel.state.tables import MISSING
from firesteel.task.codegen.fusion import FusedNode, KeyedLoop, Step, StepKind
from firesteel.task.copies import is_immutable
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.keyed_aggregation import KeyedAggregationOperator
from firesteel.task.record_batch import Emit, RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class ReduceOperator(KeyedAggregationOperator):
    def __init__(self, spec: ReduceSpec, context: OperatorContext) -> None:
        super().__init__(spec, context, spec.function, "reduce")
        self._reduce = self.method("reduce")
        # Whether there were records that can be changed in place.
        self._copies = False
        self._shared: FusedNode | None = None
        # Made for the first batch, when the chain stands and the records are known.
        self._loop: KeyedLoop | None = None

    def step(self) -> Step:
        return self.step_of(StepKind.REDUCE, self._reduce)

    def begin_loop(self, loop: FusedNode) -> Emit:
        self._shared = loop
        return self.process

    def _look_at(self, record: Any) -> None:
        """The first of a batch shows what the others are: looking at all costs more than most functions."""
        if not is_immutable(record):
            self._copies = True

    def process(self, batch: RecordBatch) -> None:
        self._look_at(batch.values[0])
        if self._copies or self.uses_keys or not self.results.rolls:
            self._reduce_batch(batch)
            return
        if self._loop is None:
            assert self._shared is not None
            self._loop = KeyedLoop(replace(self._shared, step=self.step()))
        self._loop.process(batch, self.table.overlay, self.table.base.get)

    def _reduce_batch(self, batch: RecordBatch) -> None:
        """What the loop does, for results that are copied or kept back and functions that ask for their key."""
        values, keys = batch.values, batch.keys
        assert keys is not None
        keys_in_order: Iterable[Any] = keys
        reduce = self._reduce
        overlay, missing = self.table.overlay, MISSING
        find = overlay.get
        results: list[Any] = []
        copies = self._copies
        append, in_base = self.adder(results, copies=copies), self.reader(copies=copies)
        if self.uses_keys:
            keys_in_order = self.context.key_context.following(keys)
        iterator = iter(values)
        try:
            # The keys come second: zip must not take a value that it then finds no key for.
            for value, key in zip(iterator, keys_in_order, strict=False):
                reduced = find(key, missing)
                if reduced is missing:
                    reduced = in_base(key, missing)
                if reduced is not missing:
                    value = reduce(reduced, value)
                overlay[key] = value
                append(value)
        except USER_ERRORS as error:
            raise self.failure(error, reduce, values, iterator) from error
        self.results.add(results, batch)
