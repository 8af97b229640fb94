"""A part file while it is written: hidden, owned by one writer, finished by a rename."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import Any

from firesteel.errors import FiresteelError, WriteFailedError

__all__ = ["PartFile", "PartFileMissingError"]

_COPY_BYTES = 1024 * 1024


class PartFileMissingError(FiresteelError, FileNotFoundError):
    """A file that a checkpoint relies on is gone or too short."""

    def __init__(self, path: str, length: int, reason: str) -> None:
        super().__init__(
            f"FileSink: a checkpoint relies on {length} bytes of {path}, but {reason}. "
            "Files that begin with a dot belong to running jobs and must not be touched."
        )
        self.path = path
        self.length = length


class PartFile:
    """The open file of a bucket.

    ``in_progress_path`` carries a random id: two attempts at the same task never share a file.
    """

    def __init__(self, bucket_id: str, final_path: str, creation_time: int) -> None:
        directory, name = os.path.split(final_path)
        self.final_path = final_path
        self.in_progress_path = os.path.join(directory, f".{name}.inprogress.{uuid.uuid4()}")
        #: Whether a snapshot names this file, so that it must outlive its writer.
        self.in_snapshot = False
        self._bucket_id = bucket_id
        self._creation_time = creation_time
        self._last_update_time = creation_time
        self._size = 0
        try:
            os.makedirs(directory, exist_ok=True)
            self._file = open(self.in_progress_path, "xb")  # noqa: SIM115 - lives as long as the part
        except OSError as error:
            raise WriteFailedError.of(self.in_progress_path, error) from error

    @staticmethod
    def restore(snapshot: dict[str, Any]) -> PartFile:
        """Go on behind the bytes that a snapshot names, in a copy.

        A copy, because the writer that was thought dead may still be writing.
        """
        part = PartFile(snapshot["bucket"], snapshot["final"], snapshot["created"])
        path, length = snapshot["in_progress"], snapshot["size"]
        try:
            with open(path, "rb") as source:
                while part._size < length:
                    data = source.read(min(_COPY_BYTES, length - part._size))
                    if not data:
                        reason = f"it has only {part._size}"
                        raise PartFileMissingError(path, length, reason)
                    part.write(data, snapshot["updated"])
            part.flush()
        except OSError as error:
            part.discard()
            if isinstance(error, FileNotFoundError) and not isinstance(error, FiresteelError):
                raise PartFileMissingError(path, length, "it is gone") from error
            raise
        return part

    def write(self, data: bytes, now: int) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise WriteFailedError.of(self.in_progress_path, error) from error
        self._size += len(data)
        self._last_update_time = now

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise WriteFailedError.of(self.in_progress_path, error) from error

    def sync(self) -> None:
        """Everything written is on the disk."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise WriteFailedError.of(self.in_progress_path, error) from error

    def close(self) -> None:
        """Whatever counts has been flushed before, so what cannot be written now does not matter."""
        with contextlib.suppress(OSError):
            self._file.close()

    def discard(self) -> None:
        self.close()
        if os.path.exists(self.in_progress_path):
            os.unlink(self.in_progress_path)

    def snapshot(self) -> dict[str, Any]:
        self.in_snapshot = True
        return {
            "bucket": self._bucket_id,
            "in_progress": self.in_progress_path,
            "final": self.final_path,
            "size": self._size,
            "created": self._creation_time,
            "updated": self._last_update_time,
        }

    def get_bucket_id(self) -> str:
        return self._bucket_id

    def get_creation_time(self) -> int:
        return self._creation_time

    def get_size(self) -> int:
        return self._size

    def get_last_update_time(self) -> int:
        return self._last_update_time
