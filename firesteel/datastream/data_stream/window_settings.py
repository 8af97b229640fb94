"""What is said about windows, whether they are of one stream or of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from firesteel.common.time import Duration, Time
from firesteel.datastream.data_stream.function_arguments import ProgramTypeError, require_instance
from firesteel.datastream.window import Evictor, MergingWindowAssigner, Trigger, WindowAssigner
from firesteel.datastream.window.arguments import to_millis
from firesteel.errors import InvalidProgramError, shorten

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["WindowSettings"]


class WindowSettings:
    """Setters give the same object back."""

    def __init__(
        self, environment: StreamExecutionEnvironment, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        require_instance("window", window_assigner, WindowAssigner)
        self._environment = environment
        self._window_assigner = window_assigner
        self._allowed_lateness = 0
        self._window_trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor | None = None

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when windows fire; otherwise the assigner's default trigger does."""
        require_instance("trigger", trigger, Trigger)
        self._window_trigger = trigger
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Let records leave windows that fire. All records are kept then. Not in PyFlink."""
        require_instance("evictor", evictor, Evictor)
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration) -> Self:
        """How long (in event time) a window is kept after its end, for late records."""
        lateness = (
            to_millis(time_ms, "The allowed lateness")
            if isinstance(time_ms, Time | Duration)
            else time_ms
        )
        if type(lateness) is not int or lateness < 0:
            raise ProgramTypeError(
                f"allowed_lateness expects milliseconds, at least 0, but got {shorten(time_ms)}."
            )
        self._allowed_lateness = lateness
        return self

    def _chosen_trigger(self) -> Trigger[Any, Any]:
        assigner, trigger = self._window_assigner, self._window_trigger
        if trigger is None:
            trigger = assigner.get_default_trigger(self._environment)
        if isinstance(assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise InvalidProgramError(
                f"{assigner} merges windows, but {trigger} cannot: its can_merge() is False."
            )
        return trigger
