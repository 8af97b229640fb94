"""What a harness keeps of an operator subtask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.state.changelog import Segment
from firesteel.state.redistribution import OperatorState


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """The state of one operator subtask; it can be pickled.

    ``tables`` is the keyed state; ``operator_state`` and ``whole`` are what is not keyed; ``committables`` are
    what a sink prepared with this snapshot.
    """

    operator: str
    subtask: int
    parallelism: int
    max_parallelism: int
    tables: Segment
    checkpoint_id: int = 0
    operator_state: dict[str, OperatorState] = field(default_factory=dict)
    whole: bytes | None = None
    committables: tuple[Any, ...] = ()
