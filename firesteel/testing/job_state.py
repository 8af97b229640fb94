"""The confirmed keyed state of a job, for a test to look at."""

from __future__ import annotations

from collections import Counter
from typing import Any

from firesteel.checkpoint.keyed_restore import restore_keyed_state
from firesteel.master.job_master import JobMaster
from firesteel.state.changelog import SegmentStore
from firesteel.state.hashmap.keyed_state import HashMapKeyedState
from firesteel.task.messages import OperatorHandle

KeyedStates = dict[str, dict[str, dict[Any, Any]]]
"""Operator (its uid, or its name) -> state -> key, or (key, namespace) -> value."""


def keyed_states(master: JobMaster, store: SegmentStore) -> KeyedStates:
    """Of all subtasks together. An operator whose name is not unique is called by its id, too."""
    names = Counter(node.uid or node.name for node, _ in master.operator_handles())
    states: KeyedStates = {}
    for node, handle in master.operator_handles():
        name = node.uid or node.name
        if names[name] > node.parallelism:
            name = f"{name} ({node.operator_id})"
        for state, values in _tables(handle, store).items():
            if values:
                states.setdefault(name, {}).setdefault(state, {}).update(values)
    return states


def _tables(handle: OperatorHandle, store: SegmentStore) -> dict[str, dict[Any, Any]]:
    backend = HashMapKeyedState()
    restored = handle.restored
    if restored is None:
        backend.restore(handle.segments, store)
    else:
        restore_keyed_state(
            backend, restored.assignment, restored.max_parallelism, restored.states, store
        )
    return backend.snapshot()
