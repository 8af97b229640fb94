"""The runtime context: the subtask, metrics, parameters and keyed state of a function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.common.distributed_cache import DistributedCache
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
from firesteel.stability import public_evolving


class KeyedStateStore(ABC):
    """Gives access to state of the current key.

    >>> class Average(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.sum = runtime_context.get_reducing_state(
    ...             ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT()))
    ...         self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))
    ...         self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))
    ...         self.seen = runtime_context.get_map_state(
    ...             MapStateDescriptor("seen", Types.INT(), Types.BOOLEAN()))
    ...     def process_element(self, value, ctx):
    ...         self.sum.add(value)
    ...         self.all.add(value)
    ...         self.last.update(value)
    ...         self.seen.put(value, True)
    ...         yield self.sum.get() / len(list(self.all.get()))
    >>> numbers = env.from_collection([1, 2, 6]).key_by(lambda _: 0)
    >>> list(numbers.process(Average()).execute_and_collect())
    [1.0, 1.5, 3.0]
    """

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """Return a single value per key.

        Args:
            state_descriptor: Names the state and its type.
        """

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list per key.

        Args:
            state_descriptor: Names the state and the type of its elements.
        """

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """Return a dictionary per key.

        Args:
            state_descriptor: Names the state and the types of its keys and values.
        """

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """Return a value per key that a ReduceFunction combines with each added value.

        Args:
            state_descriptor: Names the state, its function and its type.
        """

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        """Return an accumulator per key that an AggregateFunction adds values to.

        Args:
            state_descriptor: Names the state, its function and the type of the accumulator.

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
        ...         yield value, self.count.get()
        >>> letters = env.from_collection(["a", "a"]).key_by(lambda letter: letter)
        >>> list(letters.process(Show()).execute_and_collect())
        [('a', '1 seen'), ('a', '2 seen')]
        """


class RuntimeContext(KeyedStateStore):
    """The subtask of a function, its metrics, and on a keyed stream its state. ``open`` gets it.

    >>> class Where(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.text = runtime_context.get_task_name_with_subtasks()
    ...         self.index = runtime_context.get_index_of_this_subtask()
    ...         self.counter = runtime_context.get_metrics_group().counter("records")
    ...     def map(self, value):
    ...         self.counter.inc()
    ...         return value, self.text, self.index
    >>> list(env.from_collection(["a"]).map(Where()).name("Where").execute_and_collect())
    [('a', 'Where (1/1)', 0)]
    """

    @abstractmethod
    def get_task_name(self) -> str:
        """Return the name of the operator.

        >>> class Name(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.name = runtime_context.get_task_name()
        ...     def map(self, value):
        ...         return self.name
        >>> list(env.from_collection([1]).map(Name()).execute_and_collect())
        ['Map']
        """

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the operator.

        >>> class Parallelism(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.subtasks = runtime_context.get_number_of_parallel_subtasks()
        ...     def map(self, value):
        ...         return self.subtasks
        >>> list(env.from_collection([1]).map(Parallelism()).set_parallelism(2).execute_and_collect())
        [2]
        """

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the max parallelism of the operator, which is its number of key groups.

        >>> class KeyGroups(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.groups = runtime_context.get_max_number_of_parallel_subtasks()
        ...     def map(self, value):
        ...         return self.groups
        >>> list(env.from_collection([1]).map(KeyGroups()).execute_and_collect())
        [128]
        """

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Return the number of the subtask, from 0 to the parallelism - 1."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return 0, and one more after each restart of the job.

        >>> class Attempt(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.attempt = runtime_context.get_attempt_number()
        ...     def map(self, value):
        ...         return self.attempt
        >>> list(env.from_collection([1]).map(Attempt()).execute_and_collect())
        [0]
        """

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Return the name with the number of the subtask from 1, for example ``Map (3/4)``."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a global job parameter of the execution config.

        Args:
            key: The name of the parameter.
            default_value: Returned if the parameter is not set.

        >>> env.get_config().set_global_job_parameters({"unit": "cm"})
        <...ExecutionConfig object at ...>
        >>> class Unit(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.unit = runtime_context.get_job_parameter("unit", "m")
        ...     def map(self, value):
        ...         return f"{value} {self.unit}"
        >>> list(env.from_collection([1]).map(Unit()).execute_and_collect())
        ['1 cm']
        """

    @abstractmethod
    @public_evolving
    def get_distributed_cache(self) -> DistributedCache:
        """Return the files of ``env.register_cached_file``. Not in PyFlink.

        >>> with open("names.txt", "w") as file:
        ...     _ = file.write("ann")
        >>> env.register_cached_file("names.txt", "names")
        >>> class Name(MapFunction):
        ...     def open(self, runtime_context):
        ...         with open(runtime_context.get_distributed_cache().get_file("names")) as file:
        ...             self.name = file.read()
        ...     def map(self, value):
        ...         return self.name
        >>> list(env.from_collection([1]).map(Name()).execute_and_collect())
        ['ann']
        """

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the metric group of the operator. Its metrics reach the JobClient."""
