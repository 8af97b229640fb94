"""What a harness keeps of an operator subtask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.state.changelog import Segment


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """The state of one operator subtask; it can be pickled.

    ``tables`` is the keyed state; ``whole`` is what is not keyed; ``committables`` are
    what a sink prepared with this snapshot.
    """

    operator: str
    subtask: int
    parallelism: int
    max_parallelism: int
    tables: Segment
    whole: Any = None
    committables: tuple[Any, ...] = ()
