"""JobHandle: everything that REST and the command line read from a job or ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.errors import FiresteelError
from firesteel.master.job_description import FailureRecord, JobDescription


class NoAnswerError(FiresteelError, RuntimeError):
    """The process of a job master or a slot does not answer. It hangs, or has too much to do."""


class JobHandle(Protocol):
    """A job of the dispatcher, in this process or in a process of its own.

    All answers are plain data: text, numbers, lists, dictionaries with text as keys, and the data
    classes of ``master.job_description``. So they travel between processes as JSON, and no module of
    the user's program is needed to read them.
    """

    @property
    def job_id(self) -> JobID: ...

    @property
    def name(self) -> str: ...

    def status(self) -> JobStatus: ...

    def timestamps(self) -> dict[str, int]:
        """Return the time of the last change to each status by name, in epoch milliseconds."""

    def description(self) -> JobDescription:
        """Return the job graph."""

    def configuration(self) -> dict[str, str]:
        """Return the settings of the job as text, without secrets."""

    def failures(self) -> list[FailureRecord]:
        """Return the failures of its attempts, the newest first."""

    def restarts(self) -> int:
        """Return the number of restarts after a failure."""

    def overview(self) -> dict[str, Any]:
        """Return the work and the place of every subtask."""

    def ask_slot(
        self, level: int, slot: int, what: str, arguments: Mapping[str, Any]
    ) -> Future[Any]:
        """Ask the process of a slot for "stacks", "threads" or its "log". The answer is JSON."""

    def accumulators(self) -> dict[str, Any]: ...

    def metrics(self) -> dict[str, Any]: ...

    def checkpoints(self) -> dict[str, Any]: ...

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None: ...

    def cancel(self) -> Future[None]:
        """Cancel the job. The future ends with the job."""

    def savepoint(
        self, directory: str | None, stop: str | None, native: bool = False
    ) -> Future[str]:
        """Take a savepoint below ``directory``; with ``stop`` the job ends with it.

        ``stop`` is "drain", "suspend" or None. ``native`` selects the format of the state backend.
        The future has the path of the savepoint.
        """

    def checkpoint(self) -> Future[str]:
        """Take a checkpoint now. The future has its path."""

    def plan_rescale(self, parallelism: int | Mapping[str, int]) -> JobDescription:
        """Return the job graph after a change of parallelism. Raises InvalidProgramError."""

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[JobDescription]:
        """Change the parallelism: of all vertices that can have it, or of vertices by id.

        The job restarts from a checkpoint. The future has the new job graph.
        """

    def result(self) -> Future[Any]:
        """Return a future that ends with the job, with its error if it failed."""
