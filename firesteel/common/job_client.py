"""The handle of a submitted job."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus

__all__ = ["JobClient", "JobControl"]


class JobControl(Protocol):
    """What a running job offers to its client; the job master implements it."""

    @property
    def job_id(self) -> JobID: ...

    def status(self) -> JobStatus: ...

    def cancel(self) -> Future[None]: ...

    def cancel_and_wait(self) -> None: ...

    def result(self) -> Future[JobExecutionResult]: ...

    def accumulators(self) -> dict[str, Any]: ...

    def metrics(self) -> dict[str, Any]: ...

    def overview(self) -> dict[str, Any]: ...

    def savepoint(self, directory: str | None, stop: Any) -> Future[str]: ...

    def checkpoint(self) -> Future[str]: ...

    def checkpoints(self) -> dict[str, Any]: ...

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None: ...


class JobClient:
    """Watch and steer one job."""

    def __init__(self, control: JobControl) -> None:
        self._control = control

    def get_job_id(self) -> JobID:
        return self._control.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self._control.status())

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job; the future ends when the job has ended."""
        return CompletableFuture(self._control.cancel())

    def _cancel_and_wait(self) -> None:
        """Cancel the job because of Ctrl-C; a second one ends it by force."""
        self._control.cancel_and_wait()

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The future ends with the job, and raises what made it fail."""
        return CompletableFuture(self._control.result())

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The accumulators as of now: the counters, named as ``get_metrics`` does."""
        return CompletableFuture.completed(self._control.accumulators())

    def get_metrics(self) -> dict[str, Any]:
        """The metrics of the user's functions as of now, as ``operator.metric`` (beyond PyFlink).

        Of several operators with the same name, the second is ``name #2``, and so on.
        """
        return self._control.metrics()

    def get_overview(self) -> dict[str, Any]:
        """Epochs so far, and records, bytes and busy time of every subtask (beyond PyFlink)."""
        return self._control.overview()

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Take a savepoint and end the job with it; the future has the savepoint's directory.

        With ``advance_to_end_of_event_time`` everything that is pending comes out first, and the
        job is over; without, it can be resumed as if it had never stopped.
        """
        from firesteel.checkpoint.rules.requests import StopMode

        mode = StopMode.DRAIN if advance_to_end_of_event_time else StopMode.SUSPEND
        return CompletableFuture(self._control.savepoint(savepoint_directory, mode))

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Take a savepoint while the job goes on; the future has its directory."""
        return CompletableFuture(self._control.savepoint(savepoint_directory, None))

    def trigger_checkpoint(self) -> CompletableFuture[str]:
        """Take a checkpoint now, besides the regular ones (beyond PyFlink)."""
        return CompletableFuture(self._control.checkpoint())

    def get_checkpoints(self) -> dict[str, Any]:
        """The history of checkpoints, in the words of Flink's REST API (beyond PyFlink)."""
        return self._control.checkpoints()

    def get_checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        """How one checkpoint went, subtask by subtask; None if the history has it no more (beyond PyFlink)."""
        return self._control.checkpoint_details(checkpoint_id)
