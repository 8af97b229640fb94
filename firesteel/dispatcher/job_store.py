"""The jobs of a session for its next leader: signed entries, and the files that clients have sent."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.checkpoint.storage.storage import Storage, StorageError
from firesteel.leader.documents import UnusableEntryError
from firesteel.leader.services import HighAvailability
from firesteel.leader.settings import LeaderSettings, settings_to_json
from firesteel.protocol.submission import Manifest
from firesteel.version import __version__

_log = logging.getLogger("firesteel")

_SUBMISSIONS, _RESULTS, ARCHIVE, CHECKPOINTS = "submissions", "results", "archive", "checkpoints"


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job that an earlier leader has taken. ``submission`` is the file of its client."""

    job_id: str
    submission: bytes


class JobStore:
    """The jobs of a session, for the leader of one term."""

    def __init__(self, settings: LeaderSettings, services: HighAvailability, term: int) -> None:
        self._settings = settings
        self._services = services
        self.term = term
        self._documents = settings.documents(services, term)
        self._storage = services.storage

    def save(self, manifest: Manifest, submission: Path) -> None:
        """Keep a submission. Once this returns, the job outlives this master.

        Raises LeadershipLostError if a different master leads.
        """
        payload = submission.read_bytes()
        self._storage.write(self._file(manifest.job_id), payload)
        self._documents.put(
            "jobs",
            manifest.job_id,
            {
                "name": manifest.name,
                "firesteel": manifest.firesteel,
                "python": manifest.python,
                "sha256": hashlib.sha256(payload).hexdigest(),
            },
        )

    def unfinished(self) -> Iterator[StoredJob]:
        """Yield the jobs to continue. Unusable ones are named and skipped."""
        for job_id in self._documents.all("jobs"):
            job = self.unfinished_job(job_id)
            if job is not None:
                yield job

    def unfinished_job(self, job_id: str) -> StoredJob | None:
        """Return a job to continue. Returns None for one that has ended, or is unusable.

        Raises StorageError if the storage does not answer.
        """
        try:
            body = self._documents.get("jobs", job_id)
            if body is None:
                return None
            if self.has_ended(job_id):
                self.remove(job_id)
                return None
            return self._read(job_id, body)
        except (UnusableEntryError, StorageError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, StorageError) and not error.missing:
                # The storage does not answer, which says nothing about the job.
                raise
            _log.error("The job %s is skipped: %s", job_id, error)
            return None

    def _read(self, job_id: str, body: dict[str, Any]) -> StoredJob | None:
        if body["firesteel"] != __version__:
            _log.error(
                "The job %s (%s) was submitted to Firesteel %s, but this is %s. It is skipped. "
                "Start it again from its checkpoints.",
                job_id,
                body["name"],
                body["firesteel"],
                __version__,
            )
            return None
        payload = self._storage.read(self._file(job_id))
        if not hmac.compare_digest(hashlib.sha256(payload).hexdigest(), str(body["sha256"])):
            _log.error(
                "The file %s is not the one that this group wrote. The job is skipped.",
                self._storage.location_of(self._file(job_id)),
            )
            return None
        return StoredJob(job_id, payload)

    def has_ended(self, job_id: str) -> bool:
        """Return True if the master of a job has noted its end."""
        return self._documents.get("ended", job_id) is not None

    def note_end(self, job_id: str, status: str) -> None:
        """Note the end of a job whose master could not do so."""
        self._settings.ledger(self._services, self.term, job_id).end(status)

    def remove(self, job_id: str) -> None:
        """Forget a job that has ended, except for the note of its end."""
        self._documents.delete("jobs", job_id)
        self._settings.ledger(self._services, self.term, job_id).remove()
        self._storage.delete(self._file(job_id))

    def forget(self, job_id: str) -> None:
        """Remove everything about a job that is no longer visible."""
        self._documents.delete("ended", job_id)
        self._storage.delete_directory(f"{_RESULTS}/{job_id}")

    def results(self, job_id: str, node: int) -> Storage:
        return results_storage(self._services, job_id, node)

    def for_process(self) -> dict[str, Any]:
        """Return the settings for the process of a job master, as JSON."""
        return settings_to_json(self._settings, self.term)

    @staticmethod
    def _file(job_id: str) -> str:
        return f"{_SUBMISSIONS}/{job_id}.zip"


def results_storage(services: HighAvailability, job_id: str, node: int) -> Storage:
    """Return the directory of a collected stream."""
    return services.storage.at(f"{_RESULTS}/{job_id}/{node}")
