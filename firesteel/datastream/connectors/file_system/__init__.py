"""FileSource and FileSink, under PyFlink's import path."""

from typing import TYPE_CHECKING

from firesteel.connectors.files.buckets import BucketAssigner
from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.part_files import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    PartFileInfo,
    RollingPolicy,
)
from firesteel.connectors.files.sink import FileSink
from firesteel.connectors.files.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from firesteel.formats.base import BrokenRecord, BrokenRecordError, BulkFormat, StreamFormat
from firesteel.gaps import gap_importer

__all__ = [
    "BrokenRecord",
    "BrokenRecordError",
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "PartFileInfo",
    "RollingPolicy",
    "StreamFormat",
]

if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
