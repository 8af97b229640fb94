"""New states of a savepoint, created from the rows of tables."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from firesteel.checkpoint.metadata import OperatorMetadata
from firesteel.checkpoint.savepoints.keyed_state_import import (
    KEY,
    VALUE,
    KeyedStateImport,
    import_table,
)
from firesteel.checkpoint.savepoints.operator_state_tables import columns_of, operator_states
from firesteel.checkpoint.savepoints.savepoint_draft import (
    file_prefix,
    with_keyed_state,
    with_operator_state,
)
from firesteel.checkpoint.savepoints.savepoint_reader import StateNotFoundError
from firesteel.checkpoint.state_descriptions import (
    describe_tables,
    key_type_of,
    table_descriptions,
)
from firesteel.checkpoint.storage.storage import Storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from firesteel.errors import InvalidProgramError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.operator_state import Redistribution, element_types
from firesteel.state.table_descriptions import TableDescription, TableKind

__all__ = ["NewKeyedState", "NewOperatorState"]


@dataclass(frozen=True, slots=True)
class NewKeyedState:
    """A new keyed state. ``rows`` is a Spark DataFrame or an Arrow table."""

    name: str
    table: TableDescription
    key_type: TypeInformation | None
    rows: Any

    @staticmethod
    def of(
        operator: OperatorMetadata,
        state: StateDescriptor | str,
        rows: Any,
        key_type: TypeInformation | None,
    ) -> NewKeyedState:
        known = table_descriptions(operator.states)
        if isinstance(state, StateDescriptor):
            name, table = state.name, _table(state)
        elif state in known:
            name, table = state, known[state]
        else:
            raise _unknown(operator, state, "keyed state", known)
        if table.namespaced:
            raise InvalidProgramError(
                f"The state '{name}' of {operator.title} belongs to windows or timers, which only "
                "the job itself can write."
            )
        _check_columns(name, rows, [KEY, VALUE])
        declared = (key_type_of(operator.states, one) for one in known)
        return NewKeyedState(name, table, key_type or next(declared, None), rows)

    def write(
        self, operator: OperatorMetadata, target: Storage, options: FileSystemOptions | None
    ) -> OperatorMetadata:
        """Write the files, and return the operator with this state added."""
        order = KeyedStateImport(
            state=self.name,
            table=self.table,
            key_type=self.key_type,
            parallelism=operator.parallelism,
            max_parallelism=operator.max_parallelism,
            location=target.location,
            prefix=file_prefix(operator),
            options=options,
            stamp=round(time.time() * 1000),
        )
        if isinstance(self.rows, pa.Table):
            files = import_table(order, self.rows)
        else:
            from firesteel.spark.savepoint_frames import import_frame

            files = import_frame(order, self.rows)
        (described,) = describe_tables({self.name: self.table}, self.key_type)
        return with_keyed_state(operator, described, files)


@dataclass(frozen=True, slots=True)
class NewOperatorState:
    """A new operator state. ``rows`` is a Spark DataFrame or an Arrow table."""

    name: str
    mode: Redistribution
    types: tuple[TypeInformation, ...]
    rows: Any

    @staticmethod
    def of(
        operator: OperatorMetadata, state: StateDescriptor | str, mode: Redistribution, rows: Any
    ) -> NewOperatorState:
        if isinstance(state, StateDescriptor):
            name, types = state.name, _element_types(state, mode)
        else:
            known = {
                one: found.description
                for subtask in operator.subtasks
                for one, found in subtask.operator_state.items()
                if found.mode is mode
            }
            if state not in known:
                raise _unknown(operator, state, f"{mode.value} operator state", known)
            name, types = state, tuple(element_types(known[state]))
        _check_columns(name, rows, columns_of(mode))
        return NewOperatorState(name, mode, types, rows)

    def write(self, operator: OperatorMetadata) -> OperatorMetadata:
        """Return the operator with this state, which replaces one of the same name."""
        rows = self.rows if isinstance(self.rows, pa.Table) else self.rows.toArrow()
        states = operator_states(self.name, self.mode, self.types, rows, operator.parallelism)
        return with_operator_state(operator, self.name, states)


def _unknown(
    operator: OperatorMetadata, state: str, kind: str, known: Iterable[str]
) -> StateNotFoundError:
    listed = ", ".join(f"'{name}'" for name in sorted(known)) or "none"
    return StateNotFoundError(
        f"{operator.title} has no {kind} '{state}' in the savepoint; it has: {listed}. To add a "
        "new state, pass its descriptor instead of its name"
    )


def _check_columns(state: str, rows: Any, wanted: list[str]) -> None:
    if isinstance(rows, pa.Table):
        names = list(rows.column_names)
    elif hasattr(rows, "columns") and hasattr(rows, "sparkSession"):
        names = list(rows.columns)
    else:
        raise InvalidProgramError(
            f"The rows of the state '{state}' must be a Spark DataFrame or a pyarrow.Table, got "
            f"{type(rows).__qualname__}."
        )
    if sorted(names) != sorted(wanted):
        raise InvalidProgramError(
            f"The rows of the state '{state}' must have the columns: {', '.join(wanted)}. "
            f"They have: {', '.join(names) or 'none'}."
        )


def _table(descriptor: StateDescriptor) -> TableDescription:
    ttl = descriptor.ttl_config is not None and descriptor.ttl_config.is_enabled()
    if isinstance(descriptor, ListStateDescriptor):
        return TableDescription(TableKind.LIST, element_type=descriptor.element_type_info, ttl=ttl)
    if isinstance(descriptor, MapStateDescriptor):
        return TableDescription(
            TableKind.MAP,
            element_type=descriptor.value_type_info,
            entry_type=descriptor.key_type_info,
            ttl=ttl,
        )
    return TableDescription(TableKind.VALUE, element_type=descriptor.type_info, ttl=ttl)


def _element_types(
    descriptor: StateDescriptor, mode: Redistribution
) -> tuple[TypeInformation, ...]:
    if mode is Redistribution.BROADCAST and isinstance(descriptor, MapStateDescriptor):
        return descriptor.key_type_info, descriptor.value_type_info
    if mode is not Redistribution.BROADCAST and isinstance(descriptor, ListStateDescriptor):
        return (descriptor.element_type_info,)
    needed = "MapStateDescriptor" if mode is Redistribution.BROADCAST else "ListStateDescriptor"
    raise InvalidProgramError(f"A {mode.value} state needs a {needed}, got {descriptor!r}.")
