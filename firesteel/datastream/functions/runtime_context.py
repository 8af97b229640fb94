"""What a function may ask about the place where it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from firesteel.metrics import MetricGroup


class KeyedStateStore(ABC):
    """Access to state that belongs to the key of the current record."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]: ...

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]: ...

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]: ...

    @abstractmethod
    def get_reducing_state(
        self, state_descriptor: ReducingStateDescriptor
    ) -> ReducingState[Any]: ...

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]: ...


class RuntimeContext(KeyedStateStore):
    """Handed to ``Function.open``: the subtask, its metrics, and on a keyed stream its state."""

    @abstractmethod
    def get_task_name(self) -> str:
        """The name of the operator."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """The operator's max parallelism, which is its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """From 0 to parallelism - 1."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """0 at first, one more after every restart of the job."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """The name with the subtask counted from 1, for example ``Map (3/4)``."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter of the execution config, or ``default_value``."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """The operator's metric group. What is registered here reaches the JobClient."""
