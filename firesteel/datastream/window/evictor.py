"""Evictors: which records leave a window when it fires, before its function sees them or after."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

from firesteel.datastream.window.windows import Window


class TimestampedValue(NamedTuple):
    """A record in a window. ``timestamp`` is None if it has none."""

    value: Any
    timestamp: int | None


class EvictorContext(Protocol):
    def get_current_processing_time(self) -> int: ...

    def get_current_watermark(self) -> int: ...


class Evictor(ABC):  # noqa: B024 - either method will do
    """Both methods take the records in the order of their arrival and give those that stay."""

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        """Called before the window's function."""
        return elements

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        """Called after the window's function."""
        return elements


class OneSidedEvictor(Evictor):
    """Does the same either before the function or after it."""

    def __init__(self, do_evict_after: bool) -> None:
        self._after = do_evict_after

    @abstractmethod
    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        """The records that stay."""

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        return elements if self._after else self.keep(elements)

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        return self.keep(elements) if self._after else elements
