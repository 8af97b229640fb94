"""Conversion of operator state to tables and back: lists, union lists, broadcast state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.checkpoint.metadata import OperatorMetadata
from firesteel.checkpoint.savepoints.keyed_state_files import ForeignClassError
from firesteel.checkpoint.savepoints.plain_pickle import foreign_class
from firesteel.checkpoint.savepoints.plain_values import from_plain, plain_column
from firesteel.checkpoint.savepoints.savepoint_reader import StateNotFoundError
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import TypeMismatchError
from firesteel.state.elements import (
    decode_element,
    decode_pair,
    encode_element,
    encode_pair,
    pickles_in,
)
from firesteel.state.operator_state import (
    OperatorState,
    Redistribution,
    describe_elements,
    distribute,
    element_types,
)

__all__ = ["columns_of", "operator_state_table", "operator_states"]

_TITLES = {
    Redistribution.SPLIT: "list state",
    Redistribution.UNION: "union list state",
    Redistribution.BROADCAST: "broadcast state",
}


def columns_of(mode: Redistribution) -> list[str]:
    """The columns of a state. Broadcast state is a map, and the others are lists."""
    return ["key", "value"] if mode is Redistribution.BROADCAST else ["value"]


def operator_state_table(
    operator: OperatorMetadata, name: str, mode: Redistribution, *, allow_pickle: bool = False
) -> pa.Table:
    """The elements of all subtasks. Broadcast state is the same in all subtasks, so one counts."""
    found = [
        subtask.operator_state[name]
        for subtask in operator.subtasks
        if name in subtask.operator_state and subtask.operator_state[name].mode is mode
    ]
    if not found:
        raise StateNotFoundError(
            f"{operator.title} has no {_TITLES[mode]} '{name}'; its operator states are: "
            f"{_known(operator)}"
        )
    is_map = mode is Redistribution.BROADCAST
    if is_map:
        found = found[:1]
    payloads = [element for state in found for element in state.elements]
    if not allow_pickle:
        _refuse_classes(name, payloads, pair=is_map)
    rows = [decode_pair(one) if is_map else (decode_element(one),) for one in payloads]
    types = element_types(found[0].description)
    return pa.table(
        {
            column: plain_column([row[position] for row in rows], types[position])
            for position, column in enumerate(columns_of(mode))
        }
    )


def _known(operator: OperatorMetadata) -> str:
    known = {
        f"'{name}' (a {_TITLES[state.mode]})"
        for subtask in operator.subtasks
        for name, state in subtask.operator_state.items()
    }
    return ", ".join(sorted(known)) or "none"


def _refuse_classes(name: str, payloads: Sequence[bytes], *, pair: bool) -> None:
    for payload in payloads:
        for pickle in pickles_in(payload, pair=pair):
            foreign = foreign_class(pickle)
            if foreign is not None:
                raise ForeignClassError(name, "the operator state", foreign)


def operator_states(
    name: str,
    mode: Redistribution,
    types: Sequence[TypeInformation],
    rows: pa.Table,
    parallelism: int,
) -> list[OperatorState]:
    """The state of each subtask, from the rows of all subtasks."""
    columns = [
        _converted(name, rows.column(column).to_pylist(), kind)
        for column, kind in zip(columns_of(mode), types, strict=True)
    ]
    description = describe_elements(mode, *types)
    if mode is Redistribution.BROADCAST:
        # As in a map, the last one of equal keys counts.
        pairs = dict(zip(*columns, strict=True))
        elements = tuple(encode_pair(key, value) for key, value in pairs.items())
        return [OperatorState(mode, elements, description)] * parallelism
    encoded = list(map(encode_element, columns[0]))
    # A restore merges union lists, so their distribution does not matter.
    shares = distribute(encoded, parallelism)
    return [OperatorState(mode, tuple(share), description) for share in shares]


def _converted(name: str, values: list[Any], type_info: TypeInformation) -> list[Any]:
    try:
        plain = [from_plain(value, type_info) for value in values]
        return type_info.convert_batch(plain, nullable=True)
    except TypeMismatchError as error:
        error.reason = f"{error.reason} It is for the operator state '{name}'."
        raise
