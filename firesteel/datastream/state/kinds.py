"""The kinds of state, as functions see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from firesteel.datastream.state.descriptors import ListStateDescriptor, MapStateDescriptor
from firesteel.stability import public_evolving

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Base of all kinds of state. Keyed state has a value per key, and shows that of the current key.

    >>> issubclass(ValueState, State)
    True
    """

    @abstractmethod
    def clear(self) -> None:
        """Remove the value of the current key.

        >>> class Reset(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.INT()))
        ...     def process_element(self, value, ctx):
        ...         if value < 0:
        ...             self.sum.clear()
        ...         else:
        ...             self.sum.update((self.sum.value() or 0) + value)
        ...         yield self.sum.value()
        >>> numbers = env.from_collection([1, 2, -1, 5]).key_by(lambda _: 0)
        >>> list(numbers.process(Reset()).execute_and_collect())
        [1, 3, None, 5]
        """


class ValueState(State, Generic[T]):
    """A single value per key.

    >>> class Changes(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))
    ...     def process_element(self, value, ctx):
    ...         if value != self.last.value():
    ...             yield value
    ...         self.last.update(value)
    >>> numbers = env.from_collection([1, 1, 2, 2]).key_by(lambda _: 0)
    >>> list(numbers.process(Changes()).execute_and_collect())
    [1, 2]
    """

    @abstractmethod
    def value(self) -> T | None:
        """Return the value, or None if there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Set the value. None removes it.

        Args:
            value: The new value.
        """


class AppendingState(State, Generic[IN, OUT]):
    """State to which values are added and from which one result is read.

    >>> issubclass(ReducingState, AppendingState) and issubclass(ListState, AppendingState)
    True
    """

    @abstractmethod
    def get(self) -> OUT | None:
        """Return the result, or None if nothing was added.

        >>> class Largest(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.largest = runtime_context.get_reducing_state(
        ...             ReducingStateDescriptor("largest", max, Types.INT()))
        ...     def process_element(self, value, ctx):
        ...         self.largest.add(value)
        ...         yield self.largest.get()
        >>> numbers = env.from_collection([1, 3, 2]).key_by(lambda _: 0)
        >>> list(numbers.process(Largest()).execute_and_collect())
        [1, 3, 3]
        """

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value.

        Args:
            value: The value.

        >>> class Keep(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))
        ...     def process_element(self, value, ctx):
        ...         self.all.add(value)
        ...         yield list(self.all.get())
        >>> numbers = env.from_collection([1, 2]).key_by(lambda _: 0)
        >>> list(numbers.process(Keep()).execute_and_collect())
        [[1], [1, 2]]
        """


class MergingState(AppendingState[IN, OUT]):
    """Appending state of two windows that can become one, as session windows need it.

    >>> issubclass(AggregatingState, MergingState)
    True
    """


class ReducingState(MergingState[T, T]):
    """One value per key: the reduction of all values added.

    >>> class Sum(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.sum = runtime_context.get_reducing_state(
    ...             ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT()))
    ...     def process_element(self, value, ctx):
    ...         self.sum.add(value)
    ...         yield self.sum.get()
    >>> numbers = env.from_collection([1, 2, 3]).key_by(lambda number: number % 2)
    >>> list(numbers.process(Sum()).execute_and_collect())
    [1, 2, 4]
    """


class AggregatingState(MergingState[IN, OUT]):
    """One accumulator per key, which may be of a different type than the values added.

    >>> class Count(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return 0
    ...     def add(self, value, accumulator):
    ...         return accumulator + 1
    ...     def get_result(self, accumulator):
    ...         return f"{accumulator} seen"
    ...     def merge(self, acc_a, acc_b):
    ...         return acc_a + acc_b
    >>> class Show(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.count = runtime_context.get_aggregating_state(
    ...             AggregatingStateDescriptor("count", Count(), Types.INT()))
    ...     def process_element(self, value, ctx):
    ...         self.count.add(value)
    ...         yield self.count.get()
    >>> letters = env.from_collection(["a", "a"]).key_by(lambda letter: letter)
    >>> list(letters.process(Show()).execute_and_collect())
    ['1 seen', '2 seen']
    """


class ListState(MergingState[T, Iterable[T]]):
    """A list per key. None cannot be an element.

    >>> class LastTwo(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.INT()))
    ...     def process_element(self, value, ctx):
    ...         self.last.add_all([value])
    ...         self.last.update(list(self.last.get())[-2:])
    ...         yield list(self.last)
    >>> numbers = env.from_collection([1, 2, 3]).key_by(lambda _: 0)
    >>> list(numbers.process(LastTwo()).execute_and_collect())
    [[1], [1, 2], [2, 3]]
    """

    @abstractmethod
    def get(self) -> Iterable[T]:
        """Return the values in the order in which they were added."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the whole list.

        Args:
            values: The new elements.
        """

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Add several values.

        Args:
            values: The values.
        """

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReadableMap(State, Generic[K, V]):
    """A dictionary that can be read."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of a key, or None. ``state[key]`` does the same."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return True if there is a value for a key. ``key in state`` does the same."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return the pairs of keys and values."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return the keys. ``iter(state)`` does the same."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return the values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return True if there is no entry."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class WritableMap(ReadableMap[K, V]):
    """A dictionary that can be read and changed."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of a key. ``state[key] = value`` does the same."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set the values of several keys."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a key, if it is there. ``del state[key]`` does the same."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(WritableMap[K, V]):
    """A dictionary per key of the stream.

    Each entry is stored on its own, so a change writes only that entry.

    >>> class Pages(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.pages = runtime_context.get_map_state(
    ...             MapStateDescriptor("pages", Types.STRING(), Types.INT()))
    ...     def process_element(self, value, ctx):
    ...         user, page = value
    ...         if page == "logout":
    ...             yield user, sorted(self.pages.items()), sum(self.pages.values())
    ...             self.pages.clear()
    ...         elif self.pages.contains(page):
    ...             self.pages.put(page, self.pages.get(page) + 1)
    ...         else:
    ...             self.pages.put_all({page: 1})
    ...             self.pages.remove("unknown")
    ...             assert page in list(self.pages.keys()) and not self.pages.is_empty()
    >>> clicks = env.from_collection([("ann", page) for page in ("home", "cart", "home", "logout")])
    >>> list(clicks.key_by(lambda click: click[0]).process(Pages()).execute_and_collect())
    [('ann', [('cart', 1), ('home', 2)], 3)]
    """


class ReadOnlyBroadcastState(ReadableMap[K, V]):
    """A dictionary that is the same in every subtask, to be read by the side that is not broadcast.

    >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    >>> class Show(BroadcastProcessFunction):
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules).put_all(value)
    ...     def process_element(self, value, ctx):
    ...         state = ctx.get_broadcast_state(rules)
    ...         if not state.is_empty() and state.contains(value):
    ...             yield state.get(value), list(state.keys()), list(state.values())
    ...             yield list(state.items())
    >>> from firesteel.testing import Pause, ScriptedSource
    >>> names = env.from_source(ScriptedSource([Pause(), "low"]), None, "names")
    >>> limits = env.from_collection([{"low": 1, "high": 9}]).broadcast(rules)
    >>> list(names.connect(limits).process(Show()).execute_and_collect())
    [(1, ['low', 'high'], [1, 9]), [('low', 1), ('high', 9)]]
    """


class BroadcastState(ReadOnlyBroadcastState[K, V], WritableMap[K, V]):
    """A dictionary that is the same in every subtask, to be changed by the broadcast side.

    It stays the same only if each record changes it in the same way in every subtask.

    >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    >>> class Rules(BroadcastProcessFunction):
    ...     def process_broadcast_element(self, value, ctx):
    ...         state = ctx.get_broadcast_state(rules)
    ...         if value == "reset":
    ...             state.clear()
    ...             state.put_all({"low": 1})
    ...         else:
    ...             state.put(*value)
    ...             state.remove("old")
    ...     def process_element(self, value, ctx):
    ...         yield ctx.get_broadcast_state(rules).get(value)
    >>> from firesteel.testing import Pause, ScriptedSource
    >>> names = env.from_source(ScriptedSource([Pause(), "low", "high"]), None, "names")
    >>> changes = env.from_collection([("low", 3), "reset", ("high", 9)]).broadcast(rules)
    >>> list(names.connect(changes).process(Rules()).execute_and_collect())
    [1, 9]
    """


class OperatorStateStore(ABC):
    """Gives operator state by its descriptor. PyFlink has broadcast state only.

    >>> class Remember(MapFunction, CheckpointedFunction):
    ...     def initialize_state(self, context):
    ...         store = context.get_operator_state_store()
    ...         self.own = store.get_list_state(ListStateDescriptor("own", Types.LONG()))
    ...         self.all = store.get_union_list_state(ListStateDescriptor("all", Types.LONG()))
    ...         self.rules = store.get_broadcast_state(
    ...             MapStateDescriptor("rules", Types.STRING(), Types.LONG()))
    ...         self.names = sorted(store.get_registered_state_names())
    ...         self.names += store.get_registered_broadcast_state_names()
    ...     def snapshot_state(self, context):
    ...         self.own.update([1])
    ...     def map(self, value):
    ...         return value, self.names
    >>> list(env.from_collection(["a"]).map(Remember()).execute_and_collect())
    [('a', ['all', 'own', 'rules'])]
    """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return a dictionary that is the same in every subtask.

        Args:
            state_descriptor: Names the state and the types of its keys and values.
        """

    @abstractmethod
    @public_evolving
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list. When the parallelism changes, its elements are divided evenly. Not in PyFlink.

        Args:
            state_descriptor: Names the state and the type of its elements.
        """

    @abstractmethod
    @public_evolving
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list. After a restore each subtask has the elements of all of them. Not in PyFlink.

        Args:
            state_descriptor: Names the state and the type of its elements.
        """

    @abstractmethod
    @public_evolving
    def get_registered_state_names(self) -> set[str]:
        """Return the names of the lists, requested or restored. Not in PyFlink."""

    @abstractmethod
    @public_evolving
    def get_registered_broadcast_state_names(self) -> set[str]:
        """Return the names of the broadcast states, requested or restored. Not in PyFlink."""
