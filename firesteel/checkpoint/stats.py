"""How checkpoints went: a history of the last ones, counts, and what took how long."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean, median
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType, SubtaskState
from firesteel.checkpoint.pending_checkpoint import PendingCheckpoint
from firesteel.checkpoint.slowness import explain
from firesteel.checkpoint.subtask_stats import SubtaskStats
from firesteel.checkpoint.tasks import OperatorInfo, TaskAck

__all__ = ["CheckpointStats", "CheckpointStatsTracker", "CheckpointStatus"]

# Below this nobody needs to know why.
_NOT_SLOW_SECONDS = 0.5
_FEWEST_TO_COMPARE = 3


class CheckpointStatus(Enum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(slots=True)
class CheckpointStats:
    """Of one checkpoint. Times are milliseconds since 1970, durations seconds, sizes bytes.

    ``state_size`` is all that it refers to, ``checkpointed_size`` what was written for it.
    """

    checkpoint_id: int
    is_savepoint: bool
    trigger_time: int
    subtask_count: int
    epoch: int
    status: CheckpointStatus = CheckpointStatus.IN_PROGRESS
    subtasks: list[SubtaskStats] = field(default_factory=list)
    state_size: int = 0
    checkpointed_size: int = 0
    latest_ack_time: int | None = None
    write_seconds: float = 0.0
    duration: float = 0.0
    location: str | None = None
    discarded: bool = False
    failure: str | None = None
    failure_time: int | None = None
    # Why it was slow, if it was.
    explanation: str | None = None

    def summary(self) -> dict[str, Any]:
        """JSON with the names that Flink's REST interface has, and ``explanation``."""
        return {
            "id": self.checkpoint_id,
            "status": self.status.value,
            "is_savepoint": self.is_savepoint,
            "checkpoint_type": "SAVEPOINT" if self.is_savepoint else "CHECKPOINT",
            "epoch": self.epoch,
            "trigger_timestamp": self.trigger_time,
            "latest_ack_timestamp": self.latest_ack_time,
            "end_to_end_duration": _millis(self.duration),
            "write_duration": _millis(self.write_seconds),
            "state_size": self.state_size,
            "checkpointed_size": self.checkpointed_size,
            "num_subtasks": self.subtask_count,
            "num_acknowledged_subtasks": len(self.subtasks),
            "external_path": self.location,
            "discarded": self.discarded,
            "failure_message": self.failure,
            "failure_timestamp": self.failure_time,
            "explanation": self.explanation,
        }

    def details(self) -> dict[str, Any]:
        """The summary, and every subtask by vertex."""
        tasks: dict[str, Any] = {}
        for subtask in sorted(self.subtasks, key=lambda stats: stats.index):
            task = tasks.setdefault(
                str(subtask.vertex), {"name": subtask.vertex_name, "subtasks": []}
            )
            task["subtasks"].append(subtask.summary())
        return {**self.summary(), "tasks": tasks}


class CheckpointStatsTracker:
    """Told by the coordinator what happens; keeps the last ``history_size`` checkpoints."""

    def __init__(
        self,
        operators: Sequence[OperatorInfo],
        history_size: int = 10,
        interval: float | None = None,
    ) -> None:
        self._operators = {operator.vertex: operator for operator in reversed(operators)}
        self._sources = frozenset(o.vertex for o in operators if o.is_source)
        self._subtask_count = sum(o.parallelism for o in self._operators.values())
        self._interval = interval
        self._history: deque[CheckpointStats] = deque(maxlen=history_size)
        self._in_progress: dict[int, CheckpointStats] = {}
        self._latest: dict[str, CheckpointStats] = {}
        self._restored: dict[str, Any] | None = None
        self.triggered = self.completed_count = self.failed_count = self.restored_count = 0

    def pending(self, checkpoint: PendingCheckpoint) -> None:
        self.triggered += 1
        self._in_progress[checkpoint.checkpoint_id] = CheckpointStats(
            checkpoint_id=checkpoint.checkpoint_id,
            is_savepoint=checkpoint.type is SnapshotType.SAVEPOINT,
            trigger_time=checkpoint.trigger_time,
            subtask_count=self._subtask_count,
            epoch=checkpoint.epoch,
        )

    def acknowledged(self, checkpoint_id: int, ack: TaskAck, since_epoch: int, time: int) -> None:
        """``since_epoch``: segments up to it belonged to the checkpoint before."""
        stats = self._in_progress.get(checkpoint_id)
        if stats is None:
            return
        vertex, index = ack.task
        operator = self._operators.get(vertex)
        subtask = SubtaskStats(
            vertex=vertex,
            vertex_name=operator.vertex_name if operator is not None else "",
            index=index,
            parallelism=operator.parallelism if operator is not None else 1,
            is_source=vertex in self._sources,
            ack_time=time,
            timing=ack.timing,
            state_size=sum(state.size for state in ack.operators.values()),
            checkpointed_size=sum(
                _written_since(state, since_epoch) for state in ack.operators.values()
            ),
        )
        stats.subtasks.append(subtask)
        stats.state_size += subtask.state_size
        stats.checkpointed_size += subtask.checkpointed_size
        stats.latest_ack_time = time

    def completed(
        self,
        checkpoint_id: int,
        location: str | None,
        duration: float,
        write_seconds: float,
    ) -> CheckpointStats:
        stats = self._in_progress.pop(checkpoint_id)
        stats.status = CheckpointStatus.COMPLETED
        stats.location = location
        stats.duration = duration
        stats.write_seconds = write_seconds
        if self._is_slow(duration):
            stats.explanation = explain(
                stats.subtasks,
                duration,
                write_seconds,
                stats.checkpointed_size,
                is_savepoint=stats.is_savepoint,
            )
        self.completed_count += 1
        self._latest["savepoint" if stats.is_savepoint else "completed"] = stats
        self._history.append(stats)
        return stats

    def failed(self, checkpoint_id: int, reason: str, duration: float, time: int) -> None:
        stats = self._in_progress.pop(checkpoint_id, None)
        if stats is None:
            return
        stats.status = CheckpointStatus.FAILED
        stats.failure = reason
        stats.failure_time = time
        stats.duration = duration
        self.failed_count += 1
        self._latest["failed"] = stats
        self._history.append(stats)

    def restored(
        self, checkpoint_id: int, location: str | None, time: int, *, is_savepoint: bool
    ) -> None:
        self.restored_count += 1
        self._restored = {
            "id": checkpoint_id,
            "restore_timestamp": time,
            "is_savepoint": is_savepoint,
            "external_path": location,
        }

    def discarded(self, location: str | None) -> None:
        for stats in self._history:
            if location is not None and stats.location == location:
                stats.discarded = True

    def find(self, checkpoint_id: int) -> CheckpointStats | None:
        known = (*self._in_progress.values(), *self._history)
        return next((stats for stats in known if stats.checkpoint_id == checkpoint_id), None)

    def overview(self) -> dict[str, Any]:
        """JSON: counts, summary, latest and history (newest first), named as in Flink's REST."""
        running = sorted(self._in_progress.values(), key=lambda stats: -stats.checkpoint_id)
        return {
            "counts": {
                "restored": self.restored_count,
                "total": self.triggered,
                "in_progress": len(self._in_progress),
                "completed": self.completed_count,
                "failed": self.failed_count,
            },
            "summary": {
                "end_to_end_duration": _spread(_millis(s.duration) for s in self._completed()),
                "state_size": _spread(s.state_size for s in self._completed()),
                "checkpointed_size": _spread(s.checkpointed_size for s in self._completed()),
            },
            "latest": {
                "completed": self._latest_summary("completed"),
                "savepoint": self._latest_summary("savepoint"),
                "failed": self._latest_summary("failed"),
                "restored": self._restored,
            },
            "history": [stats.summary() for stats in (*running, *reversed(self._history))],
        }

    def _latest_summary(self, kind: str) -> dict[str, Any] | None:
        stats = self._latest.get(kind)
        return None if stats is None else stats.summary()

    def _completed(self) -> list[CheckpointStats]:
        return [s for s in self._history if s.status is CheckpointStatus.COMPLETED]

    def _is_slow(self, duration: float) -> bool:
        if duration < _NOT_SLOW_SECONDS:
            return False
        if self._interval is not None and duration > self._interval:
            return True
        others = [stats.duration for stats in self._completed()]
        return len(others) >= _FEWEST_TO_COMPARE and duration > 2 * median(others)


def _written_since(state: SubtaskState, epoch: int) -> int:
    """Files that segments have in common with older ones were written before."""
    older = {
        path for segment in state.segments if segment.epoch <= epoch for path in segment.paths()
    }
    newer = [segment for segment in state.segments if segment.epoch > epoch]
    files = {
        (file.path or file.name): file.size
        for segment in newer
        for file in segment.files
        if file.path not in older
    }
    old_size = sum(segment.size for segment in state.segments if segment.epoch <= epoch)
    whole = sum(segment.size for segment in newer if not segment.files)
    rest = state.size - old_size - sum(segment.size for segment in newer)
    return whole + sum(files.values()) + rest


def _millis(seconds: float) -> int:
    return round(seconds * 1000)


def _spread(values: Iterable[int]) -> dict[str, int]:
    found = list(values)
    if not found:
        return {"min": 0, "max": 0, "avg": 0}
    return {"min": min(found), "max": max(found), "avg": round(fmean(found))}
