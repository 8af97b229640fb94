"""Output modes of the general operator: every firing, final results, changes, or all results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import MISSING
from firesteel.task.copies import differs
from firesteel.task.operators.process import ResultCollector

Emit = Callable[[Any, Any, list[Any]], None]
"""Calls the window's function with (key, window, contents), and collects its results."""

Contents = Callable[[], list[Any] | None]
"""Reads the contents of a window, or None if it has none."""


class EveryFiring:
    """Emits at every firing, as Flink does. ``collected`` returns the current collector."""

    waits: ClassVar[bool] = False
    """Firings are left out, and nothing is purged."""

    accumulates: ClassVar[bool] = False
    """A result replaces the window's last one, so it must include all records."""

    def __init__(
        self, backend: KeyedStateBackend, emit: Emit, collected: Callable[[], ResultCollector]
    ) -> None:
        self.emit = emit
        self.collected = collected

    def fire(self, key: Any, window: Any, contents: list[Any]) -> None:
        """Called when the trigger fires a window."""
        self.emit(key, window, contents)

    def expire(self, key: Any, window: Any, contents: Contents) -> None:
        """Called when a window is dropped. Nothing can change it any more."""

    def purged(self, key: Any, window: Any) -> None:
        """Called when the contents of a window were purged. Its next result starts from an empty window."""

    def merged(self, key: Any, windows: list[Any]) -> None:
        """Called when windows have become part of a different one."""

    def round_ended(self) -> None:
        """Called after a batch of records, or of timers."""


class Append(EveryFiring):
    """Emits the result of a window once, when it is final."""

    waits = accumulates = True

    def expire(self, key: Any, window: Any, contents: Contents) -> None:
        final = contents()
        if final is not None:
            self.emit(key, window, final)


class Update(EveryFiring):
    """Emits changed results as ((key, window), result).

    If an emitted window becomes part of a different one, a result of None takes it back.
    """

    accumulates = True

    def __init__(
        self, backend: KeyedStateBackend, emit: Emit, collected: Callable[[], ResultCollector]
    ) -> None:
        super().__init__(backend, emit, collected)
        self._emitted = backend.value_table("_emitted-results", namespaced=True)

    def fire(self, key: Any, window: Any, contents: list[Any]) -> None:
        (result,) = contents
        last = self._emitted.get((key, window))
        if last is MISSING or differs(result, last):
            self._emitted.put((key, window), result)
            self.collected().add([((key, window), result)], window.max_timestamp())

    def expire(self, key: Any, window: Any, contents: Contents) -> None:
        self.purged(key, window)

    def purged(self, key: Any, window: Any) -> None:
        if self._emitted.get((key, window)) is not MISSING:
            self._emitted.remove((key, window))

    def merged(self, key: Any, windows: list[Any]) -> None:
        for window in windows:
            if self._emitted.get((key, window)) is not MISSING:
                self._emitted.remove((key, window))
                self.collected().add([((key, window), None)], window.max_timestamp())


class Complete(EveryFiring):
    """Emits the results of all windows that ever fired, after every round in which one fired."""

    accumulates = True

    def __init__(
        self, backend: KeyedStateBackend, emit: Emit, collected: Callable[[], ResultCollector]
    ) -> None:
        super().__init__(backend, emit, collected)
        self._results = backend.value_table("_all-results", namespaced=True)
        self._fired = False

    def fire(self, key: Any, window: Any, contents: list[Any]) -> None:
        (result,) = contents
        self._results.put((key, window), result)
        self._fired = True

    def merged(self, key: Any, windows: list[Any]) -> None:
        for window in windows:
            if self._results.get((key, window)) is not MISSING:
                self._results.remove((key, window))

    def round_ended(self) -> None:
        if self._fired:
            self._fired = False
            collected = self.collected()
            for (key, window), result in self._results.items():
                collected.add([((key, window), result)], window.max_timestamp())


OUTPUT_MODES: dict[str | None, type[EveryFiring]] = {
    None: EveryFiring,
    "append": Append,
    "update": Update,
    "complete": Complete,
}
