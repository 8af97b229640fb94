"""Incremental aggregation: one accumulator per key and window, for any number of records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Number
from typing import Any

from firesteel.common.types import Row
from firesteel.datastream.functions import AggregateFunction, Function, ReduceFunction
from firesteel.graph.operator_specs import (
    AggregatedField,
    AggregatedRecords,
    ReducedRecords,
    WindowContents,
)
from firesteel.state.tables import MISSING, ValueTable
from firesteel.task.copies import copy_of, copying_get, is_immutable
from firesteel.task.operators.aggregation import field_aggregation
from firesteel.usercode.failures import failed_function, user_function_error


class Aggregator(ABC):
    """Adds records to accumulators, merges accumulators, and computes results.

    function: the user's object, which is opened and closed, or None.
    """

    function: Function | None = None
    # The method that is called with each record, for error messages.
    called: Callable[..., Any]

    @property
    def called_for_result(self) -> Callable[..., Any]:
        """The method that computes a result, for error messages."""
        return self.called

    @property
    def called_for_merge(self) -> Callable[..., Any]:
        """The method that merges accumulators, for error messages."""
        return self.called

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        """All methods that may be called. The most likely one comes last."""
        return (self.called,)

    @property
    def is_commutative(self) -> bool:
        """True if the order of records does not matter, and accumulators can be merged."""
        return bool(getattr(self.function, "commutative", False))

    @property
    def is_associative(self) -> bool:
        """True if merged accumulators of neighboring records give the same results."""
        return self.is_commutative

    def __init__(self, operator: str, accumulator_type: Any) -> None:
        self._operator = operator
        self.accumulator_type = (
            None if accumulator_type is None or accumulator_type.is_pickled else accumulator_type
        )

    @abstractmethod
    def first(self, value: Any) -> Any:
        """The accumulator of a single record."""

    @abstractmethod
    def add(self, accumulator: Any, value: Any) -> Any: ...

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any: ...

    @abstractmethod
    def result(self, accumulator: Any) -> Any: ...

    @abstractmethod
    def add_batch(self, table: ValueTable, values: list[Any], keys: list[Any]) -> None:
        """Add each value to the accumulator of its key."""

    @abstractmethod
    def add_to_each(self, accumulators: list[Any], value: Any) -> list[Any]:
        """Add the value to the accumulators of several windows."""

    def prepare(self, values: list[Any]) -> None:  # noqa: B027 - optional
        """Learn from the first records. Called before anything else."""

    def failure(self, error: Exception, values: list[Any], iterator: Any) -> Exception:
        function = failed_function(error, *self.user_functions)
        return user_function_error(error, self._operator, function, values, iterator)


class ReduceAggregator(Aggregator):
    def __init__(self, contents: ReducedRecords, operator: str) -> None:
        super().__init__(operator, contents.element_type)
        function = contents.function
        if isinstance(function, ReduceFunction):
            self.function = function
            self.called = function.reduce
        else:
            self.called = function

    def first(self, value: Any) -> Any:
        return value

    def add(self, accumulator: Any, value: Any) -> Any:
        return self.called(accumulator, value)

    def merge(self, one: Any, other: Any) -> Any:
        return self.called(one, other)

    def result(self, accumulator: Any) -> Any:
        return accumulator

    def add_to_each(self, accumulators: list[Any], value: Any) -> list[Any]:
        reduce = self.called
        if is_immutable(value):
            return [reduce(accumulator, value) for accumulator in accumulators]
        return [reduce(accumulator, copy_of(value)) for accumulator in accumulators]

    def add_batch(self, table: ValueTable, values: list[Any], keys: list[Any]) -> None:
        reduce, overlay, missing = self.called, table.overlay, MISSING
        in_overlay = overlay.get
        # A value from the base may be part of a snapshot, so the function gets a copy.
        in_base = table.reader(keys)
        if not is_immutable(values[0]):
            in_base = copying_get(in_base)
        iterator = iter(values)
        try:
            # The keys come second: zip must not take a value that it then finds no key for.
            for value, key in zip(iterator, keys, strict=False):
                reduced = in_overlay(key, missing)
                if reduced is missing:
                    reduced = in_base(key, missing)
                    overlay[key] = value if reduced is missing else reduce(reduced, value)
                else:
                    overlay[key] = reduce(reduced, value)
        except Exception as error:
            raise self.failure(error, values, iterator) from error


class FieldAggregator(ReduceAggregator):
    """Runs sum, min, max, min_by and max_by."""

    def __init__(self, contents: AggregatedField, operator: str) -> None:
        super().__init__(ReducedRecords(None, contents.element_type), operator)
        self._contents = contents
        self._prepared = False
        self._is_associative = False

    @property
    def is_commutative(self) -> bool:
        # The first record determines the other fields.
        return False

    @property
    def is_associative(self) -> bool:
        return self._is_associative

    def prepare(self, values: list[Any]) -> None:
        # The first record shows the shape of all.
        if not self._prepared:
            self._prepared = True
            contents = self._contents
            self.called = field_aggregation(contents.kind, contents.position, values[0]).function
            has_fields = isinstance(values[0], tuple | list | Row)
            fields = values[0] if has_fields else values[:1]
            # Sums of floats depend on the order of additions.
            self._is_associative = contents.kind != "sum" or all(map(_is_exact, fields))


def _is_exact(field: Any) -> bool:
    return isinstance(field, int) or not isinstance(field, Number)


class AggregateAggregator(Aggregator):
    def __init__(self, contents: AggregatedRecords, operator: str) -> None:
        super().__init__(operator, contents.accumulator_type)
        function: AggregateFunction = contents.function
        self.function = function
        self.called = function.add
        self._create = function.create_accumulator
        self._merge = function.merge
        self._result = function.get_result

    def first(self, value: Any) -> Any:
        return self.called(value, self._create())

    def add(self, accumulator: Any, value: Any) -> Any:
        return self.called(value, accumulator)

    def merge(self, one: Any, other: Any) -> Any:
        return self._merge(one, other)

    def result(self, accumulator: Any) -> Any:
        return self._result(accumulator)

    @property
    def called_for_result(self) -> Callable[..., Any]:
        return self._result

    @property
    def called_for_merge(self) -> Callable[..., Any]:
        return self._merge

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        return self._create, self._merge, self._result, self.called

    def add_to_each(self, accumulators: list[Any], value: Any) -> list[Any]:
        add = self.called
        if is_immutable(value):
            return [add(value, accumulator) for accumulator in accumulators]
        return [add(copy_of(value), accumulator) for accumulator in accumulators]

    def add_batch(self, table: ValueTable, values: list[Any], keys: list[Any]) -> None:
        add, create, overlay, missing = self.called, self._create, table.overlay, MISSING
        in_overlay, in_base = overlay.get, table.reader(keys)
        iterator = iter(values)
        try:
            for value, key in zip(iterator, keys, strict=False):
                accumulator = in_overlay(key, missing)
                if accumulator is missing:
                    accumulator = in_base(key, missing)
                    accumulator = create() if accumulator is missing else copy_of(accumulator)
                overlay[key] = add(value, accumulator)
        except Exception as error:
            raise self.failure(error, values, iterator) from error


_AGGREGATORS: dict[type[WindowContents], Callable[[Any, str], Aggregator]] = {
    ReducedRecords: ReduceAggregator,
    AggregatedField: FieldAggregator,
    AggregatedRecords: AggregateAggregator,
}


def create_aggregator(contents: WindowContents, operator: str) -> Aggregator:
    return _AGGREGATORS[type(contents)](contents, operator)
