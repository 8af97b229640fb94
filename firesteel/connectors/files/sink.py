"""FileSink and its builder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from firesteel.common.configuration import Configuration
from firesteel.common.serialization import BulkWriterFactory, Encoder
from firesteel.connectors.base import Committer, Sink, SinkWriter, WriterContext
from firesteel.connectors.files.buckets import BucketAssigner
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.part_files import OutputFileConfig, RollingPolicy
from firesteel.connectors.files.paths import FilePaths
from firesteel.connectors.files.writer import FileWriter, FileWriterConfig
from firesteel.filesystems.settings import file_system_options

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
    def for_bulk_format(
        base_path: str, writer_factory: BulkWriterFactory
    ) -> FileSink.BulkFormatBuilder:
        """Start building a sink for a format that needs whole files, such as Parquet.

        Each file ends at a checkpoint.

        Args:
            base_path: The directory of the buckets.
            writer_factory: The format.

        >>> from firesteel.datastream.connectors.file_system import FileSink
        >>> from firesteel.datastream.formats.parquet import ParquetBulkWriters
        >>> columns = Types.ROW_NAMED(["id"], [Types.LONG()])
        >>> FileSink.for_bulk_format("/data/out", ParquetBulkWriters.for_row_type(columns)).build()
        FileSink(/data/out)
        """
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        return FileWriter(self._config, state, context=context)

    def create_committer(self) -> Committer:
        return FileCommitter(self._config.paths)

    def with_input_type(self, type_info: Any) -> Sink:
        encoder = self._config.encoder
        if type_info is None or encoder is None:
            return self
        return FileSink(replace(self._config, encoder=encoder.with_type(type_info)))

    def with_configuration(self, configuration: Configuration) -> Sink:
        """Return the sink with the S3 settings of the job.

        >>> from firesteel.common import Configuration
        >>> from firesteel.datastream.connectors.file_system import FileSink
        >>> sink = FileSink.for_row_format("s3://bucket/out", Encoder.simple_string_encoder())
        >>> sink.build().with_configuration(Configuration.from_dict({"s3.access-key": "key"}))
        FileSink(s3://bucket/out)
        """
        paths = self._config.paths.with_options(file_system_options(configuration))
        return FileSink(replace(self._config, paths=paths))

    def __repr__(self) -> str:
        return f"FileSink({self._config.base_path})"

    class _Builder:
        """The settings that the builders of both kinds of format have."""

        _config: FileWriterConfig

        def with_bucket_check_interval(self, interval: int) -> Self:
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

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Set the rule for directories. The default is a directory per hour.

            Args:
                bucket_assigner: The rule.
            """
            self._config = replace(self._config, bucket_assigner=bucket_assigner)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Set the names of files.

            Args:
                output_file_config: The names.
            """
            self._config = replace(self._config, output_file_config=output_file_config)
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Self:
            """Merge small files before they are visible. Each subtask merges its own.

            Args:
                strategy: Decides when files are merged. Until then their records are not visible.
                compactor: Merges files.

            >>> from firesteel.datastream.connectors.file_system import (
            ...     FileCompactor,
            ...     FileCompactStrategy,
            ...     FileSink,
            ... )
            >>> strategy = FileCompactStrategy.builder().set_size_threshold(1024 * 1024).build()
            >>> builder = FileSink.for_row_format("out", Encoder.simple_string_encoder())
            >>> builder.enable_compact(strategy, FileCompactor.concat_file_compactor()).build()
            FileSink(.../out)
            """
            for value, wanted in ((strategy, FileCompactStrategy), (compactor, FileCompactor)):
                if not isinstance(value, wanted):
                    raise TypeError(f"enable_compact expects a {wanted.__name__}, got {value!r}")
            self._config = replace(self._config, compaction=(strategy, compactor))
            return self

        def disable_compact(self) -> Self:
            """Do not merge files, which is the default.

            Files of an earlier run that wait to be merged are finished as they are.
            """
            self._config = replace(self._config, compaction=None)
            return self

        def build(self) -> FileSink:
            """Create the sink."""
            return FileSink(self._config)

    class RowFormatBuilder(_Builder):
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
            self._config = _config_of(base_path, RollingPolicy.default_rolling_policy(), encoder)

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Set the rule for the end of files.

            Files in an object store also end at each checkpoint.

            Args:
                rolling_policy: The rule. The default is ``RollingPolicy.default_rolling_policy()``.
            """
            self._config = replace(self._config, rolling_policy=rolling_policy)
            return self

    class BulkFormatBuilder(_Builder):
        """Builds a FileSink for a format that needs whole files.

        >>> from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
        >>> from firesteel.datastream.formats.csv import CsvBulkWriters, CsvSchema
        >>> schema = CsvSchema.builder().add_string_column("word").build()
        >>> sink = (
        ...     FileSink.for_bulk_format("out", CsvBulkWriters.for_schema(schema))
        ...     .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        ...     .with_bucket_check_interval(10_000)
        ...     .build()
        ... )
        """

        def __init__(self, base_path: str, writer_factory: BulkWriterFactory) -> None:
            if not isinstance(writer_factory, BulkWriterFactory):
                raise TypeError(
                    f"FileSink.for_bulk_format needs a BulkWriterFactory, got {writer_factory!r}"
                )
            policy = RollingPolicy.on_checkpoint_rolling_policy()
            self._config = _config_of(base_path, policy, writer_factory=writer_factory)

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Set the rule for the end of files. They also end at each checkpoint.

            Args:
                rolling_policy: The rule. The default ends files at checkpoints only. The size of an
                    open file does not include the records that its writer has in memory.
            """
            self._config = replace(self._config, rolling_policy=rolling_policy)
            return self


def _config_of(
    base_path: str,
    rolling_policy: RollingPolicy,
    encoder: Encoder | None = None,
    writer_factory: BulkWriterFactory | None = None,
) -> FileWriterConfig:
    paths = FilePaths.of((base_path,))
    return FileWriterConfig(
        base_path=paths.paths[0].rstrip("/"),
        paths=paths,
        encoder=encoder,
        writer_factory=writer_factory,
        bucket_assigner=BucketAssigner.date_time_bucket_assigner(),
        rolling_policy=rolling_policy,
        output_file_config=OutputFileConfig.builder().build(),
        bucket_check_interval=60.0,
    )
