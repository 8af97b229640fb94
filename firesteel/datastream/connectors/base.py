"""Interfaces of sources and sinks, under PyFlink's import path."""

from typing import TYPE_CHECKING

from firesteel.connectors.base import (
    Boundedness,
    Committer,
    DeliveryGuarantee,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    WriteContext,
    WriterContext,
)
from firesteel.gaps import gap_importer

__all__ = [
    "Boundedness",
    "Committer",
    "DeliveryGuarantee",
    "ReaderContext",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SourceSplit",
    "SplitEnumerator",
    "WriteContext",
    "WriterContext",
]

if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
