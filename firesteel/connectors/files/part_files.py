"""Part files of a file sink: their names, the rules for their end, and the file being written."""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from firesteel.common.serialization import BulkWriterFactory
from firesteel.connectors.files.paths import FilePaths
from firesteel.errors import FiresteelError, WriteFailedError
from firesteel.filesystems.file_systems import LocalFileSystem
from firesteel.stability import public_evolving


class OutputFileConfig:
    """The names of part files: ``<prefix>-<uid>-<counter><suffix>``.

    Args:
        part_prefix: The start of the names.
        part_suffix: The end of the names.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import (
    ...     BucketAssigner,
    ...     FileSink,
    ...     OutputFileConfig,
    ... )
    >>> builder = OutputFileConfig.builder().with_part_prefix("words").with_part_suffix(".txt")
    >>> names = builder.build()
    >>> names.get_part_prefix(), names.get_part_suffix()
    ('words', '.txt')
    >>> sink = (
    ...     FileSink.for_row_format("out", Encoder.simple_string_encoder())
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .with_output_file_config(names)
    ...     .build()
    ... )
    >>> stream = env.from_collection(["be"], Types.STRING()).sink_to(sink)
    >>> result = env.execute()
    >>> [path.name for path in Path("out").iterdir()]
    ['words-...-0.txt']
    """

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        for text in (part_prefix, part_suffix):
            if "/" in text:
                raise ValueError(f"A part file's name cannot contain '/': {text!r}")
        self._part_prefix = part_prefix
        self._part_suffix = part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Start building names."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """Return the start of the names."""
        return self._part_prefix

    def get_part_suffix(self) -> str:
        """Return the end of the names."""
        return self._part_suffix

    class OutputFileConfigBuilder:
        """Builds an OutputFileConfig. The defaults are ``part`` and no suffix.

        >>> from firesteel.datastream.connectors.file_system import OutputFileConfig
        >>> builder = OutputFileConfig.builder().with_part_prefix("words").with_part_suffix(".txt")
        >>> builder.build().get_part_suffix()
        '.txt'
        """

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the start of the names.

            Args:
                prefix: The text, without ``/``.
            """
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the end of the names.

            Args:
                suffix: The text, without ``/``.
            """
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Create the OutputFileConfig."""
            return OutputFileConfig(self.part_prefix, self.part_suffix)


@public_evolving
class PartFileInfo(Protocol):
    """Facts about an open part file, for a RollingPolicy. Not in PyFlink.

    >>> from firesteel.datastream.connectors.file_system import RollingPolicy
    >>> class HourlyPerBucket(RollingPolicy):
    ...     def should_roll_on_event(self, part_file, element):
    ...         return part_file.get_bucket_id() == "large" and part_file.get_size() > 1_000_000
    ...     def should_roll_on_processing_time(self, part_file, current_time):
    ...         idle = current_time - part_file.get_last_update_time()
    ...         age = current_time - part_file.get_creation_time()
    ...         return idle > 60_000 or age > 3_600_000
    """

    def get_bucket_id(self) -> str:
        """Return the bucket of the file."""

    def get_creation_time(self) -> int:
        """Return the time of the first record, in milliseconds."""

    def get_size(self) -> int:
        """Return the size of the file in bytes."""

    def get_last_update_time(self) -> int:
        """Return the time of the last record, in milliseconds."""


class RollingPolicy(ABC):
    """Decides when a FileSink ends a part file. Derive from it for a rule of your own.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import (
    ...     BucketAssigner,
    ...     FileSink,
    ...     RollingPolicy,
    ... )
    >>> class OneRecordPerFile(RollingPolicy):
    ...     def should_roll_on_event(self, part_file, element):
    ...         return part_file.get_size() > 0
    >>> sink = (
    ...     FileSink.for_row_format("out", Encoder.simple_string_encoder())
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .with_rolling_policy(OneRecordPerFile())
    ...     .build()
    ... )
    >>> stream = env.from_collection(["be", "not"], Types.STRING()).sink_to(sink)
    >>> result = env.execute()
    >>> len(list(Path("out").iterdir()))
    2
    """

    @public_evolving
    def should_roll_on_checkpoint(self, part_file: PartFileInfo) -> bool:
        """Return True to end the file at a checkpoint. Not in PyFlink.

        Args:
            part_file: The open file.

        >>> from firesteel.datastream.connectors.file_system import RollingPolicy
        >>> RollingPolicy.on_checkpoint_rolling_policy().should_roll_on_checkpoint(None)
        True
        """
        return False

    @abstractmethod
    @public_evolving
    def should_roll_on_event(self, part_file: PartFileInfo, element: Any) -> bool:
        """Return True to write a record into a new file. Not in PyFlink.

        Args:
            part_file: The open file.
            element: The record.
        """

    @public_evolving
    def should_roll_on_processing_time(self, part_file: PartFileInfo, current_time: int) -> bool:
        """Return True to end the file at a time. Not in PyFlink.

        Asked in the bucket check interval of the sink.

        Args:
            part_file: The open file.
            current_time: The time in milliseconds.

        >>> from firesteel.datastream.connectors.file_system import RollingPolicy
        >>> class OpenFile:
        ...     def get_creation_time(self):
        ...         return 0
        ...     def get_last_update_time(self):
        ...         return 50_000
        >>> policy = RollingPolicy.default_rolling_policy()
        >>> policy.should_roll_on_processing_time(OpenFile(), 60_000)
        True
        """
        return False

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """Return a policy by size, age and idle time.

        Args:
            part_size: The size in bytes at which a file ends.
            rollover_interval: The age in milliseconds at which a file ends.
            inactivity_interval: The time without records in milliseconds after which a file ends.

        Raises:
            ValueError: A value is not positive.

        >>> from firesteel.datastream.connectors.file_system import RollingPolicy
        >>> policy = RollingPolicy.default_rolling_policy(part_size=1024 * 1024)
        """
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Return a policy that ends files at each checkpoint, and only then.

        >>> from firesteel.datastream.connectors.file_system import RollingPolicy
        >>> policy = RollingPolicy.on_checkpoint_rolling_policy()
        >>> policy.should_roll_on_checkpoint(None), policy.should_roll_on_event(None, "be")
        (True, False)
        """
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """Ends files by size, age and idle time.

    Args:
        part_size: The size in bytes at which a file ends.
        rollover_interval: The age in milliseconds at which a file ends.
        inactivity_interval: The time without records in milliseconds after which a file ends.

    >>> from firesteel.datastream.connectors.file_system import RollingPolicy
    >>> RollingPolicy.default_rolling_policy(part_size=1024).part_size
    1024
    """

    def __init__(self, part_size: int, rollover_interval: int, inactivity_interval: int) -> None:
        for name, value in (
            ("part_size", part_size),
            ("rollover_interval", rollover_interval),
            ("inactivity_interval", inactivity_interval),
        ):
            if value <= 0:
                raise ValueError(f"{name} must be positive, got {value}")
        self.part_size = part_size
        self._rollover_interval = rollover_interval
        self._inactivity_interval = inactivity_interval

    def should_roll_on_checkpoint(self, part_file: PartFileInfo) -> bool:
        return part_file.get_size() > self.part_size

    def should_roll_on_event(self, part_file: PartFileInfo, element: Any) -> bool:
        return part_file.get_size() > self.part_size

    def should_roll_on_processing_time(self, part_file: PartFileInfo, current_time: int) -> bool:
        return (
            current_time - part_file.get_creation_time() >= self._rollover_interval
            or current_time - part_file.get_last_update_time() >= self._inactivity_interval
        )


class OnCheckpointRollingPolicy(RollingPolicy):
    """Ends files at each checkpoint, and only then.

    >>> from firesteel.datastream.connectors.file_system import OnCheckpointRollingPolicy
    >>> OnCheckpointRollingPolicy().should_roll_on_checkpoint(None)
    True
    """

    def should_roll_on_checkpoint(self, part_file: PartFileInfo) -> bool:
        return True

    def should_roll_on_event(self, part_file: PartFileInfo, element: Any) -> bool:
        return False


class PartFileMissingError(FiresteelError, FileNotFoundError):
    """A file that a checkpoint needs is missing or too short."""

    def __init__(self, path: str, length: int, reason: str) -> None:
        super().__init__(
            f"FileSink: a checkpoint needs {length} bytes of {path}, but {reason}. "
            "Files that begin with a dot belong to running jobs. Do not move, change or delete "
            "them."
        )
        self.path = path
        self.length = length


def has_writer(path: str) -> bool:
    """Return True if a writer may still have the file open, on this machine or a different one."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


class PartFile(ABC):
    """The open file of a bucket. It is hidden until a commit finishes it.

    ``in_progress_path`` contains a random id, so two attempts of a task never share a file.
    ``is_resumable``: a snapshot can name the bytes written so far. Otherwise they are lost with the
    writer, and the file ends at each checkpoint.
    """

    def __init__(
        self,
        bucket_id: str,
        final_path: str,
        creation_time: int,
        open_file: Callable[[str], LocalFile | RemoteFile],
    ) -> None:
        directory, _, name = final_path.rpartition("/")
        self.final_path = final_path
        self.in_progress_path = f"{directory}/.{name}.inprogress.{uuid.uuid4()}"
        #: True if a snapshot names this file. It must then survive its writer.
        self.in_snapshot = False
        self._bucket_id = bucket_id
        self._creation_time = creation_time
        self._last_update_time = creation_time
        self._place = open_file(self.in_progress_path)
        self.is_resumable = self._place.is_resumable

    @abstractmethod
    def write(self, values: list[Any], now: int) -> None:
        """Write records."""

    @abstractmethod
    def get_size(self) -> int: ...

    def flush(self) -> None:
        """Hand everything to the operating system that a snapshot may name."""
        if self.is_resumable:
            self._place.flush()

    def sync(self) -> None:
        """Make everything survive a crash of the machine that a snapshot may name."""
        if self.is_resumable:
            self._place.sync()

    def finish(self) -> None:
        """Write the end of the file, make all of it survive a crash, and close it."""
        self._place.finish()

    def close(self) -> None:
        """Close the file. Everything that matters was flushed before, so errors are ignored."""
        self._place.close()

    def discard(self) -> None:
        """Close and remove the file."""
        self._place.discard()

    def snapshot(self) -> dict[str, Any]:
        self.in_snapshot = True
        return {
            "bucket": self._bucket_id,
            "in_progress": self.in_progress_path,
            "final": self.final_path,
            "size": self.get_size(),
            "created": self._creation_time,
            "updated": self._last_update_time,
        }

    def get_bucket_id(self) -> str:
        return self._bucket_id

    def get_creation_time(self) -> int:
        return self._creation_time

    def get_last_update_time(self) -> int:
        return self._last_update_time


class RowPartFile(PartFile):
    """A file of encoded records."""

    def __init__(
        self,
        bucket_id: str,
        final_path: str,
        creation_time: int,
        open_file: Callable[[str], LocalFile | RemoteFile],
        encode: Callable[[list[Any]], bytes],
    ) -> None:
        super().__init__(bucket_id, final_path, creation_time, open_file)
        self._encode = encode
        self._size = 0

    def write(self, values: list[Any], now: int) -> None:
        self.write_bytes(self._encode(values), now)

    def write_bytes(self, data: bytes, now: int) -> None:
        try:
            self._place.file.write(data)
        except OSError as error:
            raise WriteFailedError.of(self.in_progress_path, error) from error
        self._size += len(data)
        self._last_update_time = now

    def get_size(self) -> int:
        return self._size


class BulkPartFile(PartFile):
    """A file whose format needs an end, such as Parquet."""

    def __init__(
        self,
        bucket_id: str,
        final_path: str,
        creation_time: int,
        open_file: Callable[[str], LocalFile | RemoteFile],
        factory: BulkWriterFactory,
    ) -> None:
        super().__init__(bucket_id, final_path, creation_time, open_file)
        self.is_resumable = False
        self._writer = factory.create(self._place.file)
        self._size: int | None = None

    def write(self, values: list[Any], now: int) -> None:
        try:
            self._writer.add_elements(values)
        except OSError as error:
            raise WriteFailedError.of(self.in_progress_path, error) from error
        self._last_update_time = now

    def finish(self) -> None:
        try:
            self._writer.finish()
            self._size = self._place.file.tell()
        except OSError as error:
            raise WriteFailedError.of(self.in_progress_path, error) from error
        super().finish()

    def get_size(self) -> int:
        """Return the bytes in the file. The writer may have more in memory."""
        return int(self._place.file.tell()) if self._size is None else self._size


class LocalFile:
    """A hidden file on a local disk."""

    is_resumable = True

    def __init__(self, path: str, disk: LocalFileSystem) -> None:
        self.path = path
        self._disk = disk
        self._entry_is_durable = False
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.file = open(path, "xb")  # noqa: SIM115 - lives as long as the part
            # Held until the file is closed. Not all file systems have locks.
            with contextlib.suppress(OSError):
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise WriteFailedError.of(path, error) from error

    def flush(self) -> None:
        try:
            self.file.flush()
        except OSError as error:
            raise WriteFailedError.of(self.path, error) from error

    def sync(self) -> None:
        """Write everything to the disk, with the entry of the file in its directory."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            if not self._entry_is_durable:
                self._disk.sync_directory(os.path.dirname(self.path))
                self._entry_is_durable = True
        except OSError as error:
            raise WriteFailedError.of(self.path, error) from error

    def finish(self) -> None:
        self.sync()
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()

    def discard(self) -> None:
        self.close()
        if os.path.exists(self.path):
            os.unlink(self.path)


class RemoteFile:
    """A hidden object in an object store. It appears when it is closed.

    The store receives a large object in parts while records arrive (a multipart upload). Parts of
    an object that is never closed are invisible. A rule of the bucket should remove them.
    """

    is_resumable = False

    def __init__(self, path: str, paths: FilePaths) -> None:
        self.path = path
        self._system, self._inner, _ = paths.locate(path)
        try:
            self.file = self._system.create(self._inner)
        except OSError as error:
            raise WriteFailedError.of(path, error) from error

    def flush(self) -> None:
        """Do nothing: no snapshot names the object before its end."""

    def sync(self) -> None:
        """Do nothing: no snapshot names the object before its end."""

    def finish(self) -> None:
        try:
            size = self.file.tell()
            self.file.close()
            found = self._system.size(self._inner)
        except OSError as error:
            raise WriteFailedError.of(self.path, error) from error
        if found != size:
            loss = OSError(f"{size} bytes were written, but the store has {found or 0}")
            raise WriteFailedError.of(self.path, loss)

    def close(self) -> None:
        """Remove the object, unless it was finished: without its end it is worth nothing."""
        if not self.file.closed:
            self.discard()

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            self._system.delete(self._inner)
