"""JobClient, the handle of a submitted job."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Literal, Protocol

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.common.savepoint_format_type import SavepointFormatType
from firesteel.stability import public_evolving

__all__ = ["JobClient", "JobControl"]


class JobControl(Protocol):
    """Operations on a job that its program needs, in this process or in a session."""

    @property
    def job_id(self) -> JobID: ...

    def status(self) -> JobStatus: ...

    def cancel(self) -> Future[None]: ...

    def cancel_and_wait(self) -> None:
        """Cancel the job. Ctrl-C ends it by force."""

    def interrupt(self) -> None:
        """Handle Ctrl-C of a program that waits for the job."""

    def result(self) -> Future[JobExecutionResult]: ...

    def accumulators(self) -> dict[str, Any]: ...

    def metrics(self) -> dict[str, Any]: ...

    def overview(self) -> dict[str, Any]: ...

    def savepoint(
        self,
        directory: str | None,
        stop: Literal["drain", "suspend"] | None,
        native: bool = False,
    ) -> Future[str]: ...

    def checkpoint(self) -> Future[str]: ...

    def checkpoints(self) -> dict[str, Any]: ...

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None: ...


class JobClient:
    """Observes and controls a job. ``env.execute_async()`` returns one.

    >>> sink = env.from_collection([1, 2, 3]).map(lambda number: number * 10).print()
    >>> client = env.execute_async("multiply")
    10
    20
    30
    >>> client.get_job_status().result()
    <JobStatus.FINISHED: 6>
    """

    def __init__(self, control: JobControl) -> None:
        self._control = control

    def get_job_id(self) -> JobID:
        """Return the id of the job.

        >>> sink = env.from_collection([1]).print()
        >>> client = env.execute_async()
        1
        >>> len(str(client.get_job_id()))
        32
        """
        return self._control.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return the present status of the job.

        >>> sink = env.from_collection([1]).print()
        >>> client = env.execute_async()
        1
        >>> client.get_job_status().result().name
        'FINISHED'
        """
        return CompletableFuture.completed(self._control.status())

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job.

        Returns:
            A future that completes when the job has ended.

        >>> from firesteel.testing import ScriptedSource
        >>> numbers = ScriptedSource([1, 2], bounded=False)
        >>> sink = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
        >>> client = env.execute_async()
        1
        2
        >>> client.cancel().result()
        >>> client.get_job_status().result().name
        'CANCELED'
        """
        return CompletableFuture(self._control.cancel())

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return a future with the result of the job.

        Returns:
            A future that completes when the job ends. Its ``result()`` raises the error of a failed
            job.

        >>> sink = env.from_collection([1]).print()
        >>> client = env.execute_async()
        1
        >>> result = client.get_job_execution_result().result()
        >>> result.get_job_id() == client.get_job_id()
        True
        """
        return CompletableFuture(self._control.result())

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return the present values of the user's counters.

        Returns:
            A future with the values by name, where names are those of ``get_metrics``.

        >>> class Count(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.records = runtime_context.get_metrics_group().counter("records")
        ...     def map(self, value):
        ...         self.records.inc()
        ...         return value
        >>> sink = env.from_collection(["a", "b"]).map(Count()).name("count").print()
        >>> client = env.execute_async()
        a
        b
        >>> client.get_accumulators().result()
        {'count.records': 2}
        """
        return CompletableFuture.completed(self._control.accumulators())

    @public_evolving
    def get_metrics(self) -> dict[str, Any]:
        """Return the present values of the metrics of the user's functions. Not in PyFlink.

        Returns:
            Values by ``operator.metric``. If several operators have the same name, the second is
            ``name #2``, and so on.

        >>> class Measure(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.lengths = runtime_context.get_metrics_group().distribution("lengths")
        ...     def map(self, word):
        ...         self.lengths.update(len(word))
        ...         return word
        >>> sink = env.from_collection(["be", "not"]).map(Measure()).name("measure").print()
        >>> client = env.execute_async()
        be
        not
        >>> lengths = client.get_metrics()["measure.lengths"]
        >>> lengths["count"], lengths["max"]
        (2, 3)
        """
        return self._control.metrics()

    @public_evolving
    def get_overview(self) -> dict[str, Any]:
        """Return the number of epochs, and statistics per subtask. Not in PyFlink.

        Returns:
            A dict that can be written as JSON. ``vertices`` has the records, bytes and busy time of
            each subtask.

        >>> sink = env.from_collection([1, 2]).print()
        >>> client = env.execute_async()
        1
        2
        >>> overview = client.get_overview()
        >>> overview["status"], overview["epochs"] > 0, len(overview["vertices"])
        ('FINISHED', True, 1)
        """
        return self._control.overview()

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType = SavepointFormatType.CANONICAL,
    ) -> CompletableFuture[str]:
        """Take a savepoint and end the job.

        Args:
            advance_to_end_of_event_time: True drains the job: all windows and timers fire first,
                and the job is complete. False keeps them in the savepoint, so that a new job can
                continue.
            savepoint_directory: The parent directory of the savepoint. None takes the setting
                ``execution.checkpointing.savepoint-dir``.
            format_type: The format of the savepoint. Not in PyFlink.

        Returns:
            A future with the path of the savepoint, which is done when the job has ended. If the job
            fails after the savepoint is complete, the error names the savepoint.

        >>> from firesteel.testing import ScriptedSource
        >>> numbers = ScriptedSource([1, 2], bounded=False)
        >>> sink = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
        >>> client = env.execute_async()
        1
        2
        >>> client.stop_with_savepoint(False, "savepoints").result()
        '.../savepoints/savepoint-...'
        >>> client.get_job_status().result().name
        'FINISHED'
        """
        stop: Literal["drain", "suspend"] = "drain" if advance_to_end_of_event_time else "suspend"
        native = format_type is SavepointFormatType.NATIVE
        return CompletableFuture(self._control.savepoint(savepoint_directory, stop, native))

    def trigger_savepoint(
        self,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType = SavepointFormatType.CANONICAL,
    ) -> CompletableFuture[str]:
        """Take a savepoint while the job continues.

        Args:
            savepoint_directory: The parent directory of the savepoint. None takes the setting
                ``execution.checkpointing.savepoint-dir``.
            format_type: The format of the savepoint. Not in PyFlink.

        Returns:
            A future with the path of the savepoint.

        >>> from firesteel.testing import ScriptedSource
        >>> numbers = ScriptedSource([1, 2], bounded=False)
        >>> sink = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
        >>> client = env.execute_async()
        1
        2
        >>> client.trigger_savepoint("savepoints").result()
        '.../savepoints/savepoint-...'
        >>> client.get_job_status().result().name
        'RUNNING'
        """
        native = format_type is SavepointFormatType.NATIVE
        return CompletableFuture(self._control.savepoint(savepoint_directory, None, native))

    @public_evolving
    def trigger_checkpoint(self) -> CompletableFuture[str]:
        """Take a checkpoint now, in addition to the periodic ones. Not in PyFlink.

        Returns:
            A future with the path of the checkpoint, or with a name such as "chk-1" if the job has
            no checkpoint directory.

        >>> from firesteel.testing import ScriptedSource
        >>> numbers = ScriptedSource([1, 2], bounded=False)
        >>> sink = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
        >>> checkpoints = env.get_checkpoint_config().set_checkpoint_storage_dir("checkpoints")
        >>> client = env.execute_async()
        1
        2
        >>> client.trigger_checkpoint().result()
        '.../chk-1'
        """
        return CompletableFuture(self._control.checkpoint())

    @public_evolving
    def get_checkpoints(self) -> dict[str, Any]:
        """Return the history of checkpoints, as Flink's REST API formats it. Not in PyFlink.

        >>> from firesteel.testing import ScriptedSource
        >>> numbers = ScriptedSource([1, 2], bounded=False)
        >>> sink = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
        >>> client = env.execute_async()
        1
        2
        >>> path = client.trigger_checkpoint().result()
        >>> client.get_checkpoints()["counts"]["completed"]
        1
        """
        return self._control.checkpoints()

    @public_evolving
    def get_checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        """Return the durations and sizes of a checkpoint per subtask. Not in PyFlink.

        Args:
            checkpoint_id: The number of the checkpoint.

        Returns:
            The details, as Flink's REST API formats them, or None if the history no longer has the
            checkpoint.

        >>> from firesteel.testing import ScriptedSource
        >>> numbers = ScriptedSource([1, 2], bounded=False)
        >>> sink = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
        >>> client = env.execute_async()
        1
        2
        >>> path = client.trigger_checkpoint().result()
        >>> client.get_checkpoint_details(1)["status"]
        'COMPLETED'
        """
        return self._control.checkpoint_details(checkpoint_id)
