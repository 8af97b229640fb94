"""Why a checkpoint took long, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from firesteel.checkpoint.sizes import readable_size
from firesteel.checkpoint.subtask_stats import SubtaskStats

__all__ = ["explain"]

# A storage that takes less than this many bytes in a second is the likely cause.
_SLOW_STORAGE = 10_000_000
# How many times as long as the others one subtask must take to be the likely cause.
_SKEW = 3.0


def explain(
    subtasks: Sequence[SubtaskStats],
    duration: float,
    write_seconds: float,
    written: int,
    *,
    is_savepoint: bool = False,
) -> str:
    """Name the longest of its parts: sources, the way of the barrier, snapshots, the last write."""
    late_source = max(
        (s for s in subtasks if s.is_source), key=lambda s: s.timing.start_delay, default=None
    )
    source_seconds = late_source.timing.start_delay if late_source is not None else 0.0
    last = max(subtasks, key=_reached, default=None)
    way_seconds = max(0.0, _reached(last) - source_seconds) if last is not None else 0.0
    slowest = max(subtasks, key=_snapshot, default=None)
    snapshot_seconds = _snapshot(slowest) if slowest is not None else 0.0
    longest = max(source_seconds, way_seconds, snapshot_seconds, write_seconds)
    start = f"It took {duration:.1f} s, {longest:.1f} s of them "

    if longest == write_seconds or last is None or slowest is None:
        if is_savepoint:
            return (
                f"{start}to write {readable_size(sum(s.state_size for s in subtasks))} of state as one "
                "savepoint, after all subtasks were done: the size of the state, or the storage is slow."
            )
        return (
            f"{start}to write its metadata, after all subtasks were done: the storage is slow, or "
            "much state is kept inside the metadata."
        )
    if longest == snapshot_seconds:
        return start + _explain_snapshot(slowest, subtasks, written)
    if longest == way_seconds:
        return (
            f"{start}for the barrier to get from the sources to {last.title}: back pressure, the "
            "records before it had to be processed first."
        )
    assert late_source is not None
    return f"{start}until the source {late_source.title} had read its part: the source was late."


def _reached(subtask: SubtaskStats) -> float:
    """Seconds until all of its barriers had arrived."""
    return subtask.timing.start_delay + subtask.timing.alignment


def _snapshot(subtask: SubtaskStats) -> float:
    """Nobody waits for the asynchronous part: it is over when the snapshot begins."""
    return subtask.timing.sync


def _explain_snapshot(slowest: SubtaskStats, subtasks: Sequence[SubtaskStats], written: int) -> str:
    seconds = _snapshot(slowest)
    what = f"for the snapshot of {slowest.title}"
    peers = [_snapshot(s) for s in subtasks if s.vertex == slowest.vertex and s is not slowest]
    if peers and seconds > _SKEW * max(median(peers), 0.001):
        return (
            f"{what}, which wrote {readable_size(slowest.checkpointed_size)} of {readable_size(written)}; the others "
            f"took {median(peers):.1f} s: skew, its keys have more than their share."
        )
    rate = slowest.checkpointed_size / seconds
    if rate < _SLOW_STORAGE:
        return (
            f"{what}, which wrote {readable_size(slowest.checkpointed_size)}, {readable_size(int(rate))} in a "
            "second: the storage is slow."
        )
    return f"{what}, which wrote {readable_size(slowest.checkpointed_size)}: the size of the state."
