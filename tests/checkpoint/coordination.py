"""A job of two vertices whose coordinator tests drive by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType, SubtaskState
from firesteel.checkpoint.rules.coordinator import CheckpointCoordinator
from firesteel.checkpoint.rules.decisions import Barrier, Decision, WriteSnapshot
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.rules.settings import CheckpointSettings
from firesteel.checkpoint.rules.tasks import OperatorInfo, TaskAck, TaskId
from firesteel.state.changelog import Segment

OPERATORS = (
    OperatorInfo("s", None, "numbers", 1, 128, vertex=1, vertex_name="numbers", is_source=True),
    OperatorInfo("c", "counter", "count", 2, 128, vertex=2, vertex_name="count -> print"),
    OperatorInfo("p", None, "print", 2, 128, vertex=2, vertex_name="count -> print"),
)
TASKS: tuple[TaskId, ...] = ((1, 0), (2, 0), (2, 1))


def coordinator(now: float = 0.0, **settings: Any) -> CheckpointCoordinator:
    given = {"interval": 10.0, "tolerable_failures": 0, **settings}
    return CheckpointCoordinator(
        CheckpointSettings(**given), OPERATORS, "job", "a job", now, wall_clock_offset=1000.0
    )


def segment(file: str, epoch: int = 1) -> Segment:
    return Segment(epoch, True, 100, path=f"/job/shared/{file}", checksum=1)


def acks(
    tasks: Iterable[TaskId] = TASKS, files: Iterable[str] = (), epoch: int = 1
) -> list[TaskAck]:
    """Acks of tasks; the counting operator's first subtask has the files."""
    segments = tuple(segment(file, epoch) for file in files)
    return [
        TaskAck(task, {"c": SubtaskState(segments)} if task == (2, 0) else {}) for task in tasks
    ]


def savepoint(
    request_id: str = "r1", target: str = "/savepoints/1", stop: StopMode | None = None
) -> SnapshotRequest:
    return SnapshotRequest(request_id, SnapshotType.SAVEPOINT, target, stop)


def start(it: CheckpointCoordinator, now: float, epoch: int = 1) -> Barrier:
    barrier = it.trigger(now, epoch)
    assert barrier is not None
    return barrier


def complete(
    it: CheckpointCoordinator, now: float, epoch: int = 1, files: Iterable[str] = ()
) -> list[Decision]:
    """Trigger, acknowledge and write a checkpoint, all at ``now``."""
    barrier = start(it, now, epoch)
    return written(it, it.acknowledge(barrier.checkpoint_id, acks(files=files), now), now)


def written(it: CheckpointCoordinator, decisions: list[Decision], now: float) -> list[Decision]:
    """Report the decided snapshot as written, and return the next decisions."""
    (write,) = decisions
    assert isinstance(write, WriteSnapshot)
    checkpoint_id = write.metadata.checkpoint_id
    return it.snapshot_written(checkpoint_id, f"/job/chk-{checkpoint_id}", write.metadata, now)
