"""What each operator does, as plain data that travels to the tasks.

A spec holds the user's function and parameters, nothing that runs. ``firesteel.task.operators``
has one file per spec that turns it into a running operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """Base of all specs."""


@dataclass(frozen=True, slots=True)
class SourceSpec(OperatorSpec):
    """Reads splits of a ``firesteel.datastream.connectors.base.Source``.

    ``checked``: its records are held to the stream's type.
    """

    source: Any
    watermark_strategy: Any = None
    checked: bool = False


@dataclass(frozen=True, slots=True)
class DataFrameSourceSpec(OperatorSpec):
    """Records that Spark itself reads from a DataFrame and hands over as Arrow batches."""

    value_type: Any
    watermark_strategy: Any = None
    bounded: bool = True


@dataclass(frozen=True, slots=True)
class TimestampsAndWatermarksSpec(OperatorSpec):
    """Timestamps and watermarks from here on as a WatermarkStrategy says."""

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
class ProjectSpec(OperatorSpec):
    field_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SelectSpec(OperatorSpec):
    """Keeps the records for which the selector of ``split`` names one of ``names``.

    ``selector`` is a plain callable; ``functions`` has the user's OutputSelector behind it, if it
    is one, for the task to open and close.
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
    """``descriptor`` is an AsyncFunctionDescriptor."""

    descriptor: Any


@dataclass(frozen=True, slots=True)
class IterationHeadSpec(OperatorSpec):
    """Where a loop begins: the input goes on, and what tails sent back in the epoch before.

    Once the input has ended, the loop ends when it was empty for ``max_wait`` milliseconds; 0: never.
    ``feedback_only``: the input's records take another way, here they only tell when it ends.
    """

    max_wait: int = 0
    feedback_only: bool = False


@dataclass(frozen=True, slots=True)
class IterationTailSpec(OperatorSpec):
    """Where a loop ends: records are kept for its head, which gets them in the next epoch."""


@dataclass(frozen=True, slots=True)
class KeyedAggregationSpec(OperatorSpec):
    """One result for each key.

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
    """``kind`` is one of sum, min, max, min_by, max_by; ``position`` an index or a field name."""

    kind: str
    position: int | str


@dataclass(frozen=True, slots=True)
class WindowContents:
    """What is kept of the records of a window."""

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
    """One record with an aggregated field, as AggregationSpec says."""

    kind: str
    position: int | str
    element_type: Any = None


@dataclass(frozen=True, slots=True)
class PairedRecords(WindowContents):
    """The records of two streams, each of a type of its own."""

    is_aggregate: ClassVar[bool] = False

    left_type: Any = None
    right_type: Any = None


@dataclass(frozen=True, slots=True)
class FullPartitionSpec(OperatorSpec):
    """All records of a subtask, when the input has ended.

    ``function`` is a MapPartitionFunction or a callable, and None where the contents are the result.
    """

    contents: WindowContents
    function: Any = None


@dataclass(frozen=True, slots=True)
class WindowSpec(OperatorSpec):
    """Windows of a keyed stream.

    ``window_function`` is None where the contents are the result. ``output_mode`` is None (results
    at each firing), or one of "append", "update", "complete".
    """

    assigner: Any
    trigger: Any
    contents: WindowContents
    window_function: Any = None
    evictor: Any = None
    allowed_lateness: int = 0
    late_tag: str | None = None
    output_mode: str | None = None

    @property
    def late_tags(self) -> tuple[str | None, ...]:
        """Of each input."""
        return (self.late_tag,)


@dataclass(frozen=True, slots=True)
class WindowJoinSpec(WindowSpec):
    """Windows over two keyed streams.

    ``window_function`` is a JoinFunction, a FlatJoinFunction, a CoGroupFunction, or a callable: what a
    JoinFunction does, with ``groups`` what a CoGroupFunction does.
    """

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
    """A ProcessJoinFunction for records whose timestamps differ by ``lower`` to ``upper``, in milliseconds."""

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

    ``function`` makes the fields of a result (None: the pair), ``predicate`` is a further condition, and
    ``ttl`` a StateTtlConfig. An outer side also gives its records without a match.
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
    """Writes through a ``firesteel.datastream.connectors.base.Sink``."""

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
    """``value_type`` is the type of the printed stream: typed values print as Java prints them."""

    sink_identifier: str | None
    value_type: Any


@dataclass(frozen=True, slots=True)
class CollectSpec(OperatorSpec):
    """Sends records to the driver, for execute_and_collect."""


@dataclass(frozen=True, slots=True)
class DataFrameSinkSpec(OperatorSpec):
    """Hands records to Spark as rows of a DataFrame; the driver knows what becomes of it."""

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
