"""fold: an aggregate per key that starts from a given value.

In a stream it rolls, with a result for every record; a batch gives each key's last result only, and an
output mode says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.graph.operator_specs import FoldSpec
from firesteel.state.tables import MISSING
from firesteel.task.copies import copy_of, is_immutable
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.keyed_aggregation import KeyedAggregationOperator
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class FoldOperator(KeyedAggregationOperator):
    def __init__(self, spec: FoldSpec, context: OperatorContext) -> None:
        super().__init__(spec, context, spec.function, "fold")
        self._fold = self.method("fold")
        initial = spec.initial_value
        # Every key starts from its own copy, as in Flink, where the value is serialized.
        self._initial: Callable[[], Any] = lambda: copy_of(initial)
        # An accumulator that is changed in place goes on changing after it was emitted.
        self._copies = not (is_immutable(initial) and _is_telling(initial))

    def process(self, batch: RecordBatch) -> None:
        values, keys = batch.values, batch.keys
        assert keys is not None
        keys_in_order: Iterable[Any] = keys
        fold, initial = self._fold, self._initial
        overlay, missing = self.table.overlay, MISSING
        find = overlay.get
        results: list[Any] = []
        copies = self._copies
        append, in_base = self.adder(results, copies=copies), self.reader(copies=copies)
        if self.uses_keys:
            keys_in_order = self.context.key_context.following(keys)
        iterator = iter(values)
        try:
            for value, key in zip(iterator, keys_in_order, strict=False):
                folded = find(key, missing)
                if folded is missing:
                    folded = in_base(key, missing)
                    if folded is missing:
                        folded = initial()
                folded = fold(folded, value)
                overlay[key] = folded
                append(folded)
        except USER_ERRORS as error:
            raise self.failure(error, fold, values, iterator) from error
        self.results.add(results, batch)


def _is_telling(initial: Any) -> bool:
    """Whether later accumulators look like this one. What is empty can become anything."""
    if isinstance(initial, tuple):
        return bool(initial) and all(map(_is_telling, initial))
    return initial is not None
