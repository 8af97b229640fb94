"""full_window_partition without a key: all records of a subtask, when the input has ended.

The records are an entry of a table, under a key of the subtask's key groups. So they survive lost
tasks, and after rescaling each partition moves as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import count, islice
from typing import Any

from firesteel.common.constants import MAX_WATERMARK
from firesteel.datastream.functions import AggregateFunction, MapPartitionFunction
from firesteel.graph.operator_specs import AllRecords, FullPartitionSpec
from firesteel.state.key_groups import KeyGroupRange, key_group_of
from firesteel.state.tables import ListTable
from firesteel.task.copies import copy_of
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.aggregators import create_aggregator

# Results per emitted batch.
_BATCH = 10_000


class EndOfInputOperator(FunctionOperator):
    """Emits its results when the input has ended, and the last watermark after them."""

    def __init__(self, context: OperatorContext, function: Any) -> None:
        super().__init__(context, function)
        self._time_has_ended = False
        self.key = _own_key(context)

    def results(self) -> Iterable[Any]:
        raise NotImplementedError

    def process_watermark(self, watermark: int) -> None:
        # After the last watermark everything is late, so the results come first.
        if watermark == MAX_WATERMARK:
            self._time_has_ended = True
        else:
            super().process_watermark(watermark)

    def finish(self) -> None:
        results = iter(self.results())
        while batch := list(islice(results, _BATCH)):
            self.output.emit(RecordBatch(batch))
        if self._time_has_ended:
            super().process_watermark(MAX_WATERMARK)

    def restore(self, whole: Any) -> None:
        self._time_has_ended = False


class MapPartitionOperator(EndOfInputOperator):
    """Calls a function with all records, which are kept until then."""

    def __init__(self, spec: FullPartitionSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        assert isinstance(spec.contents, AllRecords)
        kind = spec.contents.element_type
        self._table: ListTable = context.keyed_state.list_table(
            "_partition", element_type=None if kind is None or kind.is_pickled else kind
        )

    def process(self, batch: RecordBatch) -> None:
        self._table.extend(self.key, batch.values)

    def results(self) -> Iterable[Any]:
        records = [record for _, part in self._table.items() for record in part]
        function = self.function
        called = function.called if isinstance(function, MapPartitionFunction) else function
        try:
            yield from self.method("map_partition")(records) or ()
        except Exception as error:
            raise self.failure(error, called) from error


class PartitionAggregateOperator(EndOfInputOperator):
    """reduce and aggregate: keeps one accumulator."""

    def __init__(self, spec: FullPartitionSpec, context: OperatorContext) -> None:
        self._aggregator = create_aggregator(spec.contents, context.node.name)
        super().__init__(context, self._aggregator.function)
        self._table = context.keyed_state.value_table(
            "_partition", element_type=self._aggregator.accumulator_type
        )

    def process(self, batch: RecordBatch) -> None:
        self._aggregator.prepare(batch.values)
        self._aggregator.add_batch(self._table, batch.values, [self.key] * len(batch))

    def results(self) -> Iterable[Any]:
        aggregator, function = self._aggregator, self.function
        accumulators = [copy_of(accumulator) for _, accumulator in self._table.items()]
        try:
            if not accumulators and isinstance(function, AggregateFunction):
                # As in Flink, a subtask without records has a result, too.
                accumulators = [function.create_accumulator()]
            if accumulators:
                yield aggregator.result(reduce(aggregator.merge, accumulators))
        except Exception as error:
            raise self.failure(error, aggregator.called) from error


def create_full_partition_operator(
    spec: FullPartitionSpec, context: OperatorContext
) -> EndOfInputOperator:
    if spec.contents.is_aggregate:
        return PartitionAggregateOperator(spec, context)
    return MapPartitionOperator(spec, context)


def _own_key(context: OperatorContext) -> str:
    """Return a key that this subtask owns."""
    node = context.node
    groups = KeyGroupRange.of_subtask(context.subtask.index, node.parallelism, node.max_parallelism)
    return next(
        key for key in map(str, count()) if key_group_of(key, node.max_parallelism) in groups
    )
