"""Tumbling and sliding windows of event time over two streams: the fast way.

Each slice has a table of records for either side. A batch is appended to them as it comes, windows that
overlap share slices instead of copying records, and what is over is dropped as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.graph.operator_specs import PairedRecords, WindowJoinSpec, WindowSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.windowing.aligned_window_operator import AlignedWindowOperator
from firesteel.task.windowing.pair_calls import PairCalls
from firesteel.task.windowing.slice_tables import RecordTables

_EMIT_RECORDS = 4096


class SlicedWindowJoinOperator(AlignedWindowOperator):
    calls: PairCalls

    def __init__(self, spec: WindowJoinSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        contents = spec.contents
        assert isinstance(contents, PairedRecords)
        self._slices = [
            RecordTables(context.keyed_state, side, None if kind.is_pickled else kind)
            for side, kind in (("left", contents.left_type), ("right", contents.right_type))
        ]

    def create_calls(self, spec: WindowSpec) -> PairCalls:
        assert isinstance(spec, WindowJoinSpec)
        return PairCalls(spec)

    # Records

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        self.side = 0
        super().receive(values, keys, timestamps)

    def receive_second(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        self.side = 1
        super().receive(values, keys, timestamps)

    def _add_to_slice(self, start: int, values: list[Any], keys: list[Any]) -> None:
        slices = self._slices[self.side]
        table = slices.get(start)
        if table is None:
            table = slices.create(start)
            self._schedule_slice(start)
        table.append_all(keys, values)

    def _add_late(self, values: list[Any], keys: list[Any], starts: list[int]) -> None:
        for value, key, start in zip(values, keys, starts, strict=True):
            self._add(start, [value], [key])
            for end in self._layout.ends(start):
                if self._has_fired(end):
                    self._fire_key(key, end)
        self.emit_collected()

    # Results

    def _fire(self, end: int) -> None:
        lefts, rights = (self._contents(side, end) for side in (0, 1))
        keys: Iterable[Any] = lefts
        if self.calls.groups:
            keys = {**lefts, **rights}
        elif len(rights) < len(lefts):
            keys = rights
        window = self._window(end)
        for key in keys:
            self._call(key, window, lefts.get(key), rights.get(key))
            if len(self.collected.results) >= _EMIT_RECORDS:
                self.emit_collected()
        self.emit_collected()

    def _contents(self, side: int, end: int) -> dict[Any, list[Any]]:
        contents: dict[Any, list[Any]] = {}
        slices = self._slices[side]
        for start in self._layout.slices(end):
            table = slices.get(start)
            if table is None:
                continue
            if not contents:
                contents = dict(table.items())
                continue
            for key, records in table.items():
                if key in contents:
                    contents[key] += records
                else:
                    contents[key] = records
        return contents

    def _fire_key(self, key: Any, end: int) -> None:
        left, right = (
            [
                record
                for start in self._layout.slices(end)
                if (table := slices.get(start)) is not None
                for record in table.get(key) or ()
            ]
            for slices in self._slices
        )
        self._call(key, self._window(end), left, right)

    def _call(self, key: Any, window: Any, left: list[Any] | None, right: list[Any] | None) -> None:
        if (left and right) or (self.calls.groups and (left or right)):
            self.call_function(key, window, (left or [], right or []))

    # State

    def _drop_slice(self, start: int) -> None:
        for slices in self._slices:
            slices.drop(start)

    def _load_slices(self) -> None:
        for slices in self._slices:
            slices.restore()
            for start in slices:
                self._schedule_slice(start)
