"""Staggered windows: how far a subtask shifts them is part of its state.

Otherwise a subtask that is restored would shift them anew, and cut the windows it has in two.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ListStateDescriptor
from firesteel.datastream.window.assigners.tumbling_windows import TumblingWindows
from firesteel.task.operators.base import OperatorContext


class StaggeredAssigner:
    """``assigner`` is the operator's own: others may use the one of the program, too."""

    def __init__(self, assigner: TumblingWindows[Any], context: OperatorContext) -> None:
        self.assigner = copy(assigner)
        self._context = context
        self._saved: int | None = None

    def load(self) -> None:
        """After another parallelism there may be several shifts, or none."""
        shifts = self._state().get()
        self._saved = self.assigner.stagger_offset = shifts[0] if shifts else None

    def save(self) -> None:
        shift = self.assigner.stagger_offset
        if shift is not None and shift != self._saved:
            self._saved = shift
            self._state().update([shift])

    def _state(self) -> Any:
        descriptor = ListStateDescriptor("stagger-offset", Types.LONG())
        return self._context.operator_state.get_list_state(descriptor)


def staggered(assigner: Any, context: OperatorContext) -> StaggeredAssigner | None:
    if isinstance(assigner, TumblingWindows) and assigner.is_staggered:
        return StaggeredAssigner(assigner, context)
    return None
