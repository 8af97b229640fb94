"""Creates the running operator of a spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.graph import operator_specs as specs
from firesteel.task.operators.aggregation import AggregationOperator
from firesteel.task.operators.async_wait import AsyncWaitOperator
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.broadcast_process import BroadcastProcessOperator
from firesteel.task.operators.co_flat_map import CoFlatMapOperator
from firesteel.task.operators.co_map import CoMapOperator
from firesteel.task.operators.co_process import CoProcessOperator
from firesteel.task.operators.compute import ComputeOperator
from firesteel.task.operators.condition import ConditionOperator
from firesteel.task.operators.dataframe_sink import DataFrameSinkOperator
from firesteel.task.operators.dataframe_source import DataFrameSourceOperator
from firesteel.task.operators.driver_output import CollectOperator, PrintOperator
from firesteel.task.operators.filter import FilterOperator, SelectOperator
from firesteel.task.operators.filter_batches import FilterBatchesOperator
from firesteel.task.operators.flat_map import FlatMapOperator
from firesteel.task.operators.flat_map_batches import FlatMapBatchesOperator
from firesteel.task.operators.interval_join import IntervalJoinOperator
from firesteel.task.operators.iteration import IterationHeadOperator, IterationTailOperator
from firesteel.task.operators.join import JoinOperator
from firesteel.task.operators.map import MapOperator
from firesteel.task.operators.map_batches import MapBatchesOperator
from firesteel.task.operators.process import ProcessOperator
from firesteel.task.operators.project import ProjectOperator
from firesteel.task.operators.reduce import FoldOperator, ReduceOperator
from firesteel.task.operators.sink import SinkOperator
from firesteel.task.operators.sink_function import SinkFunctionOperator
from firesteel.task.operators.source import SourceOperator
from firesteel.task.operators.timestamps_and_watermarks import TimestampsAndWatermarksOperator
from firesteel.task.operators.two_phase_commit_sink import TwoPhaseCommitSinkOperator
from firesteel.task.windowing.factory import create_window_join_operator, create_window_operator
from firesteel.task.windowing.full_partition_operator import create_full_partition_operator

_OPERATORS: dict[type[specs.OperatorSpec], Callable[[Any, OperatorContext], Operator]] = {
    specs.SourceSpec: SourceOperator,
    specs.DataFrameSourceSpec: DataFrameSourceOperator,
    specs.TimestampsAndWatermarksSpec: TimestampsAndWatermarksOperator,
    specs.MapSpec: MapOperator,
    specs.FlatMapSpec: FlatMapOperator,
    specs.FilterSpec: FilterOperator,
    specs.MapBatchesSpec: MapBatchesOperator,
    specs.FilterBatchesSpec: FilterBatchesOperator,
    specs.FlatMapBatchesSpec: FlatMapBatchesOperator,
    specs.ComputeSpec: ComputeOperator,
    specs.ConditionSpec: ConditionOperator,
    specs.ProjectSpec: ProjectOperator,
    specs.SelectSpec: SelectOperator,
    specs.ProcessSpec: ProcessOperator,
    specs.AsyncWaitSpec: AsyncWaitOperator,
    specs.IterationHeadSpec: IterationHeadOperator,
    specs.IterationTailSpec: IterationTailOperator,
    specs.ReduceSpec: ReduceOperator,
    specs.FoldSpec: FoldOperator,
    specs.AggregationSpec: AggregationOperator,
    specs.FullPartitionSpec: create_full_partition_operator,
    specs.WindowSpec: create_window_operator,
    specs.WindowJoinSpec: create_window_join_operator,
    specs.CoMapSpec: CoMapOperator,
    specs.CoFlatMapSpec: CoFlatMapOperator,
    specs.CoProcessSpec: CoProcessOperator,
    specs.IntervalJoinSpec: IntervalJoinOperator,
    specs.JoinSpec: JoinOperator,
    specs.BroadcastProcessSpec: BroadcastProcessOperator,
    specs.SinkSpec: SinkOperator,
    specs.SinkFunctionSpec: SinkFunctionOperator,
    specs.TwoPhaseCommitSinkSpec: TwoPhaseCommitSinkOperator,
    specs.PrintSpec: PrintOperator,
    specs.CollectSpec: CollectOperator,
    specs.DataFrameSinkSpec: DataFrameSinkOperator,
}


def create_operator(context: OperatorContext) -> Operator:
    spec = context.node.spec
    return _OPERATORS[type(spec)](spec, context)
