"""The order of checkpoints of different runs: their lineage decides, because clocks may be wrong."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from firesteel.checkpoint.metadata import Ancestor, CheckpointMetadata
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint

__all__ = ["lineage_after", "newest_first"]

# Older runs are compared by time. The limit keeps metadata small.
_MOST_ANCESTORS = 200


def lineage_after(restored: CheckpointMetadata) -> tuple[Ancestor, ...]:
    """The lineage of a run that was restored from a checkpoint of a different run."""
    ancestor = Ancestor(restored.job_id, restored.checkpoint_id)
    return (*restored.lineage, ancestor)[-_MOST_ANCESTORS:]


def newest_first(checkpoints: Iterable[CompletedCheckpoint]) -> list[CompletedCheckpoint]:
    """Sort checkpoints of several runs of a job.

    A run is newer than the runs of its lineage. Between runs that are not related their numbers
    decide, and their times only if the numbers are equal. The history of the newest checkpoint
    comes first, then the rest in the same way: for example checkpoints of a run that continued
    although a later run was restored from it.
    """
    remaining = list(checkpoints)
    ordered: list[CompletedCheckpoint] = []
    while remaining:
        newest = _newest(remaining)
        history = [
            one for one in remaining if one is newest or newest.metadata.is_after(one.metadata)
        ]
        ordered += sorted(history, key=partial(_place, newest.metadata), reverse=True)
        taken = {id(one) for one in history}
        remaining = [one for one in remaining if id(one) not in taken]
    return ordered


def _newest(checkpoints: list[CompletedCheckpoint]) -> CompletedCheckpoint:
    restored_from = {ancestor.job_id for one in checkpoints for ancestor in one.metadata.lineage}
    last_runs = [one for one in checkpoints if one.metadata.job_id not in restored_from]
    assert last_runs, "a run cannot be restored from a later one"
    latest = max(last_runs, key=lambda one: (one.metadata.run, one.metadata.completion_time))
    run = [one for one in last_runs if one.metadata.job_id == latest.metadata.job_id]
    return max(run, key=lambda one: one.checkpoint_id)


def _place(newest: CheckpointMetadata, one: CompletedCheckpoint) -> tuple[int, int]:
    """The place of a checkpoint in the history of the newest one."""
    runs = [*(ancestor.job_id for ancestor in newest.lineage), newest.job_id]
    return runs.index(one.metadata.job_id), one.checkpoint_id
