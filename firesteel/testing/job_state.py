"""The confirmed keyed state of a job, for a test to look at."""

from __future__ import annotations

from collections import Counter
from typing import Any

from firesteel.graph.key_types import key_types_of
from firesteel.master.job_master import JobMaster
from firesteel.state.backend_factory import create_keyed_state
from firesteel.state.changelog import SegmentStore
from firesteel.task.program import JobProgram
from firesteel.task.restoring import restore_from_handle

KeyedStates = dict[str, dict[str, dict[Any, Any]]]
"""Operator (its uid, or its name) -> state -> key, or (key, namespace) -> value."""


def keyed_states(master: JobMaster, program: JobProgram, store: SegmentStore) -> KeyedStates:
    """Of all subtasks together. An operator whose name is not unique is called by its id, too."""
    names = Counter(node.uid or node.name for node, _ in master.operator_handles())
    key_types = key_types_of(program.levels.job_graph)
    states: KeyedStates = {}
    for node, handle in master.operator_handles():
        name = node.uid or node.name
        if names[name] > node.parallelism:
            name = f"{name} ({node.operator_id})"
        if node.id not in key_types:
            continue
        backend = create_keyed_state(
            program.state_backend, key_types[node.id], node.max_parallelism
        )
        try:
            restore_from_handle(backend, handle, store)
            tables = backend.snapshot()
        finally:
            backend.close()
        for state, values in tables.items():
            if values:
                states.setdefault(name, {}).setdefault(state, {}).update(values)
    return states
