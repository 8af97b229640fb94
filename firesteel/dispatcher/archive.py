"""Jobs that have ended, as JSON documents: in a directory, and as handles that answer from them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from firesteel.checkpoint.storage.storage import StorageError, open_storage
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.master.job_description import FailureRecord, JobDescription
from firesteel.protocol.error_json import decode_error, encode_error

_log = logging.getLogger("firesteel")

_VERSION = 1
_FILE = re.compile(r"([0-9a-f]{32})\.json")


def archive_document(job: JobHandle) -> dict[str, Any]:
    """Return everything that is known about a job that has ended."""
    result = job.result()
    error = result.exception()
    checkpoints = job.checkpoints()
    return {
        "version": _VERSION,
        "job_id": str(job.job_id),
        "name": job.name,
        "status": job.status().name,
        "error": None if error is None else encode_error(error),
        "runtime": 0 if error is not None else result.result().get_net_runtime(),
        "timestamps": job.timestamps(),
        "description": asdict(job.description()),
        "configuration": job.configuration(),
        "failures": [asdict(failure) for failure in job.failures()],
        "restarts": job.restarts(),
        "overview": job.overview(),
        "accumulators": job.accumulators(),
        "metrics": job.metrics(),
        "checkpoints": checkpoints,
        "checkpoint_details": {
            str(one["id"]): job.checkpoint_details(one["id"])
            for one in checkpoints.get("history", ())
        },
    }


class ArchivedJob:
    """A job that has ended, with the answers of its archive. It cannot be changed any more."""

    def __init__(self, document: dict[str, Any]) -> None:
        if document.get("version") != _VERSION:
            raise FiresteelError(
                f"the archive of a job has version {document.get('version')!r}, not {_VERSION}"
            )
        self._document = document
        self.job_id = JobID(document["job_id"])
        self._description = JobDescription.from_json(document["description"])
        self._result: Future[JobExecutionResult] = Future()
        if document["error"] is None:
            self._result.set_result(
                JobExecutionResult(
                    self.job_id, document["runtime"], document["accumulators"], self.name
                )
            )
        else:
            self._result.set_exception(decode_error(document["error"]))

    @property
    def name(self) -> str:
        return str(self._document["name"])

    def status(self) -> JobStatus:
        return JobStatus[self._document["status"]]

    def timestamps(self) -> dict[str, int]:
        return dict(self._document["timestamps"])

    def description(self) -> JobDescription:
        return self._description

    def configuration(self) -> dict[str, str]:
        return dict(self._document["configuration"])

    def failures(self) -> list[FailureRecord]:
        return [FailureRecord(**failure) for failure in self._document["failures"]]

    def restarts(self) -> int:
        return int(self._document["restarts"])

    def overview(self) -> dict[str, Any]:
        return dict(self._document["overview"])

    def accumulators(self) -> dict[str, Any]:
        return dict(self._document["accumulators"])

    def metrics(self) -> dict[str, Any]:
        return dict(self._document["metrics"])

    def checkpoints(self) -> dict[str, Any]:
        return dict(self._document["checkpoints"])

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        details: dict[str, Any] | None = self._document["checkpoint_details"].get(
            str(checkpoint_id)
        )
        return details

    def cancel(self) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def savepoint(
        self, directory: str | None, stop: str | None, native: bool = False
    ) -> Future[str]:
        return _not_running()

    def checkpoint(self) -> Future[str]:
        return _not_running()

    def plan_rescale(self, parallelism: int | Mapping[str, int]) -> JobDescription:
        raise JobExecutionError("the job is not running")

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[JobDescription]:
        return _not_running()

    def ask_slot(
        self, level: int, slot: int, what: str, arguments: Mapping[str, Any]
    ) -> Future[Any]:
        return _not_running()

    def result(self) -> Future[JobExecutionResult]:
        return self._result


def _not_running() -> Future[Any]:
    answer: Future[Any] = Future()
    answer.set_exception(JobExecutionError("the job is not running"))
    return answer


class Archive:
    """A directory with a file per job, on a disk or in an object store."""

    def __init__(self, location: str, options: FileSystemOptions | None = None) -> None:
        self._storage = open_storage(location, options)

    def write(self, job: JobHandle) -> None:
        """Write the file of a job. A failure is logged: it must not disturb a session."""
        try:
            document = json.dumps(archive_document(job)).encode()
            self._storage.write(f"{job.job_id}.json", document)
        except (FiresteelError, OSError, TypeError, ValueError) as error:
            _log.warning("job %s could not be archived: %s", job.job_id, error)

    def job_ids(self) -> list[str]:
        """Return the ids of all jobs, the newest first."""
        try:
            files = self._storage.list_files()
        except StorageError as error:
            if error.missing:
                return []
            raise
        found = [
            (file.modified, match[1]) for file in files if (match := _FILE.fullmatch(file.path))
        ]
        return [job_id for _, job_id in sorted(found, reverse=True)]

    def read(self, job_id: str) -> ArchivedJob | None:
        """Read a job, or return None if its file is missing or damaged."""
        try:
            return ArchivedJob(json.loads(self._storage.read(f"{job_id}.json")))
        except (FiresteelError, OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("the archive of job %s cannot be read: %s", job_id, error)
            return None

    def newest(self, count: int) -> Iterator[ArchivedJob]:
        """Yield the newest jobs, the oldest of them first."""
        for job_id in reversed(self.job_ids()[:count]):
            job = self.read(job_id)
            if job is not None:
                yield job
