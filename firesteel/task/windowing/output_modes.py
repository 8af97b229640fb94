"""Which results leave the general operator: at each firing, once, as changes, or as a whole table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import MISSING
from firesteel.task.copies import is_another
from firesteel.task.operators.process import ResultCollector

Emit = Callable[[Any, Any, list[Any]], None]
"""(key, window, contents): call the window's function and collect its results."""

Contents = Callable[[], list[Any] | None]
"""Reads the contents of a window; None if there is nothing."""


class EveryFiring:
    """Flink's way: a firing emits. ``collected`` gives the collector that results go into."""

    waits: ClassVar[bool] = False
    """Whether a firing is left out, with all that it would take out of the window."""

    accumulates: ClassVar[bool] = False
    """Whether a result takes the place of the window's last one, so that it must be that of all records."""

    def __init__(
        self, backend: KeyedStateBackend, emit: Emit, collected: Callable[[], ResultCollector]
    ) -> None:
        self.emit = emit
        self.collected = collected

    def fire(self, key: Any, window: Any, contents: list[Any]) -> None:
        """The trigger says so."""
        self.emit(key, window, contents)

    def expire(self, key: Any, window: Any, contents: Contents) -> None:
        """The window is dropped; nothing can change it any more."""

    def purged(self, key: Any, window: Any) -> None:
        """The window's contents are gone: its next result has nothing to do with the last one."""

    def merged(self, key: Any, windows: list[Any]) -> None:
        """These windows have become part of another one."""

    def round_ended(self) -> None:
        """After a batch of records, or of timers."""


class Append(EveryFiring):
    """A window's result is emitted once: when it is final. Until then nothing may be missing in it."""

    waits = accumulates = True

    def expire(self, key: Any, window: Any, contents: Contents) -> None:
        final = contents()
        if final is not None:
            self.emit(key, window, final)


class Update(EveryFiring):
    """What has changed since the last firing, as ((key, window), result).

    A window that was emitted and then became part of another one is taken back with a result of None.
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
        if last is MISSING or is_another(result, last):
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
    """The results of all windows that ever fired, after every round in which one did."""

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
