"""One window for everything; a trigger of the user's own decides when it fires."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from firesteel.datastream.window.serializers import GlobalWindowSerializer
from firesteel.datastream.window.trigger import Trigger
from firesteel.datastream.window.triggers.end_of_stream_trigger import EndOfStreamTrigger
from firesteel.datastream.window.triggers.never_trigger import NeverTrigger
from firesteel.datastream.window.window_assigner import WindowAssigner
from firesteel.datastream.window.windows import GlobalWindow

_THE_WINDOW = (GlobalWindow(),)


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    def __init__(self, default_trigger: Trigger[Any, GlobalWindow] | None = None) -> None:
        self._default_trigger = default_trigger or NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """The window never fires, unless the program names a trigger."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """The window fires when the input has ended. Not in PyFlink."""
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return _THE_WINDOW

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        return self._default_trigger

    def get_window_serializer(self) -> GlobalWindowSerializer:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"
