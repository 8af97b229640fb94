"""Descriptions of states in checkpoints. Types are data, so reading them runs no code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.operator_state import OperatorStates
from firesteel.state.table_descriptions import TableDescription, describe_table, table_of
from firesteel.state.type_descriptions import UnknownTypeError, describe_type, type_of

_TABLE_KINDS = frozenset({"value", "list", "map"})
_NO_TABLE = "operator "


@dataclass(frozen=True, slots=True)
class StateDescription:
    """A named state.

    ``kind``: the kind of its table (value, list, map), or ``operator`` with a redistribution.
    ``types``: JSON from ``state.type_descriptions``.
    """

    name: str
    kind: str
    types: dict[str, Any] = field(default_factory=dict)


def describe_tables(
    tables: Mapping[str, TableDescription], key_type: TypeInformation | None = None
) -> tuple[StateDescription, ...]:
    """Describe keyed states, from ``KeyedStateBackend.descriptions()``."""
    key = None if key_type is None else describe_type(key_type)
    return tuple(
        StateDescription(name, table.kind.value, {**_without_kind(table), "key_type": key})
        for name, table in sorted(tables.items())
    )


def describe_operator_states(states: OperatorStates) -> tuple[StateDescription, ...]:
    """Describe operator states: lists and broadcast states."""
    return tuple(
        StateDescription(
            name, f"{_NO_TABLE}{state.mode.value}", {"elements": json.loads(state.description)[1:]}
        )
        for name, state in sorted(states.items())
    )


def table_descriptions(states: Iterable[StateDescription]) -> dict[str, TableDescription]:
    """The descriptions of the keyed states, for ``KeyedStateBackend.load``."""
    return {state.name: _table(state) for state in states if state.kind in _TABLE_KINDS}


def key_type_of(states: Iterable[StateDescription], name: str) -> TypeInformation | None:
    """The declared key type of a keyed state, or None."""
    described = next(state for state in states if state.name == name).types.get("key_type")
    return None if described is None else type_of(described)


def in_words(state: StateDescription) -> str:
    """A description for messages and listings. Unknown types are shown as JSON."""
    if state.kind not in _TABLE_KINDS:
        elements = " to ".join(map(_type_text, state.types.get("elements", ())))
        return f"an {state.kind} state" + (f" of {elements}" if elements else "")
    try:
        words = str(_table(state))
    except (KeyError, UnknownTypeError):
        return f"a {state.kind} state of {state.types}"
    key = state.types.get("key_type")
    return words if key is None else f"{words} by keys of type {_type_text(key)}"


def _table(state: StateDescription) -> TableDescription:
    return table_of({**state.types, "kind": state.kind})


def _without_kind(table: TableDescription) -> dict[str, Any]:
    described = describe_table(table)
    del described["kind"]
    return described


def _type_text(described: Any) -> str:
    if isinstance(described, str):
        return described
    name, *inner = described
    return f"{name}({', '.join(map(_type_text, inner))})"
