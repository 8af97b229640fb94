"""Windows over two streams, for any assigner, trigger and evictor.

As in Flink, both streams are one stream of tagged records to assigner, trigger and evictor; the
contents of a window are the records of both sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.datastream.window import TaggedUnion
from firesteel.graph.operator_specs import PairedRecords, WindowJoinSpec, WindowSpec
from firesteel.state.backend import KeyedStateBackend
from firesteel.task.operators.base import OperatorContext
from firesteel.task.windowing.evicting_window_operator import EvictingWindowOperator
from firesteel.task.windowing.pair_calls import PairCalls, Sides
from firesteel.task.windowing.window_operator import WindowOperator
from firesteel.task.windowing.window_state import WindowState


class PairedRecordsState(WindowState):
    """Two lists for each key and window."""

    def __init__(self, backend: KeyedStateBackend, contents: PairedRecords) -> None:
        types = (contents.left_type, contents.right_type)
        self._tables = [
            backend.list_table(name, namespaced=True, element_type=None if t.is_pickled else t)
            for name, t in zip(
                ("_window-contents/left", "_window-contents/right"), types, strict=True
            )
        ]

    def add(self, key: Any, window: Any, value: TaggedUnion, timestamp: int | None) -> None:
        self._tables[value.side].append((key, window), value.value)

    def get(self, key: Any, window: Any) -> list[Any] | None:
        left, right = (table.get((key, window)) for table in self._tables)
        return None if left is None and right is None else [left or [], right or []]

    def clear(self, key: Any, window: Any) -> None:
        for table in self._tables:
            table.remove((key, window))

    def merge(self, key: Any, target: Any, sources: Iterable[Any]) -> None:
        for source in sources:
            for table in self._tables:
                elements = table.get((key, source))
                if elements:
                    table.extend((key, target), elements)
                    table.remove((key, source))


class _TwoInputs(WindowOperator):
    """Tags what comes in, and calls a function of two sides."""

    calls: PairCalls

    def create_calls(self, spec: WindowSpec) -> PairCalls:
        assert isinstance(spec, WindowJoinSpec)
        return PairCalls(spec)

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        self.side = 0
        super().receive(list(map(TaggedUnion.one, values)), keys, timestamps)

    def receive_second(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        self.side = 1
        super().receive(list(map(TaggedUnion.two, values)), keys, timestamps)

    def add_late(self, values: list[Any], timestamps: list[int]) -> None:
        self.late.add([tagged.value for tagged in values], timestamps, self.side)

    def split(self, contents: list[Any]) -> Sides:
        left, right = contents
        return left, right

    def call_function(self, key: Any, window: Any, contents: list[Any]) -> None:
        sides = self.split(contents)
        if all(sides) or self.calls.groups:
            super().call_function(key, window, sides)


class WindowJoinOperator(_TwoInputs):
    def create_state(self, spec: WindowSpec, context: OperatorContext) -> WindowState:
        assert isinstance(spec.contents, PairedRecords)
        return PairedRecordsState(context.keyed_state, spec.contents)


class EvictingWindowJoinOperator(_TwoInputs, EvictingWindowOperator):
    """Evictors see the records of both sides in one list, which is kept like that."""

    def split(self, contents: list[TaggedUnion]) -> Sides:
        left = [tagged.value for tagged in contents if tagged.side == 0]
        return left, [tagged.value for tagged in contents if tagged.side == 1]
