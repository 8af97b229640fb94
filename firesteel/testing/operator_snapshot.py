"""What a harness keeps of an operator subtask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.checkpoint.redistribution import distribute
from firesteel.errors import RescalingError
from firesteel.state.changelog import Segment
from firesteel.state.redistribution import OperatorState
from firesteel.task.operators.base import Operator


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


def share_of_wholes(
    operator: Operator, snapshots: Sequence[OperatorSnapshot], subtask: int, parallelism: int
) -> tuple[bytes, ...]:
    """What is not keyed, for one subtask of ``parallelism``: each whole goes to one of them."""
    wholes = [snapshot.whole for snapshot in snapshots if snapshot.whole is not None]
    if len(snapshots) == parallelism:
        own = snapshots[subtask].whole
        return () if own is None else (own,)
    if wholes and type(operator).restore_several is Operator.restore_several:
        raise RescalingError(operator.name)
    return tuple(distribute(wholes, parallelism)[subtask])
