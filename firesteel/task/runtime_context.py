"""The contexts that user functions get when they are opened, initialized and saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.distributed_cache import DistributedCache
from firesteel.datastream.functions import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedStateStore,
    RuntimeContext,
)
from firesteel.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    OperatorStateStore,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from firesteel.errors import InvalidProgramError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.graph.stream_graph import StreamNode
from firesteel.leader.fence import Fence
from firesteel.metrics import MetricGroup, MetricRegistry
from firesteel.protocol.program import attempt_in_run


@dataclass(frozen=True, slots=True)
class SubtaskInfo:
    """The identity of a subtask, and the settings of its job."""

    job_id: str
    index: int
    attempt: int = 0
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    # A batch job: one epoch with everything in it.
    batch: bool = False
    # The paths of cached files, by name.
    cached_files: Mapping[str, str] = field(default_factory=dict)
    # Sinks commit when a checkpoint completes, not after every epoch.
    checkpointed: bool = False
    # Access to savepoints in an object store.
    file_systems: FileSystemOptions | None = None
    # Milliseconds. With 0, periodic watermark generators are never called.
    auto_watermark_interval: int = 200
    # The fence of the master's term, if there are several masters.
    fence: Fence | None = None


class TaskRuntimeContext(RuntimeContext):
    """Gives a function its state and its environment.

    keyed_state: the states of the current key, or None on a stream without a key.
    """

    def __init__(
        self,
        node: StreamNode,
        subtask: SubtaskInfo,
        metrics: MetricRegistry,
        keyed_state: KeyedStateStore | None = None,
    ) -> None:
        self._node = node
        self._subtask = subtask
        self._metrics = metrics
        self._keyed_state = keyed_state

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._store(state_descriptor).get_state(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._store(state_descriptor).get_list_state(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._store(state_descriptor).get_map_state(state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return self._store(state_descriptor).get_reducing_state(state_descriptor)

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        return self._store(state_descriptor).get_aggregating_state(state_descriptor)

    def _store(self, descriptor: StateDescriptor) -> KeyedStateStore:
        if self._keyed_state is None:
            raise InvalidProgramError(
                f"Keyed state can only be used on a keyed stream: '{self._node.name}' has no key, so "
                f"there is no state '{descriptor.name}' for it. Call key_by() before it, or keep "
                "operator state by deriving the function from CheckpointedFunction."
            )
        return self._keyed_state

    def get_task_name(self) -> str:
        return self._node.name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._node.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._node.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._subtask.index

    def get_attempt_number(self) -> int:
        return attempt_in_run(self._subtask.attempt)

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._node.name} ({self._subtask.index + 1}/{self._node.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._subtask.job_parameters.get(key, default_value)

    def get_distributed_cache(self) -> DistributedCache:
        return DistributedCache(self._subtask.cached_files)

    def get_metrics_group(self) -> MetricGroup:
        return self._metrics.group(self._node.name)


class InitializationContext(FunctionInitializationContext):
    def __init__(
        self,
        keyed_state: TaskRuntimeContext,
        operator_state: OperatorStateStore,
        *,
        restored: bool,
        checkpoint_id: int | None,
    ) -> None:
        self._keyed_state = keyed_state
        self._operator_state = operator_state
        self._restored = restored
        self._checkpoint_id = checkpoint_id

    def is_restored(self) -> bool:
        return self._restored

    def get_restored_checkpoint_id(self) -> int | None:
        return self._checkpoint_id

    def get_operator_state_store(self) -> OperatorStateStore:
        return self._operator_state

    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store. On a stream without a key, it refuses to give states."""
        return self._keyed_state


class SnapshotContext(FunctionSnapshotContext):
    def __init__(self, checkpoint_id: int, timestamp: int) -> None:
        self._checkpoint_id = checkpoint_id
        self._timestamp = timestamp

    def get_checkpoint_id(self) -> int:
        return self._checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        return self._timestamp
