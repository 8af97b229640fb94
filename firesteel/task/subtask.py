"""A subtask: one parallel instance of a vertex, its operators wired into a chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from firesteel import pickling
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import TypeMismatchError, UnsavedStateError
from firesteel.graph.job_graph import JobVertex
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.metrics import MetricRegistry
from firesteel.state.backend import KeyedStateBackend, KeyGroupFilter
from firesteel.state.changelog import SegmentStore
from firesteel.state.declarations import IncompatibleStateError
from firesteel.state.hashmap.keyed_state import HashMapKeyedState
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.redistribution import OperatorStates
from firesteel.task.input_gate import InputGate
from firesteel.task.messages import (
    OperatorHandle,
    ReadBudget,
    SlotControl,
    SourceStatus,
    SubtaskAck,
    SubtaskHandle,
    VertexMetrics,
)
from firesteel.task.operators.base import Emit, Operator, OperatorContext
from firesteel.task.operators.dataframe_source import DataFrameSourceOperator
from firesteel.task.operators.factory import create_operator
from firesteel.task.operators.source import SourceOperator
from firesteel.task.record_writers import RecordWriter
from firesteel.task.rows import BufferRow
from firesteel.task.runtime_context import SubtaskInfo
from firesteel.task.subtask_clock import SubtaskClock
from firesteel.task.watermarks import MAX_WATERMARK


class Subtask:
    """The slot builds it with ``wire``, then drives it epoch by epoch."""

    def __init__(
        self,
        vertex: JobVertex,
        nodes: dict[int, StreamNode],
        info: SubtaskInfo,
        to_driver: Callable[[int, int, bytes], None],
        key_types: Mapping[int, TypeInformation | None],
        create_keyed_state: Callable[[TypeInformation | None, int], KeyedStateBackend],
    ) -> None:
        """``key_types`` has the nodes whose input is keyed."""
        self.vertex = vertex
        self.index = info.index
        self._batch = info.batch
        self.clock = SubtaskClock()
        self.metrics = MetricRegistry()
        self.operators: dict[int, Operator] = {
            node_id: create_operator(
                OperatorContext(
                    node=nodes[node_id],
                    subtask=info,
                    clock=self.clock,
                    metrics=self.metrics,
                    to_driver=_bind_node(to_driver, node_id),
                    keyed=node_id in key_types,
                    # An operator without a key keeps nothing there.
                    keyed_state=create_keyed_state(
                        key_types[node_id], nodes[node_id].max_parallelism
                    )
                    if node_id in key_types
                    else HashMapKeyedState(),
                )
            )
            for node_id in vertex.operators
        }
        self.head = self.operators[vertex.operators[0]]
        self.gate = InputGate(
            f"{vertex.name} ({info.index + 1}/{vertex.parallelism})", self._watermark
        )
        self.finished = False
        # Nodes whose functions hold what only a checkpoint makes them save; and whether timers or
        # watermarks gave them anything to do in this epoch.
        self._unsaved: frozenset[int] = frozenset()
        self._worked = False
        self.busy_seconds = 0.0
        self._writers: list[RecordWriter] = []
        self._local_ends: list[Callable[[bool], None]] = []

    @property
    def reads(self) -> bool:
        """Whether a source is at the head."""
        return isinstance(self.head, SourceOperator)

    # Wiring

    def connect(
        self,
        chained: Sequence[StreamEdge],
        writers: Sequence[RecordWriter],
        local: Sequence[tuple[StreamEdge, InputGate]],
    ) -> None:
        """Say where every operator's results go: down the chain, to other slots, to neighbors."""
        self._writers = list(writers)
        consumers: dict[tuple[int, str | None], list[Emit]] = {}
        watermarks: dict[int, list[Callable[[int], None]]] = {}

        def consume(edge: StreamEdge, emit: Emit, watermark: Callable[[int], None]) -> None:
            consumers.setdefault((edge.source, edge.side_output), []).append(emit)
            watermarks.setdefault(edge.source, []).append(watermark)

        for edge in chained:
            target = self.operators[edge.target]
            consume(edge, target.process, target.process_watermark)
        for writer in writers:
            consume(writer.edge, writer.emit, writer.watermark)
        for edge, gate in local:
            emit, watermark = gate.accept_local(edge.id, self.index)
            consume(edge, emit, watermark)
            self._local_ends.append(_end_local(gate, edge.id, self.index))
        for node_id, operator in self.operators.items():
            output, node = operator.output, operator.context.node
            main = consumers.pop((node_id, None), [output.emit])
            # A source says itself what it produces; user functions are held to what they declare.
            declared = None if _is_source(operator) else node.output_type
            output.emit = _checked(_to_all(main), declared, node.name)
            output.watermark = _to_all_watermarks(watermarks.get(node_id, []))
        for (node_id, tag_id), emits in consumers.items():
            assert tag_id is not None
            operator = self.operators[node_id]
            tag_type = operator.context.node.side_output_types.get(tag_id)
            operator.output.side_outputs[tag_id] = _checked(
                _to_all(emits), tag_type, f"{operator.name}, side output {tag_id}"
            )

    # Life

    def restore(self, handle: SubtaskHandle, store: SegmentStore) -> None:
        self.gate.restore(handle.gate)
        self.clock.watermark = self.gate.watermark
        for node_id, operator in self.operators.items():
            state = handle.operators.get(node_id, OperatorHandle())
            try:
                self._restore_keyed_state(operator, state, store)
            except IncompatibleStateError as error:
                error.operator = operator.name
                raise
            operator.context.timers.restore()
            if state.unsaved:
                raise UnsavedStateError(operator.name)
            operator.context.operator_state.restore(state.operator_state)
            operator.context.restored_checkpoint_id = handle.restored_checkpoint_id
            operator.context.restored = (
                handle.restored_checkpoint_id is not None or node_id in handle.operators
            )
            operator.restore(None if state.whole is None else pickling.loads(state.whole))
        self._unsaved = frozenset()
        head = self.head
        self.finished = head.finished if isinstance(head, SourceOperator) else self.gate.finished

    def _restore_keyed_state(
        self, operator: Operator, state: OperatorHandle, store: SegmentStore
    ) -> None:
        keyed_state, node = operator.context.keyed_state, operator.context.node
        keyed_state.restore(state.segments, store)
        mine = KeyGroupRange.of_subtask(self.index, node.parallelism, node.max_parallelism)
        for segments in state.moved:
            keyed_state.add(segments, store, KeyGroupFilter(mine, node.max_parallelism))

    def open(self) -> None:
        """From the end of the chain to its head, as in Flink: a head may emit at once."""
        for operator in reversed(self.operators.values()):
            operator.open()
        for writer in self._writers:
            context = self.operators[writer.edge.source].context.bare_runtime_context()
            for function in writer.edge.partitioning.functions:
                function.open(context)

    def confirm(self) -> None:
        for operator in self.operators.values():
            operator.context.keyed_state.confirm()

    def close(self) -> list[Exception]:
        """Close all functions, whatever some of them raise."""
        errors: list[Exception] = []
        for operator in self.operators.values():
            try:
                operator.close()
            except Exception as error:  # noqa: BLE001 - the others must be closed too
                errors.append(error)
        self.release()
        for writer in self._writers:
            for function in writer.edge.partitioning.functions:
                try:
                    function.close()
                except Exception as error:  # noqa: BLE001 - the others must be closed too
                    errors.append(error)
        return errors

    def release(self) -> None:
        """Let go of threads and files; enough if it was never opened."""
        for operator in self.operators.values():
            operator.context.keyed_state.close()

    # An epoch

    def begin_epoch(self, epoch: int) -> None:
        self.gate.begin_epoch()
        self.busy_seconds = 0.0
        self._worked = False
        for writer in self._writers:
            writer.begin_epoch(epoch)
        if isinstance(self.head, SourceOperator):
            self.head.records_read = 0

    def apply(self, control: SlotControl) -> None:
        """New splits for a source, committables for sinks."""
        for node_id, operator in self.operators.items():
            if isinstance(operator, SourceOperator):
                operator.add_splits(
                    control.new_splits.get(node_id, ()),
                    complete=node_id in control.complete_sources,
                )
            committables = control.committables.get(node_id)
            if committables:
                operator.commit(committables)

    def read_epoch(self, budget: ReadBudget) -> Iterator[None]:
        """Let a source read; other vertices have nothing to do here."""
        if not isinstance(self.head, SourceOperator):
            return
        reading = self.head.read_epoch(budget)
        while True:
            started = time.perf_counter()
            try:
                next(reading)
            except StopIteration:
                break
            finally:
                self.busy_seconds += time.perf_counter() - started
            yield
        if self.head.finished and not self.finished:
            self._watermark(MAX_WATERMARK)
            self._finish()

    def accept(self, row: BufferRow) -> None:
        started = time.perf_counter()
        self.fire_processing_time_timers()
        before = self.gate.records_in
        self.gate.accept(row)
        self.batch_ended(self.gate.records_in - before)
        self.busy_seconds += time.perf_counter() - started

    def batch_ended(self, records: int) -> None:
        """So many records came in and were processed."""
        if records:
            self.head.context.key_context.batch_ended(records)

    def fire_processing_time_timers(self) -> None:
        """Those that are due: when an epoch begins, between its buffers, and when it ends."""
        if self.finished or self._batch:
            return
        now: int | None = None
        for operator in self.operators.values():
            if operator.context.timers:
                now = self.clock.now_millis() if now is None else now
                if operator.context.timers.advance_processing_time(now):
                    self._worked = True

    def _next_timer(self) -> int | None:
        times = [
            operator.context.timers.next_processing_time() for operator in self.operators.values()
        ]
        return min((time for time in times if time is not None), default=None)

    def accept_external(self, payload: bytes) -> None:
        assert isinstance(self.head, DataFrameSourceOperator)
        self.gate.records_in += self.head.receive_external(payload)

    def end_epoch(self, *, last: bool = False) -> None:
        """``last``: no epoch will follow, so sources that Spark reads have ended too."""
        if isinstance(self.head, DataFrameSourceOperator):
            if last and not self.finished:
                self._watermark(MAX_WATERMARK)
                self._finish()
        elif not isinstance(self.head, SourceOperator):
            self.gate.check_complete()
            self.fire_processing_time_timers()
            if self.gate.finished and not self.finished:
                self._finish()
        for operator in self.operators.values():
            operator.end_epoch(finished=self.finished)
        for writer in self._writers:
            writer.end_epoch(finished=self.finished)
        for end in self._local_ends:
            end(self.finished)

    def abort_epoch(self) -> None:
        """Tell everyone downstream that this epoch is void."""
        for writer in self._writers:
            writer.abort_epoch()

    def ack(
        self,
        epoch: int,
        store: SegmentStore,
        checkpoint_id: int | None = None,
        checkpoint_timestamp: int = 0,
    ) -> SubtaskAck:
        segments, whole, committables = {}, {}, {}
        sources: dict[int, SourceStatus] = {}
        operator_state: dict[int, OperatorStates] = {}
        self._note_unsaved(checkpoint_id)
        for node_id, operator in self.operators.items():
            operator.snapshot_state(checkpoint_id, checkpoint_timestamp)
            try:
                sealed = operator.context.keyed_state.seal(epoch, store)
                held = operator.context.operator_state.snapshot()
            except TypeMismatchError as error:
                error.operator = operator.name
                raise
            if sealed:
                segments[node_id] = sealed
            if held is not None:
                operator_state[node_id] = held
            # What becomes a committable is no longer part of the writer's state.
            prepared = operator.prepare_commit(finished=self.finished)
            if prepared:
                committables[node_id] = tuple(prepared)
            state = operator.snapshot()
            if state is not None:
                whole[node_id] = pickling.dumps(state)
            if isinstance(operator, SourceOperator) and operator.status is not None:
                sources[node_id] = operator.status
        return SubtaskAck(
            vertex=self.vertex.id,
            subtask=self.index,
            segments=segments,
            whole=whole,
            gate=self.gate.snapshot(),
            sources=sources,
            committables=committables,
            finished=self.finished,
            watermark=self.clock.watermark,
            next_timer=self._next_timer(),
            operator_state=operator_state,
            unsaved=self._unsaved,
            metrics=self._vertex_metrics(),
            user_metrics=self.metrics.snapshot() or None,
        )

    def _note_unsaved(self, checkpoint_id: int | None) -> None:
        if checkpoint_id is not None:
            self._unsaved = frozenset()
        elif self._worked or self._records_in():
            self._unsaved = frozenset(
                node_id for node_id, operator in self.operators.items() if operator.saves_itself
            )

    def _records_in(self) -> int:
        read = self.head.records_read if isinstance(self.head, SourceOperator) else 0
        return self.gate.records_in + read

    def _vertex_metrics(self) -> VertexMetrics:
        return VertexMetrics(
            records_in=self._records_in(),
            records_out=sum(writer.records_out for writer in self._writers),
            bytes_in=self.gate.bytes_in,
            bytes_out=sum(writer.bytes_out for writer in self._writers),
            busy_seconds=self.busy_seconds,
        )

    def _watermark(self, watermark: int) -> None:
        self._worked = True
        self.clock.watermark = watermark
        self.head.process_watermark(watermark)

    def _finish(self) -> None:
        self.finished = True
        for operator in self.operators.values():
            if self._batch:
                # As in Flink: a batch has all the time in the world, a stream drops these timers.
                operator.context.timers.advance_processing_time(MAX_WATERMARK)
            operator.finish()


def _is_source(operator: Operator) -> bool:
    return isinstance(operator, SourceOperator | DataFrameSourceOperator)


def _bind_node(
    to_driver: Callable[[int, int, bytes], None], node_id: int
) -> Callable[[int, bytes], None]:
    return lambda kind, payload: to_driver(node_id, kind, payload)


def _end_local(gate: InputGate, edge: int, upstream: int) -> Callable[[bool], None]:
    return lambda finished: gate.end_local(edge, upstream, finished=finished)


def _to_all(emits: list[Emit]) -> Emit:
    if len(emits) == 1:
        return emits[0]

    def emit(values: list[Any], timestamps: list[int] | None) -> None:
        for consumer in emits:
            consumer(values, timestamps)

    return emit


def _to_all_watermarks(receivers: list[Callable[[int], None]]) -> Callable[[int], None]:
    def forward(watermark: int) -> None:
        for receiver in receivers:
            receiver(watermark)

    return forward


def _checked(emit: Emit, output_type: Any, name: str) -> Emit:
    """Check and convert results to the declared type, if there is one."""
    if output_type is None or output_type.is_pickled:
        return emit
    convert = output_type.convert_batch

    def emit_converted(values: list[Any], timestamps: list[int] | None) -> None:
        try:
            converted = convert(values)
        except TypeMismatchError as error:
            error.operator = name
            raise
        emit(converted, timestamps)

    return emit_converted
