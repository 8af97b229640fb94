"""Files: FileSource reads lines of text, FileSink writes part files."""

from typing import TYPE_CHECKING

from firesteel.datastream.connectors.file_system.bucket_assigner import BucketAssigner
from firesteel.datastream.connectors.file_system.file_sink import FileSink
from firesteel.datastream.connectors.file_system.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from firesteel.datastream.connectors.file_system.output_file_config import OutputFileConfig
from firesteel.datastream.connectors.file_system.rolling_policy import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    PartFileInfo,
    RollingPolicy,
)
from firesteel.datastream.connectors.file_system.stream_format import StreamFormat
from firesteel.gaps import gap_importer

__all__ = [
    "BucketAssigner",
    "DefaultRollingPolicy",
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
