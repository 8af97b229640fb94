"""The RuntimeContext of an AsyncFunction."""

from __future__ import annotations

from typing import Any, NoReturn

from firesteel.common.distributed_cache import DistributedCache
from firesteel.datastream.functions import RuntimeContext
from firesteel.errors import InvalidProgramError
from firesteel.metrics import MetricGroup


class StatelessRuntimeContext(RuntimeContext):
    """Everything but state: a request belongs to no key once others run beside it."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context

    def get_task_name(self) -> str:
        return self._context.get_task_name()

    def get_number_of_parallel_subtasks(self) -> int:
        return self._context.get_number_of_parallel_subtasks()

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._context.get_max_number_of_parallel_subtasks()

    def get_index_of_this_subtask(self) -> int:
        return self._context.get_index_of_this_subtask()

    def get_attempt_number(self) -> int:
        return self._context.get_attempt_number()

    def get_task_name_with_subtasks(self) -> str:
        return self._context.get_task_name_with_subtasks()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._context.get_job_parameter(key, default_value)

    def get_distributed_cache(self) -> DistributedCache:
        return self._context.get_distributed_cache()

    def get_metrics_group(self) -> MetricGroup:
        return self._context.get_metrics_group()

    def get_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()

    def get_list_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()

    def get_map_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()

    def get_reducing_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()

    def get_aggregating_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()


def _no_state() -> NoReturn:
    raise InvalidProgramError(
        "an AsyncFunction has no state: its requests run side by side. Keep state in a process "
        "function before or behind it."
    )
