"""What an attempt of a job begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.checkpoint.payload import Payload
from firesteel.task.messages import SubtaskHandle


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """What an attempt begins with: nothing, or what a checkpoint holds."""

    checkpoint_id: int | None = None
    # Epochs count on: the segments of a log are ordered by them.
    epoch: int = 0
    handles: Mapping[tuple[int, int], SubtaskHandle] = field(default_factory=dict)
    # By (vertex, subtask) and node.
    committables: Mapping[tuple[int, int], Mapping[int, tuple[Any, ...]]] = field(
        default_factory=dict
    )
    # Of sources, by node: the enumerator's state, and how many splits each reader has.
    enumerators: Mapping[int, Payload] = field(default_factory=dict)
    splits: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
