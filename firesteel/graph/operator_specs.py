"""Operator specs: plain data that describe operators and travel to the tasks.

A spec has the user's function and parameters. ``firesteel.task.operators`` has one file per
operator, which creates the running operator from its spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

# The reason for which an aggregation works on rows, if there is no other.
_ROWS = "it works on rows"


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """Base of all specs."""

    has_one_time: ClassVar[bool] = False
    """The channels of two inputs count as those of one when their watermarks are combined."""


@dataclass(frozen=True, slots=True)
class SourceSpec(OperatorSpec):
    """Reads splits of a ``firesteel.connectors.base.Source``.

    ``checked``: records are converted to, and checked against, the type of the stream.
    """

    source: Any
    watermark_strategy: Any = None
    checked: bool = False


@dataclass(frozen=True, slots=True)
class DataFrameSourceSpec(OperatorSpec):
    """Records of a DataFrame, which Spark reads and passes on as Arrow batches."""

    value_type: Any
    watermark_strategy: Any = None
    bounded: bool = True


@dataclass(frozen=True, slots=True)
class TimestampsAndWatermarksSpec(OperatorSpec):
    """Assigns timestamps and watermarks with a WatermarkStrategy."""

    watermark_strategy: Any


@dataclass(frozen=True, slots=True)
class MapSpec(OperatorSpec):
    function: Any


@dataclass(frozen=True, slots=True)
class FlatMapSpec(OperatorSpec):
    function: Any


@dataclass(frozen=True, slots=True)
class FilterSpec(OperatorSpec):
    function: Any


@dataclass(frozen=True, slots=True)
class BatchFunctionSpec(OperatorSpec):
    """A function of columns: it takes a pyarrow.RecordBatch of the records in a batch.

    ``input_type``: the type of the records. It has columns.
    """

    function: Any
    input_type: Any


@dataclass(frozen=True, slots=True)
class MapBatchesSpec(BatchFunctionSpec):
    """Returns as many records, of ``output_type``."""

    output_type: Any


@dataclass(frozen=True, slots=True)
class FilterBatchesSpec(BatchFunctionSpec):
    """Returns a mask: true for the records to keep."""


@dataclass(frozen=True, slots=True)
class FlatMapBatchesSpec(BatchFunctionSpec):
    """Returns any number of records, of ``output_type``, and the records that they come from."""

    output_type: Any


@dataclass(frozen=True, slots=True)
class ComputeSpec(OperatorSpec):
    """Computes expressions: the fields of a row, or one value.

    ``input_type``: the type of the records.
    ``output_type``: the type of the results. That of a value is not a row.
    """

    expressions: tuple[Any, ...]
    input_type: Any
    output_type: Any


@dataclass(frozen=True, slots=True)
class ConditionSpec(OperatorSpec):
    """Keeps the records for which an expression is true. ``input_type`` is their type."""

    condition: Any
    input_type: Any


@dataclass(frozen=True, slots=True)
class ProjectSpec(OperatorSpec):
    field_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SelectSpec(OperatorSpec):
    """Keeps the records for which the selector of ``split`` names one of ``names``.

    ``selector``: a callable.
    ``functions``: the user's OutputSelector, if there is one, which the task opens and closes.
    """

    selector: Callable[[Any], Iterable[str] | str]
    names: frozenset[str]
    functions: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessSpec(OperatorSpec):
    """A ProcessFunction, or a KeyedProcessFunction where the input is keyed."""

    function: Any


@dataclass(frozen=True, slots=True)
class AsyncWaitSpec(OperatorSpec):
    """Asynchronous I/O. ``descriptor`` is an AsyncFunctionDescriptor."""

    descriptor: Any


@dataclass(frozen=True, slots=True)
class IterationHeadSpec(OperatorSpec):
    """The head of an iteration: emits its input, and the feedback of the epoch before.

    ``max_wait``: after the end of the input, the iteration ends when there was no feedback for so
    many milliseconds. With 0 it never ends.
    ``feedback_only``: only feedback is emitted. The input only signals its end.
    """

    max_wait: int = 0
    feedback_only: bool = False


@dataclass(frozen=True, slots=True)
class IterationTailSpec(OperatorSpec):
    """The tail of an iteration: keeps its records for the head, which gets them in the next epoch."""


@dataclass(frozen=True, slots=True)
class KeyedAggregationSpec(OperatorSpec):
    """An aggregation with one result per key.

    ``output_mode`` is None (a result for every record), or one of "append", "update", "complete".
    """

    output_mode: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class ReduceSpec(KeyedAggregationSpec):
    function: Any


@dataclass(frozen=True, slots=True)
class FoldSpec(KeyedAggregationSpec):
    initial_value: Any
    function: Any


@dataclass(frozen=True, slots=True)
class AggregationSpec(KeyedAggregationSpec):
    """``kind`` is one of sum, min, max, min_by, max_by; ``position`` an index or a field name.

    ``columns``: the ColumnAggregation, or the reason for which records are rows.
    """

    kind: str
    position: int | str
    columns: Any = field(default=_ROWS, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class WindowContents:
    """The form in which a window keeps its records."""

    is_aggregate: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class AllRecords(WindowContents):
    """The records themselves, of ``element_type``."""

    is_aggregate: ClassVar[bool] = False

    element_type: Any = None


@dataclass(frozen=True, slots=True)
class ReducedRecords(WindowContents):
    """One value, by a ReduceFunction or a callable."""

    function: Any
    element_type: Any = None


@dataclass(frozen=True, slots=True)
class AggregatedRecords(WindowContents):
    """One accumulator of an AggregateFunction."""

    function: Any
    accumulator_type: Any = None


@dataclass(frozen=True, slots=True)
class AggregatedField(WindowContents):
    """One record with an aggregated field, as in AggregationSpec."""

    kind: str
    position: int | str
    element_type: Any = None


@dataclass(frozen=True, slots=True)
class PairedRecords(WindowContents):
    """The records of two streams, each with its own type."""

    is_aggregate: ClassVar[bool] = False

    left_type: Any = None
    right_type: Any = None


@dataclass(frozen=True, slots=True)
class FullPartitionSpec(OperatorSpec):
    """Processes all records of a subtask at the end of the input.

    ``function``: a MapPartitionFunction or a callable. None emits the contents.
    """

    contents: WindowContents
    function: Any = None


@dataclass(frozen=True, slots=True)
class WindowSpec(OperatorSpec):
    """Windows of a keyed stream.

    ``window_function``: None emits the contents.
    ``output_mode``: None (results at each firing), or one of "append", "update", "complete".
    ``columns``: the ColumnAggregation, or the reason for which records are rows.
    """

    assigner: Any
    trigger: Any
    contents: WindowContents
    window_function: Any = None
    evictor: Any = None
    allowed_lateness: int = 0
    late_tag: str | None = None
    output_mode: str | None = None
    columns: Any = field(default=_ROWS, kw_only=True, compare=False)

    @property
    def late_tags(self) -> tuple[str | None, ...]:
        """The tags for late records of each input."""
        return (self.late_tag,)


@dataclass(frozen=True, slots=True)
class WindowJoinSpec(WindowSpec):
    """Windows over two keyed streams.

    ``window_function``: a JoinFunction, a FlatJoinFunction, a CoGroupFunction, or a callable.
    ``groups``: a callable is called like a CoGroupFunction, instead of like a JoinFunction.
    """

    # Flink makes a union of the two streams.
    has_one_time: ClassVar[bool] = True

    second_late_tag: str | None = None
    groups: bool = False

    @property
    def late_tags(self) -> tuple[str | None, ...]:
        return (self.late_tag, self.second_late_tag)


@dataclass(frozen=True, slots=True)
class CoMapSpec(OperatorSpec):
    function: Any


@dataclass(frozen=True, slots=True)
class CoFlatMapSpec(OperatorSpec):
    function: Any


@dataclass(frozen=True, slots=True)
class CoProcessSpec(OperatorSpec):
    """A CoProcessFunction, or a KeyedCoProcessFunction where both inputs are keyed."""

    function: Any


@dataclass(frozen=True, slots=True)
class IntervalJoinSpec(OperatorSpec):
    """A ProcessJoinFunction for pairs whose timestamps differ by ``lower`` to ``upper`` milliseconds."""

    function: Any
    lower: int
    upper: int
    left_type: Any
    right_type: Any
    left_late_tag: str | None = None
    right_late_tag: str | None = None


@dataclass(frozen=True, slots=True)
class JoinSpec(OperatorSpec):
    """A join without a window.

    ``function``: makes the result of a pair. None emits the pair.
    ``predicate``: a further condition for a match.
    ``left_outer``, ``right_outer``: that side also emits its records without a match.
    ``ttl``: a StateTtlConfig.
    """

    function: Any = None
    predicate: Any = None
    left_outer: bool = False
    right_outer: bool = False
    ttl: Any = None


@dataclass(frozen=True, slots=True)
class BroadcastProcessSpec(OperatorSpec):
    """A BroadcastProcessFunction or KeyedBroadcastProcessFunction, and its MapStateDescriptors.

    The second input is the broadcast one.
    """

    function: Any
    descriptors: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SinkSpec(OperatorSpec):
    """Writes with a ``firesteel.connectors.base.Sink``."""

    sink: Any


@dataclass(frozen=True, slots=True)
class SinkFunctionSpec(OperatorSpec):
    function: Any


@dataclass(frozen=True, slots=True)
class TwoPhaseCommitSinkSpec(OperatorSpec):
    """A TwoPhaseCommitSinkFunction."""

    function: Any


@dataclass(frozen=True, slots=True)
class PrintSpec(OperatorSpec):
    """Prints records. Values of a typed stream (``value_type``) look as Java prints them."""

    sink_identifier: str | None
    value_type: Any


@dataclass(frozen=True, slots=True)
class CollectSpec(OperatorSpec):
    """Sends records to the driver for execute_and_collect."""


@dataclass(frozen=True, slots=True)
class DataFrameSinkSpec(OperatorSpec):
    """Passes records to Spark as rows of a DataFrame. The driver has the user's function for it."""

    value_type: Any


SOURCE_SPECS = (SourceSpec, DataFrameSourceSpec)
SINK_SPECS = (
    SinkSpec,
    SinkFunctionSpec,
    TwoPhaseCommitSinkSpec,
    PrintSpec,
    CollectSpec,
    DataFrameSinkSpec,
)
