"""State that belongs to a subtask, or is the same in all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from firesteel.datastream.state.descriptors import ListStateDescriptor, MapStateDescriptor

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Base of all kinds. Keyed state holds one value for each key, and shows the current key's."""

    @abstractmethod
    def clear(self) -> None:
        """Remove what is stored for the current key."""


class ValueState(State, Generic[T]):
    """A single value."""

    @abstractmethod
    def value(self) -> T | None:
        """Return the value, or None where there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Store ``value``. None removes what is there."""


class AppendingState(State, Generic[IN, OUT]):
    """State to which values are added and from which one result is read."""

    @abstractmethod
    def get(self) -> OUT | None: ...

    @abstractmethod
    def add(self, value: IN) -> None: ...


class MergingState(AppendingState[IN, OUT]):
    """Appending state of which two can become one, as session windows need it."""


class ReducingState(MergingState[T, T]):
    """The reduction of all values added."""


class AggregatingState(MergingState[IN, OUT]):
    """The aggregate of all values added, which may be of another type than they are."""


class ListState(MergingState[T, Iterable[T]]):
    """A list of values."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """Return the values in the order in which they were added."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the whole list."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None: ...

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapState(State, Generic[K, V]):
    """A dictionary."""

    @abstractmethod
    def get(self, key: K) -> V | None: ...

    @abstractmethod
    def put(self, key: K, value: V) -> None: ...

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None: ...

    @abstractmethod
    def remove(self, key: K) -> None: ...

    @abstractmethod
    def contains(self, key: K) -> bool: ...

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]: ...

    @abstractmethod
    def keys(self) -> Iterable[K]: ...

    @abstractmethod
    def values(self) -> Iterable[V]: ...

    @abstractmethod
    def is_empty(self) -> bool: ...

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """A dictionary that is the same in every subtask, as the side that may not change it sees it."""

    @abstractmethod
    def get(self, key: K) -> V | None: ...

    @abstractmethod
    def contains(self, key: K) -> bool: ...

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]: ...

    @abstractmethod
    def keys(self) -> Iterable[K]: ...

    @abstractmethod
    def values(self) -> Iterable[V]: ...

    @abstractmethod
    def is_empty(self) -> bool: ...

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """The same, for the side that every subtask gets all records of.

    It stays the same everywhere only if each record changes it alike in every subtask.
    """

    @abstractmethod
    def put(self, key: K, value: V) -> None: ...

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None: ...

    @abstractmethod
    def remove(self, key: K) -> None: ...

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class OperatorStateStore(ABC):
    """Gives operator state by its descriptor. PyFlink has broadcast state only."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A dictionary that is the same in every subtask."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list. When the parallelism changes, the elements are divided evenly."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list. After a restore every subtask has the elements of all of them."""

    @abstractmethod
    def get_registered_state_names(self) -> set[str]:
        """The lists that exist, asked for or restored."""

    @abstractmethod
    def get_registered_broadcast_state_names(self) -> set[str]: ...
