"""Operator state of one subtask: lists and broadcast state, held in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.state import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    ReadOnlyBroadcastState,
)
from firesteel.errors import InvalidProgramError, TypeMismatchError
from firesteel.state.elements import decode_element, decode_pair, encode_element, encode_pair
from firesteel.state.operator_state import (
    OperatorState,
    OperatorStates,
    Redistribution,
    describe_elements,
)
from firesteel.state.table_descriptions import IncompatibleStateError
from firesteel.task.copies import copy_of
from firesteel.task.state.states import copier, element_copies, row_converter


class TaskOperatorStateStore(OperatorStateStore):
    def __init__(self) -> None:
        self._states: dict[str, TaskOperatorListState | TaskBroadcastState] = {}
        # Restored states that no function has asked for yet.
        self._restored: dict[str, OperatorState] = {}
        self._sent: dict[str, OperatorState] = {}
        self._sent_versions: dict[str, int] = {}

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> TaskOperatorListState:
        return self._list(state_descriptor, Redistribution.SPLIT)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> TaskOperatorListState:
        return self._list(state_descriptor, Redistribution.UNION)

    def _list(self, descriptor: ListStateDescriptor, mode: Redistribution) -> TaskOperatorListState:
        _check(descriptor, ListStateDescriptor)
        state = self._get(
            descriptor.name,
            describe_elements(mode, descriptor.element_type_info),
            lambda: TaskOperatorListState(mode, descriptor.element_type_info),
        )
        assert isinstance(state, TaskOperatorListState)
        return state

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> TaskBroadcastState:
        _check(state_descriptor, MapStateDescriptor)
        key_type, value_type = state_descriptor.key_type_info, state_descriptor.value_type_info
        state = self._get(
            state_descriptor.name,
            describe_elements(Redistribution.BROADCAST, key_type, value_type),
            lambda: TaskBroadcastState(key_type, value_type),
        )
        assert isinstance(state, TaskBroadcastState)
        return state

    def _get(
        self,
        name: str,
        description: str,
        create: Callable[[], TaskOperatorListState | TaskBroadcastState],
    ) -> TaskOperatorListState | TaskBroadcastState:
        state = self._states.get(name)
        restored = self._restored.get(name)
        existing = state.description if state is not None else None
        if restored is not None:
            existing = restored.description
        if existing is not None and existing != description:
            raise IncompatibleStateError(name, _in_words(existing), _in_words(description))
        if state is None:
            state = self._states[name] = create()
        if restored is not None:
            state.load(restored.elements)
            del self._restored[name]
        return state

    def get_registered_state_names(self) -> set[str]:
        return self._names(broadcast=False)

    def get_registered_broadcast_state_names(self) -> set[str]:
        return self._names(broadcast=True)

    def _names(self, *, broadcast: bool) -> set[str]:
        modes = {name: state.mode for name, state in self._restored.items()}
        modes.update({name: state.mode for name, state in self._states.items()})
        return {
            name for name, mode in modes.items() if (mode is Redistribution.BROADCAST) is broadcast
        }

    # For the subtask

    def snapshot(self) -> dict[str, OperatorState] | None:
        """All states, or None if nothing has changed since the last snapshot."""
        versions = {name: state.version for name, state in self._states.items()}
        if versions == self._sent_versions:
            return None
        self._sent_versions = versions
        # A state that no function has asked for is kept as it is.
        self._sent = {**self._restored}
        for name, state in self._states.items():
            try:
                self._sent[name] = OperatorState(state.mode, tuple(state.dump()), state.description)
            except TypeMismatchError as error:
                error.reason = f"{error.reason} It was stored in the operator state '{name}'."
                raise
        return self._sent

    def restore(self, states: OperatorStates) -> None:
        """Take restored states. Called before functions ask for them."""
        self._states.clear()
        self._restored = dict(states)
        self._sent_versions = {}


class TaskOperatorListState(ListState[Any]):
    """A list in memory. Mutable elements are copied on their way in and out."""

    def __init__(self, mode: Redistribution, element_type: TypeInformation) -> None:
        self.mode = mode
        self.description = describe_elements(mode, element_type)
        self.version = 0
        self._type = element_type
        self._copy = copier(element_type)
        self._elements: list[Any] = []

    def get(self) -> list[Any]:
        return list(map(copy_of, self._elements))

    def add(self, value: Any) -> None:
        self.add_all([value])

    def add_all(self, values: list[Any]) -> None:
        self._elements += element_copies(values, self._copy)
        self.version += 1

    def update(self, values: list[Any]) -> None:
        self._elements = element_copies(values, self._copy)
        self.version += 1

    def clear(self) -> None:
        self.update([])

    def dump(self) -> Iterator[bytes]:
        return map(encode_element, self._type.convert_batch(self._elements, nullable=True))

    def load(self, elements: tuple[bytes, ...]) -> None:
        self._elements = list(map(decode_element, elements))


class TaskBroadcastState(BroadcastState[Any, Any]):
    mode = Redistribution.BROADCAST

    def __init__(self, key_type: TypeInformation, value_type: TypeInformation) -> None:
        self.description = describe_elements(self.mode, key_type, value_type)
        self.version = 0
        self._types = key_type, value_type
        # A row without names finds the row with names.
        self._convert_key = row_converter(key_type) or (lambda key: key)
        self._copy = copier(value_type)
        self._entries: dict[Any, Any] = {}
        self.read_only = ReadOnlyView(self)

    def get(self, key: Any) -> Any:
        return copy_of(self._entries.get(self._convert_key(key)))

    def contains(self, key: Any) -> bool:
        return self._convert_key(key) in self._entries

    def items(self) -> Iterator[tuple[Any, Any]]:
        """The present entries. Changes during the iteration do not affect them."""
        return ((key, copy_of(value)) for key, value in list(self._entries.items()))

    def keys(self) -> Iterator[Any]:
        return iter(list(self._entries))

    def values(self) -> Iterator[Any]:
        return (value for _, value in self.items())

    def is_empty(self) -> bool:
        return not self._entries

    def put(self, key: Any, value: Any) -> None:
        self.version += 1
        self._entries[self._convert_key(key)] = self._copy(value)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self.version += 1
        self._entries.pop(self._convert_key(key), None)

    def clear(self) -> None:
        self.version += 1
        self._entries.clear()

    def dump(self) -> Iterator[bytes]:
        key_type, value_type = self._types
        keys = key_type.convert_batch(list(self._entries), nullable=True)
        values = value_type.convert_batch(list(self._entries.values()), nullable=True)
        return map(encode_pair, keys, values)

    def load(self, elements: tuple[bytes, ...]) -> None:
        self._entries = dict(map(decode_pair, elements))


class ReadOnlyView(ReadOnlyBroadcastState[Any, Any]):
    """Read-only broadcast state, for the side that is not broadcast."""

    def __init__(self, state: TaskBroadcastState) -> None:
        self._state = state

    def get(self, key: Any) -> Any:
        return self._state.get(key)

    def contains(self, key: Any) -> bool:
        return self._state.contains(key)

    def items(self) -> Iterator[tuple[Any, Any]]:
        return self._state.items()

    def keys(self) -> Iterator[Any]:
        return self._state.keys()

    def values(self) -> Iterator[Any]:
        return self._state.values()

    def is_empty(self) -> bool:
        return self._state.is_empty()

    def _refuse(self, *_: Any) -> NoReturn:
        raise InvalidProgramError(
            "broadcast state can only be changed in process_broadcast_element(), where every "
            "subtask sees the same records"
        )

    clear = put = put_all = remove = __setitem__ = __delitem__ = _refuse


def _check(descriptor: Any, expected: type) -> None:
    if not isinstance(descriptor, expected):
        raise InvalidProgramError(f"expected a {expected.__name__}, but got {descriptor!r}")


def _in_words(description: str) -> str:
    mode, *types = json.loads(description)
    kind = {"split": "a list state", "union": "a union list state"}.get(mode, "a broadcast state")
    return f"{kind} of {' to '.join(map(str, types))}"
