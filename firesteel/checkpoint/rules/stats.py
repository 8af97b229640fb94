"""Statistics of checkpoints: a history, counts, and an explanation of slow ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean, median
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType, SubtaskState
from firesteel.checkpoint.rules.pending_checkpoint import PendingCheckpoint
from firesteel.checkpoint.rules.tasks import OperatorInfo, TaskAck, TaskTiming


def readable_size(size: int) -> str:
    """A size with a unit, in powers of 1000.

    >>> readable_size(999), readable_size(1500), readable_size(2_000_000_000_000)
    ('999 B', '1.5 kB', '2000.0 GB')
    """
    if size < 1000:
        return f"{size} B"
    amount = size / 1000
    for unit in ("kB", "MB"):
        if amount < 1000:
            return f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


@dataclass(frozen=True, slots=True)
class SubtaskStats:
    """Statistics of a subtask. ``ack_time`` is in milliseconds since 1970, sizes are in bytes."""

    vertex: int
    vertex_name: str
    index: int
    parallelism: int
    is_source: bool
    ack_time: int
    timing: TaskTiming
    state_size: int
    checkpointed_size: int

    @property
    def title(self) -> str:
        return f"'{self.vertex_name}' ({self.index + 1}/{self.parallelism})"

    def summary(self) -> dict[str, Any]:
        """JSON with the names of Flink's REST interface. Durations are in milliseconds."""
        return {
            "index": self.index,
            "status": "completed",
            "ack_timestamp": self.ack_time,
            "end_to_end_duration": round(self.timing.total * 1000),
            "start_delay": round(self.timing.start_delay * 1000),
            "alignment": {
                "duration": round(self.timing.alignment * 1000),
                "persisted": self.timing.persisted_bytes,
            },
            "unaligned_checkpoint": self.timing.is_unaligned,
            "checkpoint": {
                "sync": round(self.timing.sync * 1000),
                "async": round(self.timing.asynchronous * 1000),
            },
            "state_size": self.state_size,
            "checkpointed_size": self.checkpointed_size,
        }


# Below this many bytes per second, the storage is the likely cause.
_SLOW_STORAGE = 10_000_000
# Above this ratio to the other subtasks, a single subtask is the likely cause.
_SKEW = 3.0


def explain(
    subtasks: Sequence[SubtaskStats],
    duration: float,
    write_seconds: float,
    written: int,
    *,
    is_savepoint: bool = False,
) -> str:
    """Explain the duration by its longest part: sources, barrier, snapshots or metadata."""
    late_source = max(
        (s for s in subtasks if s.is_source), key=lambda s: s.timing.start_delay, default=None
    )
    source_seconds = late_source.timing.start_delay if late_source is not None else 0.0
    last = max(subtasks, key=_reached, default=None)
    way_seconds = max(0.0, _reached(last) - source_seconds) if last is not None else 0.0
    slowest = max(subtasks, key=_snapshot, default=None)
    snapshot_seconds = _snapshot(slowest) if slowest is not None else 0.0
    longest = max(source_seconds, way_seconds, snapshot_seconds, write_seconds)
    start = f"It took {duration:.1f} s. The longest part, {longest:.1f} s, was "

    if longest == write_seconds or last is None or slowest is None:
        if is_savepoint:
            return (
                f"{start}writing {readable_size(sum(s.state_size for s in subtasks))} of state "
                "as one savepoint, after all subtasks were done. The state is large, or the "
                "storage is slow."
            )
        return (
            f"{start}writing the metadata, after all subtasks were done. The storage is slow, "
            "or the metadata contains much state."
        )
    if longest == snapshot_seconds:
        return start + _explain_snapshot(slowest, subtasks, written)
    if longest == way_seconds:
        return (
            f"{start}the way of the barrier from the sources to {last.title}. The cause is back "
            "pressure: the records before the barrier had to be processed first."
        )
    assert late_source is not None
    return f"{start}waiting for the source {late_source.title} to read. The source is slow."


def _reached(subtask: SubtaskStats) -> float:
    """Seconds until all barriers of the subtask arrived."""
    return subtask.timing.start_delay + subtask.timing.alignment


def _snapshot(subtask: SubtaskStats) -> float:
    """Seconds of the snapshot. The asynchronous part ends before it begins."""
    return subtask.timing.sync


def _explain_snapshot(slowest: SubtaskStats, subtasks: Sequence[SubtaskStats], written: int) -> str:
    seconds = _snapshot(slowest)
    what = f"the snapshot of {slowest.title}"
    peers = [_snapshot(s) for s in subtasks if s.vertex == slowest.vertex and s is not slowest]
    if peers and seconds > _SKEW * max(median(peers), 0.001):
        return (
            f"{what}, which wrote {readable_size(slowest.checkpointed_size)} of "
            f"{readable_size(written)}. The other subtasks took {median(peers):.1f} s. The cause "
            "is skew: the keys of this subtask have more state."
        )
    rate = slowest.checkpointed_size / seconds
    if rate < _SLOW_STORAGE:
        return (
            f"{what}, which wrote {readable_size(slowest.checkpointed_size)} at "
            f"{readable_size(int(rate))} per second. The storage is slow."
        )
    return f"{what}, which wrote {readable_size(slowest.checkpointed_size)}. The state is large."


# A shorter checkpoint needs no explanation.
_NOT_SLOW_SECONDS = 0.5
_FEWEST_TO_COMPARE = 3


class CheckpointStatus(Enum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(slots=True)
class CheckpointStats:
    """Statistics of a checkpoint. Times are milliseconds since 1970, durations seconds, sizes bytes.

    ``state_size``: the size of all files that the checkpoint refers to.
    ``checkpointed_size``: the size of the files that were written for it.
    ``explanation``: the reason why it was slow, or None.
    """

    checkpoint_id: int
    is_savepoint: bool
    trigger_time: int
    subtask_count: int
    epoch: int
    is_native: bool = False
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
    explanation: str | None = None

    def summary(self) -> dict[str, Any]:
        """JSON with the names of Flink's REST interface, and ``explanation``."""
        return {
            "id": self.checkpoint_id,
            "status": self.status.value,
            "is_savepoint": self.is_savepoint,
            "savepoint_format": self._format,
            "checkpoint_type": self._type,
            "epoch": self.epoch,
            "trigger_timestamp": self.trigger_time,
            "latest_ack_timestamp": self.latest_ack_time,
            "end_to_end_duration": _millis(self.duration),
            "write_duration": _millis(self.write_seconds),
            "state_size": self.state_size,
            "checkpointed_size": self.checkpointed_size,
            "persisted_data": self.persisted_size,
            "num_subtasks": self.subtask_count,
            "num_acknowledged_subtasks": len(self.subtasks),
            "external_path": self.location,
            "discarded": self.discarded,
            "failure_message": self.failure,
            "failure_timestamp": self.failure_time,
            "explanation": self.explanation,
        }

    @property
    def persisted_size(self) -> int:
        """The bytes of records that barriers have overtaken."""
        return sum(subtask.timing.persisted_bytes for subtask in self.subtasks)

    @property
    def _type(self) -> str:
        if self.is_savepoint:
            return "SAVEPOINT"
        is_unaligned = any(subtask.timing.is_unaligned for subtask in self.subtasks)
        return "UNALIGNED_CHECKPOINT" if is_unaligned else "CHECKPOINT"

    @property
    def _format(self) -> str | None:
        if not self.is_savepoint:
            return None
        return "NATIVE" if self.is_native else "CANONICAL"

    def details(self) -> dict[str, Any]:
        """The summary, and the subtasks by vertex."""
        tasks: dict[str, Any] = {}
        for subtask in sorted(self.subtasks, key=lambda stats: stats.index):
            task = tasks.setdefault(
                str(subtask.vertex), {"name": subtask.vertex_name, "subtasks": []}
            )
            task["subtasks"].append(subtask.summary())
        return {**self.summary(), "tasks": tasks}


class CheckpointStatsTracker:
    """Statistics of the last ``history_size`` checkpoints. The coordinator reports events."""

    def __init__(
        self,
        operators: Sequence[OperatorInfo],
        history_size: int = 10,
        interval: float | None = None,
    ) -> None:
        self.rescaled(operators)
        self._interval = interval
        self._history: deque[CheckpointStats] = deque(maxlen=history_size)
        self._in_progress: dict[int, CheckpointStats] = {}
        self._latest: dict[str, CheckpointStats] = {}
        self._restored: dict[str, Any] | None = None
        self.triggered = self.completed_count = self.failed_count = self.restored_count = 0

    def timing_of(self, vertex: int, subtask: int) -> TaskTiming | None:
        """Return the durations of the last snapshot of a subtask, or None before the first one."""
        return self._timings.get((vertex, subtask))

    def rescaled(self, operators: Sequence[OperatorInfo]) -> None:
        """Take the operators of the checkpoints that follow."""
        self._timings: dict[tuple[int, int], TaskTiming] = {}
        self._operators = {operator.vertex: operator for operator in reversed(operators)}
        self._sources = frozenset(o.vertex for o in operators if o.is_source)
        self._subtask_count = sum(o.parallelism for o in self._operators.values())

    def pending(self, checkpoint: PendingCheckpoint) -> None:
        self.triggered += 1
        self._in_progress[checkpoint.checkpoint_id] = CheckpointStats(
            checkpoint_id=checkpoint.checkpoint_id,
            is_savepoint=checkpoint.type is SnapshotType.SAVEPOINT,
            trigger_time=checkpoint.trigger_time,
            subtask_count=self._subtask_count,
            epoch=checkpoint.epoch,
            is_native=checkpoint.is_native,
        )

    def acknowledged(self, checkpoint_id: int, ack: TaskAck, since_epoch: int, time: int) -> None:
        """Add an ack. Segments up to ``since_epoch`` belong to the previous checkpoint."""
        stats = self._in_progress.get(checkpoint_id)
        if stats is None:
            return
        vertex, index = ack.task
        self._timings[ack.task] = ack.timing
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
        """JSON with counts, summary, latest and history, newest first, as in Flink's REST interface."""
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
                "persisted_data": _spread(s.persisted_size for s in self._completed()),
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
    """The size of state that was written since an epoch. Shared files were written before."""
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
