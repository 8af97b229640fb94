"""FileSink and its builder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firesteel.common.serialization import Encoder
from firesteel.connectors.base import Committer, Sink, SinkWriter, WriterContext
from firesteel.connectors.files.buckets import BucketAssigner
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.part_files import OutputFileConfig, RollingPolicy
from firesteel.connectors.files.writer import FileWriter, FileWriterConfig
from firesteel.errors import NotYetSupportedError
from firesteel.filesystems.file_systems import local_path

__all__ = ["FileSink"]


class FileSink(Sink):
    """Writes records to part files in bucket directories below a base path.

    A finished file, ``part-<uid>-<counter>``, is complete and never changes. Before that its name
    starts with a dot. Files are finished when a checkpoint completes and when the job ends.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
    >>> sink = (
    ...     FileSink.for_row_format("out", Encoder.simple_string_encoder())
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .build()
    ... )
    >>> stream = env.from_collection(["be", "not"], Types.STRING()).sink_to(sink)
    >>> result = env.execute()
    >>> [path.read_text().split() for path in Path("out").glob("part-*")]
    [['be', 'not']]
    """

    def __init__(self, config: FileWriterConfig) -> None:
        self._config = config

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Start building a sink that encodes record by record.

        Args:
            base_path: The directory of the buckets.
            encoder: Makes bytes of a record.
        """
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: Any) -> Any:
        """Raise NotYetSupportedError. Use ``to_dataframe`` to write Parquet.

        Args:
            base_path: The directory of the buckets.
            writer_factory: The format.

        >>> from firesteel.datastream.connectors.file_system import FileSink
        >>> FileSink.for_bulk_format("out", None)
        Traceback (most recent call last):
        firesteel.errors.NotYetSupportedError: FileSink.for_bulk_format is not yet supported ...
        """
        raise NotYetSupportedError(
            "FileSink.for_bulk_format", "use for_row_format, or to_dataframe to write Parquet"
        )

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        return FileWriter(self._config, state, context=context)

    def create_committer(self) -> Committer:
        return FileCommitter()

    def with_input_type(self, type_info: Any) -> Sink:
        if type_info is None:
            return self
        return FileSink(replace(self._config, encoder=self._config.encoder.with_type(type_info)))

    def __repr__(self) -> str:
        return f"FileSink({self._config.base_path})"

    class RowFormatBuilder:
        """Builds a FileSink that encodes record by record.

        >>> from firesteel.datastream.connectors.file_system import (
        ...     BucketAssigner,
        ...     FileSink,
        ...     OutputFileConfig,
        ...     RollingPolicy,
        ... )
        >>> names = OutputFileConfig.builder().with_part_suffix(".txt").build()
        >>> sink = (
        ...     FileSink.for_row_format("out", Encoder.simple_string_encoder())
        ...     .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd"))
        ...     .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=1024))
        ...     .with_output_file_config(names)
        ...     .with_bucket_check_interval(10_000)
        ...     .disable_compact()
        ...     .build()
        ... )
        """

        def __init__(self, base_path: str, encoder: Encoder) -> None:
            if not isinstance(encoder, Encoder):
                raise TypeError(f"FileSink.for_row_format needs an Encoder, got {encoder!r}")
            self._config = FileWriterConfig(
                base_path=local_path(base_path, "FileSink"),
                encoder=encoder,
                bucket_assigner=BucketAssigner.date_time_bucket_assigner(),
                rolling_policy=RollingPolicy.default_rolling_policy(),
                output_file_config=OutputFileConfig.builder().build(),
                bucket_check_interval=60.0,
            )

        def with_bucket_check_interval(self, interval: int) -> FileSink.RowFormatBuilder:
            """Set the interval in which open files are compared with the clock.

            Args:
                interval: Milliseconds. The default is one minute.

            Raises:
                ValueError: The interval is not positive.
            """
            if interval <= 0:
                raise ValueError(f"The bucket check interval must be positive, got {interval}")
            self._config = replace(self._config, bucket_check_interval=interval / 1000)
            return self

        def with_bucket_assigner(
            self, bucket_assigner: BucketAssigner
        ) -> FileSink.RowFormatBuilder:
            """Set the rule for directories. The default is a directory per hour.

            Args:
                bucket_assigner: The rule.
            """
            self._config = replace(self._config, bucket_assigner=bucket_assigner)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.RowFormatBuilder:
            """Set the rule for the end of files.

            Args:
                rolling_policy: The rule. The default is ``RollingPolicy.default_rolling_policy()``.
            """
            self._config = replace(self._config, rolling_policy=rolling_policy)
            return self

        def with_output_file_config(
            self, output_file_config: OutputFileConfig
        ) -> FileSink.RowFormatBuilder:
            """Set the names of files.

            Args:
                output_file_config: The names.
            """
            self._config = replace(self._config, output_file_config=output_file_config)
            return self

        def enable_compact(self, strategy: Any, compactor: Any) -> FileSink.RowFormatBuilder:
            """Raise NotYetSupportedError. Small files are not merged.

            Args:
                strategy: The rule for merging.
                compactor: Merges files.

            >>> from firesteel.datastream.connectors.file_system import FileSink
            >>> builder = FileSink.for_row_format("out", Encoder.simple_string_encoder())
            >>> builder.enable_compact(None, None)
            Traceback (most recent call last):
            firesteel.errors.NotYetSupportedError: FileSink.RowFormatBuilder.enable_compact ...
            """
            raise NotYetSupportedError("FileSink.RowFormatBuilder.enable_compact")

        def disable_compact(self) -> FileSink.RowFormatBuilder:
            """Do nothing, because files are never merged."""
            return self

        def build(self) -> FileSink:
            """Create the sink."""
            return FileSink(self._config)
