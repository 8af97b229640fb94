"""FileSource and its builder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.common.time import Duration
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.files.enumerator import FileSplitEnumerator
from firesteel.connectors.files.paths import FilePaths
from firesteel.connectors.files.reader import FileReader
from firesteel.filesystems.settings import file_system_options
from firesteel.formats.base import BulkFormat, FileFormat, StreamFormat
from firesteel.stability import public_evolving

__all__ = [
    "FileEnumeratorProvider",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
]


class FileEnumeratorProvider:
    """Chooses if several subtasks may read a large file. By default a file is read by one.

    Both kinds descend into directories and skip hidden files, whose names start with ``.`` or
    ``_``.

    >>> from firesteel.datastream.connectors.file_system import FileEnumeratorProvider
    >>> FileEnumeratorProvider.default_splittable_file_enumerator().split_files
    True
    >>> FileEnumeratorProvider.default_non_splittable_file_enumerator().split_files
    False
    """

    def __init__(self, split_files: bool) -> None:
        self._split_files = split_files

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Return the choice to divide large files. Compressed files are never divided."""
        return FileEnumeratorProvider(split_files=True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Return the choice of a split per file, so that the lines of a file stay in order.

        This is the default for lines of text, as in Flink.
        """
        return FileEnumeratorProvider(split_files=False)

    @property
    @public_evolving
    def split_files(self) -> bool:
        """True if large files are divided. Not in PyFlink."""
        return self._split_files


class FileSplitAssignerProvider:
    """Chooses the subtask that reads a split.

    There is one rule: a subtask that has read its splits gets the next ones. Splits have no host,
    so Flink's locality-aware rule gives the same result.

    >>> from firesteel.datastream.connectors.file_system import (
    ...     FileSource,
    ...     FileSplitAssignerProvider,
    ...     StreamFormat,
    ... )
    >>> assigner = FileSplitAssignerProvider.locality_aware_split_assigner()
    >>> text = StreamFormat.text_line_format()
    >>> builder = FileSource.for_record_stream_format(text, "/data/in")
    >>> builder.set_split_assigner(assigner).build()
    FileSource(/data/in)
    """

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Return the rule: a subtask that has read its splits gets the next ones."""
        return FileSplitAssignerProvider()


@dataclass(frozen=True, slots=True)
class FileSourceConfig:
    """The settings of a file source.

    Broken records fail the job, are skipped and counted, or go to the side output of a tag.
    """

    format: FileFormat
    paths: FilePaths
    split_files: bool
    discovery_interval: Duration | None = None
    in_time_order: bool = False
    fails_on_broken_records: bool = True
    broken_records_tag: str | None = None


class FileSource(Source):
    """Reads files: those that exist, or also those that appear while the job runs.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
    >>> size = Path("words.txt").write_text("be not")
    >>> source = FileSource.for_record_stream_format(
    ...     StreamFormat.text_line_format(), "words.txt"
    ... ).process_static_file_set().build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "words")
    >>> list(stream.execute_and_collect())
    ['be not']
    """

    side_by_side = False

    def __init__(self, config: FileSourceConfig) -> None:
        self._config = config
        self.gives_columns = config.format.gives_columns
        self.in_time_order = config.in_time_order
        self.broken_records_tag = config.broken_records_tag

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Start building a source that reads record by record.

        Args:
            stream_format: The format of the files.
            *paths: Files, directories or glob patterns, as local paths or URIs.
        """
        if not isinstance(stream_format, StreamFormat):
            raise TypeError(f"FileSource needs a StreamFormat, got {stream_format!r}")
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Start building a source that reads batches of records.

        Args:
            bulk_format: The format of the files.
            *paths: Files, directories or glob patterns, as local paths or URIs.

        >>> import pyarrow as pa, pyarrow.parquet
        >>> from firesteel.datastream.connectors.file_system import FileSource
        >>> from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
        >>> pa.parquet.write_table(pa.table({"id": [1, 2]}), "ids.parquet")
        >>> columns = Types.ROW_NAMED(["id"], [Types.LONG()])
        >>> parquet = ParquetColumnarRowInputFormat(columns)
        >>> source = FileSource.for_bulk_file_format(parquet, "ids.parquet").build()
        >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "ids")
        >>> list(stream.execute_and_collect())
        [Row(id=1), Row(id=2)]
        """
        if not isinstance(bulk_format, BulkFormat):
            raise TypeError(f"FileSource needs a BulkFormat, got {bulk_format!r}")
        return FileSourceBuilder(bulk_format, paths)

    def get_boundedness(self) -> Boundedness:
        if self._config.discovery_interval is None:
            return Boundedness.BOUNDED
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        config = self._config
        interval = config.discovery_interval
        return FileSplitEnumerator(
            config.paths,
            config.format,
            parallelism=parallelism,
            split_files=config.split_files,
            discovery_interval=None if interval is None else interval.to_nanos() / 1e9,
            state=state,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader:
        config = self._config
        return FileReader(
            config.format, config.paths, fail_on_broken_records=config.fails_on_broken_records
        )

    def with_configuration(self, configuration: Configuration) -> Source:
        """Return the source with the S3 settings of the job.

        >>> from firesteel.common import Configuration
        >>> from firesteel.datastream.connectors.file_system import StreamFormat
        >>> text = StreamFormat.text_line_format()
        >>> source = FileSource.for_record_stream_format(text, "s3://bucket/in").build()
        >>> settings = {"s3.access-key": "key", "s3.secret-key": "secret"}
        >>> source.with_configuration(Configuration.from_dict(settings))
        FileSource(s3://bucket/in)
        """
        paths = self._config.paths.with_options(file_system_options(configuration))
        return FileSource(replace(self._config, paths=paths))

    def get_produced_type(self) -> Any:
        return self._config.format.get_produced_type()

    def __repr__(self) -> str:
        return f"FileSource({', '.join(self._config.paths.paths)})"


class FileSourceBuilder:
    """Builds a FileSource.

    >>> from firesteel.datastream.connectors.file_system import (
    ...     FileEnumeratorProvider,
    ...     FileSource,
    ...     StreamFormat,
    ... )
    >>> text = StreamFormat.text_line_format()
    >>> builder = FileSource.for_record_stream_format(text, "/data/in", "/data/archive/*.gz")
    >>> builder = builder.set_file_enumerator(
    ...     FileEnumeratorProvider.default_non_splittable_file_enumerator()
    ... )
    >>> builder.process_static_file_set().build()
    FileSource(/data/in, /data/archive/*.gz)
    """

    def __init__(self, file_format: FileFormat, paths: tuple[str, ...]) -> None:
        if not paths:
            raise ValueError("FileSource needs at least one path")
        self._config = FileSourceConfig(
            file_format, FilePaths.of(paths), split_files=file_format.splits_by_default
        )

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder:
        """Look for new files without end. The source is unbounded.

        Args:
            discovery_interval: The time between two listings.

        Raises:
            ValueError: The time is not positive.

        >>> from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
        >>> text = StreamFormat.text_line_format()
        >>> builder = FileSource.for_record_stream_format(text, "/data/in")
        >>> source = builder.monitor_continuously(Duration.of_seconds(10)).build()
        >>> source.get_boundedness().name
        'CONTINUOUS_UNBOUNDED'
        """
        if discovery_interval.to_nanos() <= 0:
            raise ValueError(f"The discovery interval must be positive, got {discovery_interval!r}")
        self._config = replace(self._config, discovery_interval=discovery_interval)
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """End after the files that exist when the job starts. This is the default."""
        self._config = replace(self._config, discovery_interval=None)
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Choose if several subtasks may read a large file.

        Args:
            file_enumerator: The choice. By default a text or CSV file is one split, and files of
                other formats are divided.
        """
        self._config = replace(self._config, split_files=file_enumerator.split_files)
        return self

    @public_evolving
    def set_files_in_time_order(self) -> FileSourceBuilder:
        """Declare that the order of the paths is the order of event time. Not in PyFlink.

        By default the order is unknown, and the watermark waits until no file is left unread. With
        this declaration it advances from the first file on, so windows need less memory. Records
        of a file that is older than the files before it may be late.

        >>> from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
        >>> text = StreamFormat.text_line_format()
        >>> builder = FileSource.for_record_stream_format(text, "/logs/2024-*.txt")
        >>> builder.set_files_in_time_order().build()
        FileSource(/logs/2024-*.txt)
        """
        self._config = replace(self._config, in_time_order=True)
        return self

    @public_evolving
    def skip_broken_records(self) -> FileSourceBuilder:
        """Skip records that cannot be read, and count them. Not in PyFlink.

        The metric ``numRecordsInErrors`` of the source counts them. By default such a record fails
        the job with the file, the line and the reason.

        >>> from pathlib import Path
        >>> from firesteel.datastream.connectors.file_system import FileSource
        >>> from firesteel.datastream.formats.json import JsonReaderFormat
        >>> size = Path("in.json").write_text('{"id": 1}' + chr(10) + '{"id"' + chr(10))
        >>> json = JsonReaderFormat.for_type_info(Types.ROW_NAMED(["id"], [Types.INT()]))
        >>> builder = FileSource.for_record_stream_format(json, "in.json")
        >>> source = builder.skip_broken_records().build()
        >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "json")
        >>> list(stream.execute_and_collect())
        [Row(id=1)]
        """
        self._config = replace(self._config, fails_on_broken_records=False, broken_records_tag=None)
        return self

    @public_evolving
    def side_output_broken_records(self, output_tag: Any) -> FileSourceBuilder:
        """Send records that cannot be read to a side output of the source. Not in PyFlink.

        Args:
            output_tag: The OutputTag to pass to ``get_side_output`` of the stream. Its records are
                of the class ``BrokenRecord``.

        >>> from pathlib import Path
        >>> from firesteel.datastream import OutputTag
        >>> from firesteel.datastream.connectors.file_system import FileSource
        >>> from firesteel.datastream.formats.json import JsonReaderFormat
        >>> size = Path("in.json").write_text('{"id": 1}' + chr(10) + '{"id"' + chr(10))
        >>> json = JsonReaderFormat.for_type_info(Types.ROW_NAMED(["id"], [Types.INT()]))
        >>> broken = OutputTag("broken")
        >>> builder = FileSource.for_record_stream_format(json, "in.json")
        >>> source = builder.side_output_broken_records(broken).build()
        >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "json")
        >>> [record.line for record in stream.get_side_output(broken).execute_and_collect()]
        [2]
        """
        self._config = replace(
            self._config, fails_on_broken_records=False, broken_records_tag=output_tag.tag_id
        )
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Choose the subtask of each split. There is one rule.

        Args:
            split_assigner: The rule.

        >>> from firesteel.datastream.connectors.file_system import (
        ...     FileSource,
        ...     FileSplitAssignerProvider,
        ...     StreamFormat,
        ... )
        >>> text = StreamFormat.text_line_format()
        >>> builder = FileSource.for_record_stream_format(text, "/data/in")
        >>> assigner = FileSplitAssignerProvider.locality_aware_split_assigner()
        >>> builder.set_split_assigner(assigner).build()
        FileSource(/data/in)
        """
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise TypeError(
                f"set_split_assigner expects a FileSplitAssignerProvider, got {split_assigner!r}"
            )
        return self

    def build(self) -> FileSource:
        """Create the source."""
        return FileSource(self._config)
