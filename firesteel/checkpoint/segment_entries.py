"""Keyed state of a checkpoint as entries: what the segments of a subtask come to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from firesteel.checkpoint.file_systems import FileSystemOptions
from firesteel.checkpoint.keyed_state_files import ForeignClassError, refuse_classes
from firesteel.checkpoint.plain_pickle import foreign_class
from firesteel.checkpoint.segment_store import StorageSegmentStore
from firesteel.state.backend_factory import create_keyed_state
from firesteel.state.backend_settings import HASHMAP, StateBackendSettings
from firesteel.state.changelog import Segment
from firesteel.state.entries import StateEntry
from firesteel.state.segment_format import only_tables

__all__ = ["read_segments"]

_ROCKSDB = StateBackendSettings("rocksdb")


class _SomeTables(StorageSegmentStore):
    """Shows only some tables of a segment, and those only if reading them runs no code."""

    def __init__(
        self, wanted: Collection[str], options: FileSystemOptions | None, *, allow_pickle: bool
    ) -> None:
        super().__init__(None, 0, options)
        self._wanted = wanted
        self._allow_pickle = allow_pickle

    def read(self, segment: Segment) -> bytes:
        payload = b"".join(only_tables(super().read(segment), self._wanted.__contains__))
        if not self._allow_pickle:
            refuse_classes(payload, segment.path or f"the segment of epoch {segment.epoch}")
        return payload


def read_segments(
    segments: Sequence[Segment],
    states: Collection[str],
    max_parallelism: int,
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> Iterator[StateEntry]:
    """The entries of some states of one subtask.

    Objects of the job's own classes are refused unless ``allow_pickle``: rebuilding them runs their
    code.
    """
    store = _SomeTables(states, options, allow_pickle=allow_pickle)
    # Whoever wrote them: only files of RocksDB's own need RocksDB.
    settings = _ROCKSDB if any(segment.files for segment in segments) else HASHMAP
    backend = create_keyed_state(settings, None, max_parallelism)
    try:
        backend.restore(segments, store)
        present = [state for state in states if state in backend.descriptions()]
        if not allow_pickle:
            for state, pickle in backend.pickles(present):
                foreign = foreign_class(pickle)
                if foreign is not None:
                    raise ForeignClassError(state, "the checkpoint", foreign)
        yield from backend.entries(present)
    finally:
        backend.close()
