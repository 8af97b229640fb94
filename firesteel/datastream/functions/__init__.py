"""The functions a user writes, one concept a file, under PyFlink's import path."""

from typing import TYPE_CHECKING

from firesteel.datastream.functions.aggregate_function import AggregateFunction
from firesteel.datastream.functions.async_function import AsyncFunction, AsyncFunctionDescriptor
from firesteel.datastream.functions.async_retry import AsyncRetryPredicate, AsyncRetryStrategy
from firesteel.datastream.functions.base import Function
from firesteel.datastream.functions.base_broadcast_process_function import (
    BaseBroadcastProcessFunction,
)
from firesteel.datastream.functions.broadcast_process_function import BroadcastProcessFunction
from firesteel.datastream.functions.checkpointed_function import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from firesteel.datastream.functions.co_flat_map_function import CoFlatMapFunction
from firesteel.datastream.functions.co_group_function import CoGroupFunction
from firesteel.datastream.functions.co_map_function import CoMapFunction
from firesteel.datastream.functions.co_process_function import CoProcessFunction
from firesteel.datastream.functions.filter_function import FilterFunction
from firesteel.datastream.functions.flat_map_function import FlatMapFunction
from firesteel.datastream.functions.fold_function import FoldFunction
from firesteel.datastream.functions.join_function import FlatJoinFunction, JoinFunction
from firesteel.datastream.functions.key_selector import KeySelector
from firesteel.datastream.functions.keyed_broadcast_process_function import (
    KeyedBroadcastProcessFunction,
)
from firesteel.datastream.functions.keyed_co_process_function import KeyedCoProcessFunction
from firesteel.datastream.functions.keyed_process_function import KeyedProcessFunction
from firesteel.datastream.functions.map_function import MapFunction
from firesteel.datastream.functions.map_partition_function import MapPartitionFunction
from firesteel.datastream.functions.output_selector import OutputSelector
from firesteel.datastream.functions.partitioner import Partitioner
from firesteel.datastream.functions.process_function import ProcessFunction
from firesteel.datastream.functions.process_join_function import ProcessJoinFunction
from firesteel.datastream.functions.process_window_function import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
)
from firesteel.datastream.functions.reduce_function import ReduceFunction
from firesteel.datastream.functions.runtime_context import KeyedStateStore, RuntimeContext
from firesteel.datastream.functions.sink_function import SinkFunction
from firesteel.datastream.functions.two_phase_commit_sink_function import (
    TwoPhaseCommitSinkFunction,
)
from firesteel.datastream.functions.window_function import AllWindowFunction, WindowFunction
from firesteel.datastream.timerservice import TimerService
from firesteel.gaps import gap_importer

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "FoldFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "MapFunction",
    "MapPartitionFunction",
    "OutputSelector",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkFunction",
    "TimerService",
    "TwoPhaseCommitSinkFunction",
    "WindowFunction",
]

if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
