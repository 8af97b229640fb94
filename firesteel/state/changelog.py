"""Changelog segments: what one epoch changed in one operator subtask, written down.

Small segments travel inside the ack and come back in control rows; large ones are files in a
directory that driver and tasks share, if there is one.
"""

from __future__ import annotations

import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

from firesteel.errors import FiresteelError, WriteFailedError


class CorruptSegmentError(FiresteelError, RuntimeError):
    """A segment file is not what was written."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A handle: either ``inline`` bytes or a file ``path``. ``full`` replaces all earlier segments."""

    epoch: int
    full: bool
    size: int
    inline: bytes | None = None
    path: str | None = None
    checksum: int = 0


class SegmentStore:
    """Writes and reads segments. Without a directory everything stays inline."""

    def __init__(self, directory: str | None, inline_threshold: int) -> None:
        self._directory = Path(directory) if directory is not None else None
        self.inline_threshold = inline_threshold

    def write(self, payload: bytes, *, epoch: int, full: bool, inline_bytes: int = 0) -> Segment:
        """``inline_bytes`` is the size of the inline segments that this one goes with."""
        if self._directory is None or inline_bytes + len(payload) <= self.inline_threshold:
            return Segment(epoch, full, len(payload), inline=payload)
        # A unique name: two attempts of one task may write at the same time.
        path = self._directory / f"segment-{epoch}-{uuid.uuid4().hex}"
        try:
            path.write_bytes(payload)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise WriteFailedError.of(path, error) from error
        return Segment(epoch, full, len(payload), path=str(path), checksum=zlib.crc32(payload))

    def read(self, segment: Segment) -> bytes:
        if segment.inline is not None:
            return segment.inline
        if segment.path is None:
            raise CorruptSegmentError(f"segment of epoch {segment.epoch} has no content")
        payload = Path(segment.path).read_bytes()
        if zlib.crc32(payload) != segment.checksum:
            raise CorruptSegmentError(f"state segment {segment.path} is damaged")
        return payload
