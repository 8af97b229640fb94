"""reduce: a reduction per key.

In a stream it rolls, with a result for every record; a batch gives each key's last result only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.graph.operator_specs import ReduceSpec
from firesteel.state.missing import MISSING
from firesteel.state.tables import ValueTable
from firesteel.task.copies import copying, copying_get, is_immutable
from firesteel.task.errors import USER_ERRORS
from firesteel.task.operators.base import FunctionOperator, OperatorContext, Output


class ReduceOperator(FunctionOperator):
    def __init__(self, spec: ReduceSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._reduce = self.method("reduce")
        self._table = context.keyed_state.value_table("reduce")
        self._rolls = not context.subtask.batch
        # Whether the function may change its arguments in place.
        self._may_change = True

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        assert keys is not None
        keys_in_order: Iterable[Any] = keys
        reduce = self._reduce
        overlay, base = self._table.overlay, self._table.base
        in_base, missing = base.get, MISSING
        results: list[Any] = []
        # An accumulator that is changed in place goes on changing after it was emitted.
        copies = self._may_change and not is_immutable(values[0])
        append = copying(results.append) if copies else results.append
        if copies:
            in_base = copying_get(in_base)
        if self.uses_keys:
            keys_in_order = self.context.key_context.following(keys)
        iterator = iter(values)
        try:
            # The keys come second: zip must not take a value that it then finds no key for.
            for value, key in zip(iterator, keys_in_order, strict=False):
                if key in overlay:
                    value = reduce(overlay[key], value)
                else:
                    reduced = in_base(key, missing)
                    if reduced is not missing:
                        value = reduce(reduced, value)
                overlay[key] = value
                append(value)
        except USER_ERRORS as error:
            raise self.failure(error, reduce, values, iterator) from error
        if self._rolls:
            self.output.emit(results, timestamps)

    def finish(self) -> None:
        if not self._rolls:
            emit_last_results(self._table, self.output)


def emit_last_results(table: ValueTable, output: Output) -> None:
    results = [value for _, value in table.items()]
    if results:
        output.emit(results, None)
