"""Streams, under PyFlink's import path."""

from typing import TYPE_CHECKING

from firesteel.datastream.data_stream.cache import CachedDataStream
from firesteel.datastream.data_stream.collected import CloseableIterator
from firesteel.datastream.data_stream.connected_streams import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
)
from firesteel.datastream.data_stream.data_stream import DataStream, SplitStream
from firesteel.datastream.data_stream.iterations import ConnectedIterativeStreams, IterativeStream
from firesteel.datastream.data_stream.joins import (
    CoGroupedStreams,
    IntervalJoin,
    IntervalJoined,
    JoinedStreams,
    KeyedJoin,
    UnboundedJoin,
)
from firesteel.datastream.data_stream.keyed_stream import KeyedOutput, KeyedStream
from firesteel.datastream.data_stream.stream_base import DataStreamSink
from firesteel.datastream.data_stream.windowed_stream import (
    AllWindowedStream,
    PartitionWindowedStream,
    WindowedStream,
)
from firesteel.gaps import gap_importer

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "CoGroupedStreams",
    "ConnectedIterativeStreams",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "IntervalJoin",
    "IntervalJoined",
    "IterativeStream",
    "JoinedStreams",
    "KeyedJoin",
    "KeyedOutput",
    "KeyedStream",
    "PartitionWindowedStream",
    "SplitStream",
    "UnboundedJoin",
    "WindowedStream",
]

if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
