"""Functions with operator state: state of a subtask, not of a key. Not in PyFlink."""

from __future__ import annotations

from abc import ABC, abstractmethod

from firesteel.datastream.functions.runtime_context import KeyedStateStore
from firesteel.datastream.state import OperatorStateStore
from firesteel.stability import public_evolving


@public_evolving
class FunctionSnapshotContext(ABC):
    """The checkpoint that a snapshot is taken for. Not in PyFlink.

    >>> class Log(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         pass
    ...     def snapshot_state(self, context):
    ...         print(context.get_checkpoint_id(), context.get_checkpoint_timestamp())
    ...     def map(self, value):
    ...         return value
    """

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Return the number of the checkpoint."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """Return the time at which the checkpoint was triggered, in milliseconds since 1970."""


@public_evolving
class FunctionInitializationContext(ABC):
    """Gives a function its states, before ``open``. Not in PyFlink.

    >>> class Resume(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         store = context.get_operator_state_store()
    ...         self.saved = store.get_list_state(ListStateDescriptor("next", Types.LONG()))
    ...         if context.is_restored():
    ...             print("continue from checkpoint", context.get_restored_checkpoint_id())
    ...     def snapshot_state(self, context):
    ...         pass
    ...     def map(self, value):
    ...         return value
    """

    @abstractmethod
    def is_restored(self) -> bool:
        """Return True if the states come from a snapshot. Otherwise they are empty."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Return the checkpoint that the job was restored from, or None."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of operator state: lists and broadcast state."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of keyed state. Only functions on keyed streams have one.

        >>> class Count(MapFunction, CheckpointedFunction):
        ...     def initialize_state(self, context):
        ...         store = context.get_keyed_state_store()
        ...         self.count = store.get_state(ValueStateDescriptor("count", Types.LONG()))
        ...     def snapshot_state(self, context):
        ...         pass
        ...     def map(self, value):
        ...         self.count.update((self.count.value() or 0) + 1)
        ...         return value, self.count.value()
        """


@public_evolving
class CheckpointedFunction(ABC):
    """Mixin for a function or SinkFunction that loads and saves operator state. Not in PyFlink.

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
    >>> list(env.from_collection(["a", "b"]).map(Numbering()).execute_and_collect())
    [(1, 'a'), (2, 'b')]
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Put everything that must not be lost into the states. Called for each checkpoint.

        Args:
            context: The checkpoint.
        """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Get the states and their contents. Called once, before ``open``.

        Args:
            context: The stores of the states.
        """
