"""The completed checkpoints of a job, and the files that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.decisions import DeleteCheckpoint
from firesteel.common.job_status import JobStatus
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention


class SharedStateRegistry:
    """Files and their holders: the running job, pending checkpoints and completed ones.

    The call that releases the last hold on a file returns the file, for deletion.
    """

    def __init__(self) -> None:
        self._held: dict[Hashable, frozenset[str]] = {}
        self._counts: Counter[str] = Counter()

    def hold(self, holder: Hashable, files: Iterable[str]) -> frozenset[str]:
        """Replace the files of ``holder`` by these. Returns the files to delete."""
        new = frozenset(files)
        old = self._held.get(holder, frozenset())
        self._held[holder] = new
        self._counts.update(new - old)
        return self._drop(old - new)

    def release(self, holder: Hashable) -> frozenset[str]:
        """Release all files of ``holder``. Returns the files to delete."""
        return self._drop(self._held.pop(holder, frozenset()))

    def _drop(self, files: frozenset[str]) -> frozenset[str]:
        unheld = set()
        for file in files:
            self._counts[file] -= 1
            if self._counts[file] == 0:
                del self._counts[file]
                unheld.add(file)
        return frozenset(unheld)

    def orphans(self, existing: Iterable[str]) -> frozenset[str]:
        """The existing files without a holder, which discarded attempts have written.

        Call this only while no task is running: the ack of a task reports its new files.
        """
        return frozenset(file for file in existing if file not in self._counts)


# A job is suspended when its program is ended, for example by a signal. It may be started again.
_KEPT_AFTER = {
    ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS: frozenset({JobStatus.SUSPENDED}),
    ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION: frozenset(
        {JobStatus.FAILED, JobStatus.SUSPENDED}
    ),
    ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: frozenset(
        {JobStatus.FAILED, JobStatus.SUSPENDED, JobStatus.CANCELED}
    ),
}


class CompletedCheckpointStore:
    """Retained checkpoints, newest last. Files without a holder are deleted."""

    def __init__(self, max_retained: int, files: SharedStateRegistry) -> None:
        self._max_retained = max_retained
        self._files = files
        self._checkpoints: list[CompletedCheckpoint] = []

    @property
    def latest(self) -> CompletedCheckpoint | None:
        return self._checkpoints[-1] if self._checkpoints else None

    @property
    def checkpoints(self) -> tuple[CompletedCheckpoint, ...]:
        return tuple(self._checkpoints)

    def add(self, checkpoint: CompletedCheckpoint) -> list[DeleteCheckpoint]:
        """Add the newest checkpoint. Returns the deletions of the checkpoints that it subsumes."""
        latest = self.latest
        if latest is not None and checkpoint.checkpoint_id <= latest.checkpoint_id:
            raise ValueError(
                f"checkpoint {checkpoint.checkpoint_id} is not newer than {latest.checkpoint_id}"
            )
        self._checkpoints.append(checkpoint)
        self._files.hold(_holder(checkpoint), checkpoint.files)
        subsumed = self._checkpoints[: -self._max_retained]
        del self._checkpoints[: -self._max_retained]
        # The files of a checkpoint that the job does not own stay held, so that they are not deleted.
        return [self._drop(old) for old in subsumed if old.is_owned]

    def go_back_to(self, checkpoint: CompletedCheckpoint) -> list[DeleteCheckpoint]:
        """Make a restored checkpoint the newest one. Newer checkpoints are unusable, and deleted."""
        is_known = checkpoint in self._checkpoints
        position = self._checkpoints.index(checkpoint) + 1 if is_known else 0
        newer = self._checkpoints[position:]
        del self._checkpoints[position:]
        deletions = [self._drop(unusable) for unusable in newer if unusable.is_owned]
        return deletions if is_known else [*deletions, *self.add(checkpoint)]

    def return_only_to(self, savepoint: CompletedCheckpoint) -> list[DeleteCheckpoint]:
        """Drop all other checkpoints: the job commits the savepoint, and reads nothing after it."""
        dropped, self._checkpoints = self._checkpoints, [savepoint]
        self._files.hold(_holder(savepoint), savepoint.files)
        return [self._drop(old) for old in dropped if old.is_owned]

    def end(
        self, status: JobStatus, retention: ExternalizedCheckpointRetention
    ) -> list[DeleteCheckpoint]:
        """The deletions at the end of the job. Retained checkpoints stay for the user."""
        if status in _KEPT_AFTER[retention]:
            return []
        ended, self._checkpoints = self._checkpoints, []
        return [self._drop(old) for old in ended if old.is_owned]

    def _drop(self, checkpoint: CompletedCheckpoint) -> DeleteCheckpoint:
        unheld = self._files.release(_holder(checkpoint))
        return DeleteCheckpoint(checkpoint.location, tuple(sorted(unheld)))


def _holder(checkpoint: CompletedCheckpoint) -> tuple[str, int]:
    return ("completed", checkpoint.checkpoint_id)
