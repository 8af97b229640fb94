"""JobExecutionResult, the outcome of a finished job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.job_id import JobID
from firesteel.errors import InvalidProgramError

__all__ = ["DetachedJobExecutionResult", "JobExecutionResult"]


class JobExecutionResult:
    """Run time and accumulators of a finished job, from ``env.execute()``.

    >>> class Count(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.records = runtime_context.get_metrics_group().counter("records")
    ...     def map(self, value):
    ...         self.records.inc()
    ...         return value
    >>> sink = env.from_collection(["a", "b"]).map(Count()).name("count").print()
    >>> result = env.execute()
    a
    b
    >>> result.get_accumulator_result("count.records")
    2
    >>> result.get_all_accumulator_results()
    {'count.records': 2}
    >>> print(result)
    Program execution finished
    Job with JobID ... has finished.
    Job Runtime: ... ms
    Accumulator Results:
    - count.records: 2
    """

    def __init__(
        self,
        job_id: JobID,
        net_runtime: int,
        accumulators: Mapping[str, Any] | None = None,
        job_name: str | None = None,
    ) -> None:
        """Create a result. Programs get one from ``env.execute()``.

        Args:
            job_id: The id of the job.
            net_runtime: The run time in milliseconds.
            accumulators: The user's counters by name.
            job_name: The name of the job.
        """
        self._job_id = job_id
        self._net_runtime = net_runtime
        self._accumulators = dict(accumulators or {})
        self._job_name = job_name

    def get_job_id(self) -> JobID:
        """Return the id of the job.

        >>> sink = env.from_collection([1]).print()
        >>> result = env.execute()
        1
        >>> result.get_job_id()
        JobID('...')
        """
        return self._job_id

    def get_net_runtime(self) -> int:
        """Return the milliseconds from the start of the job to its end.

        >>> sink = env.from_collection([1]).print()
        >>> result = env.execute()
        1
        >>> result.get_net_runtime() >= 0
        True
        """
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Return the value of an accumulator, or None.

        Args:
            accumulator_name: ``operator.counter``, as in ``JobClient.get_metrics``.
        """
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Return the values of all accumulators by name."""
        return dict(self._accumulators)

    def __str__(self) -> str:
        lines = [
            "Program execution finished",
            f"Job with JobID {self._job_id} has finished.",
            f"Job Runtime: {self._net_runtime} ms",
        ]
        if self._accumulators:
            lines.append("Accumulator Results:")
            lines += [f"- {name}: {value}" for name, value in self._accumulators.items()]
        return "\n".join(lines)


class DetachedJobExecutionResult(JobExecutionResult):
    """The result of ``env.execute()`` for a job that was only submitted. It has the id of the job.

    >>> from firesteel.common.job_execution_result import DetachedJobExecutionResult
    >>> result = DetachedJobExecutionResult(JobID("0" * 32))
    >>> result.get_net_runtime()
    Traceback (most recent call last):
    ...
    firesteel.errors.InvalidProgramError: Job was submitted in detached mode...
    """

    def __init__(self, job_id: JobID) -> None:
        super().__init__(job_id, 0)

    def get_net_runtime(self) -> int:
        raise _detached()

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        raise _detached()

    def get_all_accumulator_results(self) -> dict[str, Any]:
        raise _detached()

    def __str__(self) -> str:
        return f"Job with JobID {self.get_job_id()} was submitted in detached mode."


def _detached() -> InvalidProgramError:
    return InvalidProgramError(
        "Job was submitted in detached mode. Results of job execution, such as accumulators, runtime, "
        "etc. are not available."
    )
