"""Restores keyed state from the handle of an operator."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from firesteel.checkpoint.rules.redistribution import KeyedPart
from firesteel.checkpoint.rules.restore import SubtaskAssignment
from firesteel.checkpoint.state_descriptions import StateDescription, table_descriptions
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.checkpoint.storage.verification import facts_of
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.protocol.messages import OperatorHandle
from firesteel.state.backend import KeyedStateBackend, KeyGroupFilter
from firesteel.state.changelog import SegmentStore


def restore_from_handle(
    backend: KeyedStateBackend,
    handle: OperatorHandle,
    store: SegmentStore,
    options: FileSystemOptions | None = None,
) -> None:
    """Restore from the subtask's own segments, or from those that a checkpoint assigns to it."""
    restored = handle.restored
    if restored is None:
        backend.restore(handle.segments, store)
        return
    restore_keyed_state(
        backend, restored.assignment, restored.max_parallelism, restored.states, store, options
    )


def restore_keyed_state(
    backend: KeyedStateBackend,
    assignment: SubtaskAssignment,
    max_parallelism: int,
    states: Iterable[StateDescription],
    store: SegmentStore,
    options: FileSystemOptions | None = None,
) -> None:
    """Restore the assigned states. ``options`` give access to savepoints."""
    parts = assignment.keyed
    if not assignment.must_materialize:
        backend.restore(parts[0].segments if parts else (), store)
        return
    backend.restore((), store)
    only = KeyGroupFilter(assignment.key_groups, max_parallelism)
    for part in sorted(parts, key=_bytes_to_take_over, reverse=True):
        wanted = None if part.is_exact else only
        if part.segments:
            backend.add(part.segments, store, wanted)
        if part.files:
            backend.declare_restored(table_descriptions(states))
        for file in part.files:
            directory = open_storage(posixpath.dirname(file.path), options)
            facts = facts_of(file)
            backend.load(directory.read(facts.name, facts), wanted)


def _bytes_to_take_over(part: KeyedPart) -> int:
    """The size of the files of a backend. It takes over those of the first part without reading.

    Files with keys that others own count half.
    """
    size = sum(segment.size for segment in part.segments if segment.files)
    return 2 * size if part.is_exact else size
