"""The streams a program is made of, one class a file, under PyFlink's import path."""

from typing import TYPE_CHECKING

from firesteel.datastream.data_stream.all_windowed_stream import AllWindowedStream
from firesteel.datastream.data_stream.broadcast_connected_stream import BroadcastConnectedStream
from firesteel.datastream.data_stream.broadcast_stream import BroadcastStream
from firesteel.datastream.data_stream.cached_data_stream import CachedDataStream
from firesteel.datastream.data_stream.closeable_iterator import CloseableIterator
from firesteel.datastream.data_stream.co_grouped_streams import CoGroupedStreams
from firesteel.datastream.data_stream.connected_iterative_streams import (
    ConnectedIterativeStreams,
)
from firesteel.datastream.data_stream.connected_streams import ConnectedStreams
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.data_stream_sink import DataStreamSink
from firesteel.datastream.data_stream.interval_join import IntervalJoin, IntervalJoined
from firesteel.datastream.data_stream.iterative_stream import IterativeStream
from firesteel.datastream.data_stream.join_on import KeyedJoin, UnboundedJoin
from firesteel.datastream.data_stream.joined_streams import JoinedStreams
from firesteel.datastream.data_stream.keyed_output import KeyedOutput
from firesteel.datastream.data_stream.keyed_stream import KeyedStream
from firesteel.datastream.data_stream.partition_windowed_stream import PartitionWindowedStream
from firesteel.datastream.data_stream.split_stream import SplitStream
from firesteel.datastream.data_stream.windowed_stream import WindowedStream
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
