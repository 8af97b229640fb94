"""Creates the states that a function on a keyed stream asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.functions import KeyedStateStore, ReduceFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from firesteel.errors import InvalidProgramError
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import ListTable, MapTable, ValueTable
from firesteel.task.key_context import CurrentKey, KeyContext
from firesteel.task.state.states import (
    RowKeyedMapState,
    TaskAggregatingState,
    TaskListState,
    TaskMapState,
    TaskReducingState,
    TaskValueState,
    row_converter,
)
from firesteel.task.state.ttl import TtlListTable, TtlMapTable, TtlRule, TtlValueTable, clean_up
from firesteel.task.time.clock import SubtaskClock

_S = TypeVar("_S")
_Plain = TypeVar("_Plain", ValueTable, ListTable, MapTable)
_Expiring = TypeVar("_Expiring", TtlValueTable, TtlListTable, TtlMapTable)


class TaskKeyedStateStore(KeyedStateStore):
    """Creates states. They show the state of ``current``: a key, or a key within a namespace."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        key_context: KeyContext,
        clock: SubtaskClock,
        current: CurrentKey | None = None,
    ) -> None:
        self._backend = backend
        self._key_context = key_context
        self._clock = clock
        self._current = key_context if current is None else current
        self._namespaced = current is not None and current is not key_context
        # Tables of the operator itself. Users cannot take their names.
        self._reserved = backend.declared()
        self._states: dict[str, tuple[StateDescriptor, Any]] = {}

    def get_state(self, state_descriptor: ValueStateDescriptor) -> TaskValueState:
        return self._state(
            state_descriptor,
            ValueStateDescriptor,
            lambda: TaskValueState(
                self._values(state_descriptor), self._current, state_descriptor.type_info
            ),
        )

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> TaskListState:
        return self._state(
            state_descriptor,
            ListStateDescriptor,
            lambda: TaskListState(
                self._lists(state_descriptor), self._current, state_descriptor.element_type_info
            ),
        )

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> TaskMapState:
        return self._state(
            state_descriptor,
            MapStateDescriptor,
            lambda: self._map_state(state_descriptor),
        )

    def _map_state(self, descriptor: MapStateDescriptor) -> TaskMapState:
        table, value_type = self._maps(descriptor), descriptor.value_type_info
        convert = row_converter(descriptor.key_type_info)
        if convert is None:
            return TaskMapState(table, self._current, value_type)
        return RowKeyedMapState(table, self._current, value_type, convert)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> TaskReducingState:
        function = state_descriptor.get_reduce_function()
        reduce = function.reduce if isinstance(function, ReduceFunction) else function
        return self._state(
            state_descriptor,
            ReducingStateDescriptor,
            lambda: TaskReducingState(
                self._values(state_descriptor), self._current, state_descriptor.type_info, reduce
            ),
        )

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> TaskAggregatingState:
        function = state_descriptor.get_agg_function()
        return self._state(
            state_descriptor,
            AggregatingStateDescriptor,
            lambda: TaskAggregatingState(
                self._values(state_descriptor), self._current, state_descriptor.type_info, function
            ),
        )

    def _state(self, descriptor: StateDescriptor, expected: type, create: Callable[[], _S]) -> _S:
        if not isinstance(descriptor, expected):
            raise InvalidProgramError(f"expected a {expected.__name__}, but got {descriptor!r}")
        if descriptor.name in self._reserved:
            raise InvalidProgramError(
                f"the operator itself uses the state name '{descriptor.name}'; choose a different "
                "name"
            )
        known = self._states.get(descriptor.name)
        if known is None:
            known = self._states[descriptor.name] = descriptor, create()
        before, state = known
        if before is not descriptor and not _is_same(before, descriptor):
            raise InvalidProgramError(
                f"the state '{descriptor.name}' is declared as {before!r} and as {descriptor!r}; "
                "give states of different kinds or types different names"
            )
        found: _S = state
        return found

    def _values(self, descriptor: StateDescriptor) -> ValueTable | TtlValueTable:
        create, kind = self._backend.value_table, descriptor.type_info
        return self._table(descriptor, create, TtlValueTable, element_type=kind)

    def _lists(self, descriptor: ListStateDescriptor) -> ListTable | TtlListTable:
        create, kind = self._backend.list_table, descriptor.element_type_info
        return self._table(descriptor, create, TtlListTable, element_type=kind)

    def _maps(self, descriptor: MapStateDescriptor) -> MapTable | TtlMapTable:
        return self._table(
            descriptor,
            self._backend.map_table,
            TtlMapTable,
            entry_type=descriptor.key_type_info,
            element_type=descriptor.value_type_info,
        )

    def _table(
        self,
        descriptor: StateDescriptor,
        create: Callable[..., _Plain],
        expiring: Callable[[_Plain, TtlRule], _Expiring],
        **types: TypeInformation | None,
    ) -> _Plain | _Expiring:
        """Create the table of a state, and wrap it if its elements expire."""
        ttl = descriptor.ttl_config
        expires = ttl is not None and ttl.is_enabled()
        table = create(
            descriptor.name,
            namespaced=self._namespaced,
            ttl=expires,
            now=self._clock.now_millis(),
            **types,
        )
        if ttl is None or not expires:
            return table
        rule = TtlRule(ttl, self._clock)
        wrapped = expiring(table, rule)
        clean_up(ttl, self._backend, table, wrapped, rule, self._key_context)
        return wrapped


def _is_same(one: StateDescriptor, other: StateDescriptor) -> bool:
    return type(one) is type(other) and one.type_info == other.type_info
