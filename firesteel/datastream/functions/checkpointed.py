"""Functions with operator state: state of a subtask, not of a key. Not in PyFlink."""

from __future__ import annotations

from abc import ABC, abstractmethod

from firesteel.datastream.functions.runtime_context import KeyedStateStore
from firesteel.datastream.state import OperatorStateStore


class FunctionSnapshotContext(ABC):
    """The checkpoint that a snapshot is taken for."""

    @abstractmethod
    def get_checkpoint_id(self) -> int: ...

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the checkpoint was triggered, in milliseconds since 1970."""


class FunctionInitializationContext(ABC):
    """Where a function gets its states from."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the function goes on from a snapshot; otherwise its states are empty."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The checkpoint that the job was restored from. None: it starts anew."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore: ...

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """On a keyed stream only."""


class CheckpointedFunction(ABC):
    """Mixed into any function or SinkFunction, it is told when to load and when to save.

    >>> from firesteel.common import Types
    >>> from firesteel.datastream.functions import MapFunction
    >>> from firesteel.datastream.state import ListStateDescriptor
    >>> class Numbering(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         store = context.get_operator_state_store()
    ...         self.saved = store.get_list_state(ListStateDescriptor("next", Types.LONG()))
    ...         self.next = sum(self.saved.get())
    ...     def snapshot_state(self, context):
    ...         self.saved.update([self.next])
    ...     def map(self, value):
    ...         self.next += 1
    ...         return self.next, value
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """A checkpoint is being taken: put what must not be lost into the states."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called once, before ``open``: get the states, and what is in them."""
