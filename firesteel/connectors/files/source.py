"""FileSource and its builder."""

from __future__ import annotations

from typing import Any

from firesteel.common.time import Duration
from firesteel.common.typeinfo import Types
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.files.enumerator import FileSplitEnumerator
from firesteel.connectors.files.reader import StreamFormat, TextLineReader
from firesteel.connectors.files.storage import qualify
from firesteel.errors import NotYetSupportedError

__all__ = [
    "FileEnumeratorProvider",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
]


class FileEnumeratorProvider:
    """Whether a large file may be read by several subtasks at once.

    Both kinds descend into directories and leave out hidden files (``.`` and ``_``).
    """

    def __init__(self, split_files: bool) -> None:
        self._split_files = split_files

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Large plain files are cut into byte ranges; compressed ones never are."""
        return FileEnumeratorProvider(split_files=True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """One split per file: its lines stay in order, in one subtask."""
        return FileEnumeratorProvider(split_files=False)

    @property
    def split_files(self) -> bool:
        return self._split_files


class FileSplitAssignerProvider:
    """Which subtask reads which split. There is one rule: in turn.

    Splits carry no host, so Flink's locality-aware assigner comes to the same.
    """

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        return FileSplitAssignerProvider()


class FileSource(Source):
    """Reads files: all that are there, or also those that appear while the job runs.

    >>> from firesteel.datastream.connectors.file_system import StreamFormat
    >>> FileSource.for_record_stream_format(
    ...     StreamFormat.text_line_format(), "/data/in", "/data/archive/*.gz"
    ... ).build()
    FileSource(/data/in, /data/archive/*.gz)
    """

    side_by_side = False

    def __init__(
        self,
        stream_format: StreamFormat,
        paths: tuple[str, ...],
        split_files: bool,
        discovery_interval: Duration | None,
    ) -> None:
        self._format = stream_format
        self._paths = paths
        self._split_files = split_files
        self._discovery_interval = discovery_interval

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Start building: a format, and files, directories or globs (local paths or URIs)."""
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: Any, *paths: str) -> FileSourceBuilder:
        raise NotYetSupportedError(
            "FileSource.for_bulk_file_format",
            "use for_record_stream_format, or env.from_dataframe to read Parquet",
        )

    def get_boundedness(self) -> Boundedness:
        if self._discovery_interval is None:
            return Boundedness.BOUNDED
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        interval = self._discovery_interval
        return FileSplitEnumerator(
            self._paths,
            parallelism=parallelism,
            split_files=self._split_files,
            count_lines=not self._format.is_splittable,
            discovery_interval=None if interval is None else interval.to_nanos() / 1e9,
            state=state,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return TextLineReader(self._format)

    def get_produced_type(self) -> Any:
        return Types.STRING()

    def __repr__(self) -> str:
        return f"FileSource({', '.join(self._paths)})"


class FileSourceBuilder:
    def __init__(self, stream_format: StreamFormat, paths: tuple[str, ...]) -> None:
        if not isinstance(stream_format, StreamFormat):
            raise TypeError(f"FileSource needs a StreamFormat, got {stream_format!r}")
        if not paths:
            raise ValueError("FileSource needs at least one path")
        self._format = stream_format
        self._paths = tuple(map(qualify, paths))
        self._enumerator = FileEnumeratorProvider.default_splittable_file_enumerator()
        self._discovery_interval: Duration | None = None

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder:
        """Never end: look for new files in this interval."""
        if discovery_interval.to_nanos() <= 0:
            raise ValueError(f"The discovery interval must be positive, got {discovery_interval!r}")
        self._discovery_interval = discovery_interval
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """End after the files that are there when the job starts. This is the default."""
        self._discovery_interval = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        self._enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise TypeError(f"Not a FileSplitAssignerProvider: {split_assigner!r}")
        return self

    def build(self) -> FileSource:
        return FileSource(
            self._format, self._paths, self._enumerator.split_files, self._discovery_interval
        )
