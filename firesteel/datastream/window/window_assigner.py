"""WindowAssigner: which windows a record belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from firesteel.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.common.serializer import TypeSerializer
    from firesteel.datastream.functions import RuntimeContext
    from firesteel.datastream.window.trigger import Trigger

T = TypeVar("T")
W = TypeVar("W")


class NoTimestampError(FiresteelError, ValueError):
    """A record without a timestamp came to a window of event time, or to an interval join."""

    def __init__(self, place: str = "a window of event time") -> None:
        self.place = place
        super().__init__(
            f"a record without a timestamp came to {place}. Give the source a WatermarkStrategy, or "
            f"call assign_timestamps_and_watermarks() before it"
        )

    def __reduce__(self) -> tuple[type[NoTimestampError], tuple[str]]:
        return NoTimestampError, (self.place,)


class WindowAssigner(ABC, Generic[T, W]):
    """Puts every record into any number of windows."""

    class WindowAssignerContext(ABC):
        @abstractmethod
        def get_current_processing_time(self) -> int: ...

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Its state is that of the record's key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of a record. ``timestamp`` is the smallest long if it has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger where the program names none."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """As in PyFlink. Firesteel itself keeps windows pickled."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark, rather than by the clock."""
