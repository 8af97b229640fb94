"""fold: an aggregate per key that starts from a given value.

In a stream it rolls, with a result for every record; a batch gives each key's last result only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.graph.operator_specs import FoldSpec
from firesteel.state.missing import MISSING
from firesteel.task.copies import copy_of, copying, copying_get, is_immutable
from firesteel.task.errors import USER_ERRORS
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.operators.reduce import emit_last_results


class FoldOperator(FunctionOperator):
    def __init__(self, spec: FoldSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._fold = self.method("fold")
        self._table = context.keyed_state.value_table("fold")
        self._rolls = not context.subtask.batch
        initial = spec.initial_value
        # Every key starts from its own copy, as in Flink, where the value is serialized.
        self._initial: Callable[[], Any] = lambda: copy_of(initial)
        # An accumulator that is changed in place goes on changing after it was emitted.
        self._copies = initial is None or not is_immutable(initial)

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        assert keys is not None
        keys_in_order: Iterable[Any] = keys
        fold, initial, table = self._fold, self._initial, self._table
        overlay, in_base = table.overlay, table.base.get
        missing = MISSING
        results: list[Any] = []
        append = results.append
        if self._copies:
            append, in_base = copying(append), copying_get(in_base)
        if self.uses_keys:
            keys_in_order = self.context.key_context.following(keys)
        iterator = iter(values)
        try:
            for value, key in zip(iterator, keys_in_order, strict=False):
                if key in overlay:
                    folded = overlay[key]
                else:
                    folded = in_base(key, missing)
                    if folded is missing:
                        folded = initial()
                folded = fold(folded, value)
                overlay[key] = folded
                append(folded)
        except USER_ERRORS as error:
            raise self.failure(error, fold, values, iterator) from error
        if self._rolls:
            self.output.emit(results, timestamps)

    def finish(self) -> None:
        if not self._rolls:
            emit_last_results(self._table, self.output)
