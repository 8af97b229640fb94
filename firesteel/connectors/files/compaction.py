"""Compaction of a file sink: small part files become one before they are visible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from firesteel.errors import InvalidProgramError
from firesteel.stability import public_evolving

__all__ = ["FileCompactStrategy", "FileCompactor"]

_COPY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Rules:
    size_threshold: int | None = None
    checkpoints: int | None = None
    threads: int = 1


class FileCompactStrategy:
    """Decides when a FileSink merges the files of a bucket: by their size, or after checkpoints.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import (
    ...     BucketAssigner,
    ...     FileCompactor,
    ...     FileCompactStrategy,
    ...     FileSink,
    ...     RollingPolicy,
    ... )
    >>> strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(5).build()
    >>> sink = (
    ...     FileSink.for_row_format("out", Encoder.simple_string_encoder())
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=2))
    ...     .enable_compact(strategy, FileCompactor.concat_file_compactor())
    ...     .build()
    ... )
    >>> stream = env.from_collection(["be", "not", "to"], Types.STRING()).sink_to(sink)
    >>> result = env.execute()
    >>> [path.read_text().split() for path in Path("out").glob("compacted-part-*")]
    [['be', 'not', 'to']]
    """

    def __init__(self, rules: _Rules) -> None:
        """Create a strategy. Programs use ``FileCompactStrategy.builder()``."""
        self._rules = rules

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Start building a strategy."""
        return FileCompactStrategy.Builder()

    def is_due(self, size: int, checkpoints: int) -> bool:
        """Return True if files of a bucket are to be merged now. Not in PyFlink.

        Args:
            size: The bytes in the files.
            checkpoints: The number of checkpoints since the first of them.

        >>> from firesteel.datastream.connectors.file_system import FileCompactStrategy
        >>> strategy = FileCompactStrategy.builder().set_size_threshold(1000).build()
        >>> strategy.is_due(999, 7), strategy.is_due(1000, 1)
        (False, True)
        """
        rules = self._rules
        is_large = rules.size_threshold is not None and size >= rules.size_threshold
        is_old = rules.checkpoints is not None and checkpoints >= rules.checkpoints
        return is_large or is_old

    class Builder:
        """Builds a FileCompactStrategy. A size or a number of checkpoints is required.

        >>> from firesteel.datastream.connectors.file_system import FileCompactStrategy
        >>> builder = FileCompactStrategy.builder().set_size_threshold(64 * 1024 * 1024)
        >>> builder = builder.enable_compaction_on_checkpoint(10).set_num_compact_threads(2)
        >>> strategy = builder.build()
        """

        def __init__(self) -> None:
            self._size_threshold: int | None = None
            self._checkpoints: int | None = None
            self._threads = 1

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Merge files when they have this size together.

            Args:
                size_threshold: Bytes.
            """
            self._size_threshold = _positive("set_size_threshold", size_threshold)
            return self

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Merge files after a number of checkpoints, whatever their size.

            Args:
                num_checkpoints_before_compaction: The number of checkpoints.
            """
            self._checkpoints = _positive(
                "enable_compaction_on_checkpoint", num_checkpoints_before_compaction
            )
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Accepted for PyFlink's sake. Each subtask merges its own files.

            Args:
                num_compact_threads: The number of threads.
            """
            self._threads = _positive("set_num_compact_threads", num_compact_threads)
            return self

        def build(self) -> FileCompactStrategy:
            """Create the strategy.

            Raises:
                InvalidProgramError: Neither a size nor a number of checkpoints is set.
            """
            if self._size_threshold is None and self._checkpoints is None:
                raise InvalidProgramError(
                    "FileCompactStrategy: call set_size_threshold or "
                    "enable_compaction_on_checkpoint"
                )
            return FileCompactStrategy(
                _Rules(self._size_threshold, self._checkpoints, self._threads)
            )


class FileCompactor(ABC):
    """Merges files of a FileSink into one. Derive from it for a format of your own.

    >>> import io
    >>> from firesteel.datastream.connectors.file_system import FileCompactor
    >>> out = io.BytesIO()
    >>> compactor = FileCompactor.concat_file_compactor(b"--")
    >>> compactor.compact([io.BytesIO(b"one"), io.BytesIO(b"two")], out)
    >>> out.getvalue()
    b'one--two'
    """

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Return a compactor that writes files one after the other, as for lines of text.

        Args:
            file_delimiter: Bytes to write between two files.
        """
        return _ConcatFileCompactor(file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Return a compactor that copies a single file. Several files are an error.

        >>> from firesteel.datastream.connectors.file_system import FileCompactor
        >>> compactor = FileCompactor.identical_file_compactor()
        """
        return _IdenticalFileCompactor()

    @abstractmethod
    @public_evolving
    def compact(self, inputs: Iterable[BinaryIO], output: BinaryIO) -> None:
        """Write the content of files to one file. Not in PyFlink.

        Args:
            inputs: The files, open for reading. Each is read before the next one is opened.
            output: The new file, open for writing.
        """


class _ConcatFileCompactor(FileCompactor):
    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter

    def compact(self, inputs: Iterable[BinaryIO], output: BinaryIO) -> None:
        for number, file in enumerate(inputs):
            if number and self._delimiter:
                output.write(self._delimiter)
            while data := file.read(_COPY_BYTES):
                output.write(data)


class _IdenticalFileCompactor(_ConcatFileCompactor):
    def __init__(self) -> None:
        super().__init__(b"")

    def compact(self, inputs: Iterable[BinaryIO], output: BinaryIO) -> None:
        files = iter(inputs)
        super().compact([next(files)], output)
        if next(files, None) is not None:
            raise InvalidProgramError(
                "identical_file_compactor merges no files, but there are several: use it with "
                "enable_compaction_on_checkpoint(1) and a RollingPolicy that ends files at "
                "checkpoints only"
            )


def _positive(method: str, value: int) -> int:
    if value <= 0:
        raise ValueError(f"{method} expects a positive number, got {value}")
    return value
