"""What the two kinds of broadcast process functions have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function
from firesteel.datastream.state import (
    BroadcastState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
)


class BaseBroadcastProcessFunction(Function):
    """Its contexts: one side writes the broadcast state, the other reads it."""

    class BaseContext(ABC):
        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's (or timer's) time in milliseconds. None: it has none."""

        @abstractmethod
        def current_processing_time(self) -> int: ...

        @abstractmethod
        def current_watermark(self) -> int: ...

    class Context(BaseContext):
        """For the broadcast side."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> BroadcastState[Any, Any]:
            """One of the states that were named in ``broadcast()``."""

    class ReadOnlyContext(BaseContext):
        """For the other side."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> ReadOnlyBroadcastState[Any, Any]:
            """One of the states that were named in ``broadcast()``, to be read."""
