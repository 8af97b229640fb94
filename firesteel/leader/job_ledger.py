"""The entries of one job: its completed checkpoints, the counter of their ids, and its end."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.leader.documents import Documents, UnusableEntryError
from firesteel.leader.fence import Fence

_log = logging.getLogger("firesteel")


ResultRanges = tuple[tuple[int, int, int], ...]
"""Batches of collected records: the term that wrote them, and the numbers of first and last."""


@dataclass(frozen=True, slots=True)
class CheckpointPointer:
    """A completed checkpoint. ``results`` has the batches of collected records by node."""

    checkpoint_id: int
    location: str
    results: dict[int, ResultRanges]


class JobLedger:
    """Reads and writes the entries of a job, for the master of one term.

    A checkpoint is complete once its pointer is written. All writes raise LeadershipLostError after
    the term has ended, so a leader that was frozen completes no checkpoint.
    """

    def __init__(self, documents: Documents, fence: Fence, job_id: str) -> None:
        self._documents = documents
        self.fence = fence
        self.job_id = job_id
        self._next_id, self._runs = self._read_counters()

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
            self._write_counters(checkpoint_id + 1, self._runs)
        else:
            self.check()

    def begin_run(self) -> int:
        """Return the number of this run of the job: one more than that of the last master."""
        self._write_counters(self._next_id, self._runs + 1)
        return self._runs

    def _write_counters(self, next_id: int, runs: int) -> None:
        self._documents.put("counters", self.job_id, {"next": next_id, "runs": runs})
        self._next_id, self._runs = next_id, runs

    def complete(
        self,
        checkpoint_id: int,
        location: str,
        results: Mapping[int, ResultRanges] | None = None,
    ) -> None:
        """Write the pointer of a checkpoint whose files are written. This completes it."""
        body = {
            "checkpoint_id": checkpoint_id,
            "location": location,
            "results": {str(node): ranges for node, ranges in (results or {}).items()},
        }
        self._documents.put("checkpoints", self._name(checkpoint_id), body)

    def forget(self, location: str) -> None:
        """Remove the pointer of a checkpoint whose files are about to be deleted."""
        self._remove([one for one in self.pointers() if one.location == location])

    def discard(self, checkpoint_id: int) -> None:
        """Remove the pointer of a checkpoint that is given up, if it has been written."""
        self._documents.delete("checkpoints", self._name(checkpoint_id))
        self.check()

    def keep_only(self, locations: Collection[str]) -> None:
        """Remove the pointers of all other checkpoints."""
        self._remove([one for one in self.pointers() if one.location not in locations])

    def _remove(self, pointers: Sequence[CheckpointPointer]) -> None:
        for pointer in pointers:
            self._documents.delete("checkpoints", self._name(pointer.checkpoint_id))
        if not pointers:
            self.check()

    def pointers(self) -> list[CheckpointPointer]:
        """Return the completed checkpoints, the newest first."""
        found = []
        for name, body in self._documents.all("checkpoints", f"{self.job_id}@").items():
            try:
                found.append(
                    CheckpointPointer(
                        int(body["checkpoint_id"]),
                        str(body["location"]),
                        {
                            int(node): tuple((int(a), int(b), int(c)) for a, b, c in ranges)
                            for node, ranges in body["results"].items()
                        },
                    )
                )
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                _log.error("The entry checkpoints/%s is damaged: %r. It is skipped.", name, error)
        return sorted(found, key=lambda one: one.checkpoint_id, reverse=True)

    def has_pointers(self) -> bool:
        """Return True if a checkpoint was completed, even if its pointer is unusable now."""
        names = self._documents.store.names("checkpoints")
        return any(name.startswith(f"{self.job_id}@") for name in names)

    def _name(self, checkpoint_id: int) -> str:
        return f"{self.job_id}@{checkpoint_id:010d}"

    def _read_counters(self) -> tuple[int, int]:
        """Return the counters. If they are unusable, take numbers beyond all that were used."""
        try:
            body = self._documents.get("counters", self.job_id)
            return (1, 0) if body is None else (int(body["next"]), int(body["runs"]))
        except (UnusableEntryError, KeyError, ValueError, TypeError) as error:
            _log.error("%s", error)
        pointers = self.pointers()
        # Ids that were begun but not completed are few, and so are runs.
        newest = pointers[0].checkpoint_id if pointers else 0
        return newest + 1000, self.term * 1000

    # The end

    def end(self, status: str, error: dict[str, Any] | None = None) -> None:
        """Note that the job has ended for good, before its checkpoints are deleted."""
        self._documents.put("ended", self.job_id, {"status": status, "error": error})

    def ended(self) -> dict[str, Any] | None:
        """Return the status and the error of a job that has ended, else None."""
        return self._documents.get("ended", self.job_id)

    def remove(self) -> None:
        """Remove the pointers and the counter of a job that has ended."""
        self._remove(self.pointers())
        self._documents.delete("counters", self.job_id)
