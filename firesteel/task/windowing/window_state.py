"""The contents of windows of the general operator, by key and window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.window import TimestampedValue
from firesteel.graph.operator_specs import AllRecords, WindowContents
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import MISSING
from firesteel.task.copies import copy_of
from firesteel.task.windowing.aggregators import Aggregator, create_aggregator

# No name of a user's state begins with an underscore.
_TABLE = "_window-contents"


class WindowState(ABC):
    """The contents of windows. For merging windows, ``window`` is the one that holds the state."""

    aggregator: Aggregator | None = None

    @abstractmethod
    def add(self, key: Any, window: Any, value: Any, timestamp: int | None) -> None: ...

    @abstractmethod
    def get(self, key: Any, window: Any) -> list[Any] | None:
        """The contents for the window's function, or None if there are none."""

    @abstractmethod
    def clear(self, key: Any, window: Any) -> None: ...

    @abstractmethod
    def merge(self, key: Any, target: Any, sources: Iterable[Any]) -> None: ...


class AggregatedState(WindowState):
    """One accumulator per window."""

    def __init__(self, backend: KeyedStateBackend, contents: WindowContents, operator: str) -> None:
        self.aggregator = create_aggregator(contents, operator)
        self._table = backend.value_table(
            _TABLE, namespaced=True, element_type=self.aggregator.accumulator_type
        )
        self._prepared = False

    def add(self, key: Any, window: Any, value: Any, timestamp: int | None) -> None:
        aggregator, table = self._aggregator(value), self._table
        entry = (key, window)
        accumulator = table.overlay.get(entry, MISSING)
        if accumulator is MISSING:
            accumulator = MISSING if entry in table.overlay else table.base.get(entry, MISSING)
            if accumulator is MISSING:
                # A copy, because different windows may get the same record.
                table.put(entry, aggregator.first(copy_of(value)))
                return
            accumulator = copy_of(accumulator)
        table.put(entry, aggregator.add(accumulator, value))

    def get(self, key: Any, window: Any) -> list[Any] | None:
        accumulator = self._table.get((key, window))
        if accumulator is MISSING:
            return None
        assert self.aggregator is not None
        return [copy_of(self.aggregator.result(accumulator))]

    def clear(self, key: Any, window: Any) -> None:
        self._table.remove((key, window))

    def merge(self, key: Any, target: Any, sources: Iterable[Any]) -> None:
        table = self._table
        merged = table.get((key, target))
        for source in sources:
            accumulator = table.get((key, source))
            if accumulator is MISSING:
                continue
            table.remove((key, source))
            if merged is MISSING:
                merged = accumulator
            else:
                aggregator = self._aggregator(merged)
                merged = aggregator.merge(copy_of(merged), copy_of(accumulator))
        if merged is not MISSING:
            table.put((key, target), merged)

    def _aggregator(self, sample: Any) -> Aggregator:
        assert self.aggregator is not None
        if not self._prepared:
            self._prepared = True
            self.aggregator.prepare([sample])
        return self.aggregator


class RecordsState(WindowState):
    """All records of a window."""

    def __init__(self, backend: KeyedStateBackend, contents: AllRecords) -> None:
        kind = contents.element_type
        self._table = backend.list_table(
            _TABLE, namespaced=True, element_type=None if kind is None or kind.is_pickled else kind
        )

    def add(self, key: Any, window: Any, value: Any, timestamp: int | None) -> None:
        self._table.append((key, window), value)

    def get(self, key: Any, window: Any) -> list[Any] | None:
        return self._table.get((key, window))

    def clear(self, key: Any, window: Any) -> None:
        self._table.remove((key, window))

    def merge(self, key: Any, target: Any, sources: Iterable[Any]) -> None:
        for source in sources:
            elements = self._table.get((key, source))
            if elements:
                self._table.extend((key, target), elements)
                self._table.remove((key, source))


class TimedRecordsState(RecordsState):
    """All records of a window with their timestamps, for evictors."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        super().__init__(backend, AllRecords())

    def add(self, key: Any, window: Any, value: Any, timestamp: int | None) -> None:
        self._table.append((key, window), (value, timestamp))

    def timed(self, key: Any, window: Any) -> list[TimestampedValue]:
        return [TimestampedValue(*pair) for pair in self._table.get((key, window)) or ()]

    def replace(self, key: Any, window: Any, elements: list[TimestampedValue]) -> None:
        self._table.replace((key, window), [(e.value, e.timestamp) for e in elements])


def create_window_state(
    backend: KeyedStateBackend, contents: WindowContents, operator: str
) -> WindowState:
    if isinstance(contents, AllRecords):
        return RecordsState(backend, contents)
    return AggregatedState(backend, contents, operator)
