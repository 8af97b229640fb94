"""Changelog segments in checkpoint storage, so that a checkpoint only has to refer to them."""

from __future__ import annotations

import posixpath
import uuid

from firesteel.checkpoint.errors import CorruptFileError
from firesteel.checkpoint.file_systems import FileSystemOptions
from firesteel.checkpoint.storage import FileFacts, Storage, open_storage
from firesteel.state.changelog import CorruptSegmentError, Segment, SegmentStore

__all__ = ["StorageSegmentStore"]


class StorageSegmentStore(SegmentStore):
    """Large segments become files of ``shared``; their handles hold the full location.

    A job that was restored reads segments that lie elsewhere, too: ``options`` say how to reach
    them. Segments are not written durably: whoever completes a checkpoint syncs its files, so that
    an epoch does not wait for the disk.
    """

    def __init__(
        self,
        shared: Storage | None,
        inline_threshold: int,
        options: FileSystemOptions | None = None,
    ) -> None:
        super().__init__(None, inline_threshold)
        self._shared = shared
        self._options = options
        self._others: dict[str, Storage] = {}

    def write(self, payload: bytes, *, epoch: int, full: bool, inline_bytes: int = 0) -> Segment:
        if self._shared is None or inline_bytes + len(payload) <= self.inline_threshold:
            return super().write(payload, epoch=epoch, full=full, inline_bytes=inline_bytes)
        # A unique name: two attempts of one task may write at the same time.
        name = f"segment-{epoch}-{uuid.uuid4().hex}"
        facts = self._shared.write(name, payload, durable=False)
        location = self._shared.location_of(name)
        return Segment(epoch, full, facts.size, path=location, checksum=facts.checksum)

    def read(self, segment: Segment) -> bytes:
        if segment.path is None:
            return super().read(segment)
        directory, name = posixpath.split(segment.path)
        facts = FileFacts(name, segment.size, segment.checksum)
        try:
            return self._storage_of(directory).read(name, facts)
        except CorruptFileError as error:
            raise CorruptSegmentError(str(error)) from error

    def _storage_of(self, directory: str) -> Storage:
        if self._shared is not None and self._shared.location == directory:
            return self._shared
        storage = self._others.get(directory)
        if storage is None:
            storage = self._others[directory] = open_storage(directory, self._options)
        return storage
