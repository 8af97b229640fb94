"""Keyed state comes back as an operator's handle says."""

from __future__ import annotations

from firesteel.checkpoint.file_systems import FileSystemOptions
from firesteel.checkpoint.keyed_restore import restore_keyed_state
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import SegmentStore
from firesteel.task.messages import OperatorHandle


def restore_from_handle(
    backend: KeyedStateBackend,
    handle: OperatorHandle,
    store: SegmentStore,
    options: FileSystemOptions | None = None,
) -> None:
    """From the subtask's own segments, or from what a checkpoint assigns to it."""
    restored = handle.restored
    if restored is None:
        backend.restore(handle.segments, store)
        return
    restore_keyed_state(
        backend, restored.assignment, restored.max_parallelism, restored.states, store, options
    )
