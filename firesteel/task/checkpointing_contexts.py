"""What a CheckpointedFunction is handed when it loads and when it saves."""

from __future__ import annotations

from firesteel.datastream.functions import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedStateStore,
)
from firesteel.datastream.state import OperatorStateStore
from firesteel.task.runtime_context import TaskRuntimeContext


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
        """On a stream without a key, asking it for a state says so."""
        return self._keyed_state


class SnapshotContext(FunctionSnapshotContext):
    def __init__(self, checkpoint_id: int, timestamp: int) -> None:
        self._checkpoint_id = checkpoint_id
        self._timestamp = timestamp

    def get_checkpoint_id(self) -> int:
        return self._checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        return self._timestamp
