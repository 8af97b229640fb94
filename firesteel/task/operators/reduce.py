"""reduce: a reduction per key.

In a stream it rolls, with a result for every record; a batch gives each key's last result only, and an
output mode says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from firesteel.graph.operator_specs import ReduceSpec
from firesteel.state.tables import MISSING
from firesteel.task.codegen.fusion import KeyedLoop, Step, StepKind
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.copies import is_immutable
from firesteel.task.exchange.input_gate import Receive
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.keyed_aggregation import KeyedAggregationOperator
from firesteel.usercode.failures import USER_ERRORS


class ReduceOperator(KeyedAggregationOperator):
    def __init__(self, spec: ReduceSpec, context: OperatorContext) -> None:
        super().__init__(spec, context, spec.function, "reduce")
        self._reduce = self.method("reduce")
        # Whether there were records that can be changed in place.
        self._copies = False
        # Made for the first batch, when the chain stands and the records are known.
        self._loop: KeyedLoop | None = None

    def step(self) -> Step:
        return self.step_of(StepKind.REDUCE, self._reduce)

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        self._receive(values, keys, timestamps, None)

    def receive_selecting(self, selection: KeySelection) -> Receive:
        """Takes records that come without their keys."""
        return partial(self._receive, selection=selection)

    def _look_at(self, record: Any) -> None:
        """The first of a batch shows what the others are: looking at all costs more than most functions."""
        if not is_immutable(record):
            self._copies = True

    def _receive(
        self,
        values: list[Any],
        keys: list[Any] | None,
        timestamps: list[int] | None,
        selection: KeySelection | None,
    ) -> None:
        self._look_at(values[0])
        if self._copies or self.uses_keys or not self.results.rolls:
            if keys is None:
                assert selection is not None
                keys = selection.keys_of(values)
            self._reduce_batch(values, keys, timestamps)
            return
        if self._loop is None:
            assert self.fused is not None
            self._loop = KeyedLoop(replace(self.fused, step=self.step()))
        table = self.table
        self._loop.process(values, keys, timestamps, table.overlay, table.base.get, selection)

    def _reduce_batch(
        self, values: list[Any], keys: list[Any], timestamps: list[int] | None
    ) -> None:
        """What the loop does, for results that are copied or kept back and functions that ask for their key."""
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
        self.results.add(results, keys, timestamps)
