"""What a finished job leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.job_id import JobID

__all__ = ["JobExecutionResult"]


class JobExecutionResult:
    """Run time and accumulators of a job that ended."""

    def __init__(
        self,
        job_id: JobID,
        net_runtime: int,
        accumulators: Mapping[str, Any] | None = None,
        job_name: str | None = None,
    ) -> None:
        """``net_runtime`` is in milliseconds."""
        self._job_id = job_id
        self._net_runtime = net_runtime
        self._accumulators = dict(accumulators or {})
        self._job_name = job_name

    def get_job_id(self) -> JobID:
        return self._job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from the start of the job to its end."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of an accumulator, or None."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
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
