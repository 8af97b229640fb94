"""The entries of one job: its completed checkpoints, the counter of their ids, and its end."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from firesteel.leader.documents import Documents, UnusableEntryError
from firesteel.leader.fence import Fence

_log = logging.getLogger("firesteel")


@dataclass(frozen=True, slots=True)
class CheckpointPointer:
    """A completed checkpoint. ``results`` has the last batch of collected records by node."""

    checkpoint_id: int
    location: str
    results: dict[int, int]


class JobLedger:
    """Reads and writes the entries of a job, for the master of one term.

    A checkpoint is complete once its pointer is written. All writes raise LeadershipLostError after
    the term has ended, so a leader that was frozen completes no checkpoint.
    """

    def __init__(self, documents: Documents, fence: Fence, job_id: str) -> None:
        self._documents = documents
        self.fence = fence
        self._job_id = job_id
        self._next_id = self._read_counter()

    @property
    def term(self) -> int:
        return self._documents.store.term

    def check(self) -> None:
        """Raise LeadershipLostError if the term has ended."""
        self._documents.store.check()

    # Checkpoints

    @property
    def next_checkpoint_id(self) -> int:
        """The first id that no master has begun to write."""
        return self._next_id

    def begin(self, checkpoint_id: int) -> None:
        """Reserve an id, before anything of the checkpoint is written.

        So no later leader writes to the same place, even if this one is frozen now.
        """
        if checkpoint_id >= self._next_id:
            self._documents.put("counters", self._job_id, {"next": checkpoint_id + 1})
            self._next_id = checkpoint_id + 1
        else:
            self.check()

    def complete(
        self, checkpoint_id: int, location: str, results: dict[int, int] | None = None
    ) -> None:
        """Write the pointer of a checkpoint whose files are written. This completes it."""
        body = {
            "checkpoint_id": checkpoint_id,
            "location": location,
            "results": {str(node): last for node, last in (results or {}).items()},
        }
        self._documents.put("checkpoints", self._name(checkpoint_id), body)

    def forget(self, location: str) -> None:
        """Remove the pointer of a checkpoint whose files are about to be deleted."""
        for pointer in self.pointers():
            if pointer.location == location:
                self._documents.delete("checkpoints", self._name(pointer.checkpoint_id))

    def pointers(self) -> list[CheckpointPointer]:
        """Return the completed checkpoints, the newest first."""
        found = []
        for name, body in self._documents.all("checkpoints", f"{self._job_id}@").items():
            try:
                found.append(
                    CheckpointPointer(
                        int(body["checkpoint_id"]),
                        str(body["location"]),
                        {int(node): int(last) for node, last in body["results"].items()},
                    )
                )
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                _log.error("The entry checkpoints/%s is damaged: %r. It is skipped.", name, error)
        return sorted(found, key=lambda one: one.checkpoint_id, reverse=True)

    def _name(self, checkpoint_id: int) -> str:
        return f"{self._job_id}@{checkpoint_id:010d}"

    def _read_counter(self) -> int:
        """Return the counter. If it is unusable, ids continue after those of the pointers."""
        try:
            body = self._documents.get("counters", self._job_id)
            return 1 if body is None else int(body["next"])
        except (UnusableEntryError, KeyError, ValueError, TypeError) as error:
            _log.error("%s", error)
        pointers = self.pointers()
        # Ids that were begun but not completed are few.
        return 1 if not pointers else pointers[0].checkpoint_id + 1000

    # The end

    def end(self, status: str, error: dict[str, Any] | None = None) -> None:
        """Note that the job has ended for good, before its checkpoints are deleted."""
        self._documents.put("ended", self._job_id, {"status": status, "error": error})

    def ended(self) -> dict[str, Any] | None:
        """Return the status and the error of a job that has ended, else None."""
        return self._documents.get("ended", self._job_id)

    def remove(self) -> None:
        """Remove the pointers and the counter of a job that has ended."""
        for pointer in self.pointers():
            self._documents.delete("checkpoints", self._name(pointer.checkpoint_id))
        self._documents.delete("counters", self._job_id)
