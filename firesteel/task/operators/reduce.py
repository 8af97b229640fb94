"""reduce: a reduction per key.

In a stream it rolls, with a result for every record; a batch gives each key's last result only, and an
output mode says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.graph.operator_specs import ReduceSpec
from firesteel.state.missing import MISSING
from firesteel.task.copies import is_immutable
from firesteel.task.errors import USER_ERRORS
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.keyed_aggregation import KeyedAggregationOperator


class ReduceOperator(KeyedAggregationOperator):
    def __init__(self, spec: ReduceSpec, context: OperatorContext) -> None:
        super().__init__(spec, context, spec.function, "reduce")
        self._reduce = self.method("reduce")
        # Whether there were records that can be changed in place.
        self._copies = False

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        assert keys is not None
        keys_in_order: Iterable[Any] = keys
        reduce = self._reduce
        overlay, missing = self.table.overlay, MISSING
        find = overlay.get
        results: list[Any] = []
        # The first record shows what the others are: looking at all costs more than most functions.
        if self.may_change and not is_immutable(values[0]):
            self._copies = True
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
