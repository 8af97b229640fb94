"""CoProcess: a process function for two inputs, keyed or not."""

from __future__ import annotations

from typing import Any

from firesteel.graph.operator_specs import CoProcessSpec, ProcessSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.process import ProcessOperator


class CoProcessOperator(ProcessOperator):
    def __init__(self, spec: CoProcessSpec, context: OperatorContext) -> None:
        super().__init__(ProcessSpec(spec.function), context)

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        self.process_with(self.function.process_element1, values, keys, timestamps)

    def receive_second(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        self.process_with(self.function.process_element2, values, keys, timestamps)
