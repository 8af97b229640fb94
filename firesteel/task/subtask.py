"""A subtask: one parallel instance of a vertex, its operators wired into a chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from firesteel.checkpoint.rules.tasks import NO_TIMING, TaskTiming
from firesteel.checkpoint.state_descriptions import StateDescription, describe_tables
from firesteel.common.constants import MAX_WATERMARK
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import (
    JobExecutionError,
    TypeMismatchError,
    UnsavedStateError,
    WriteFailedError,
)
from firesteel.graph.job_graph import JobVertex
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.metrics import MetricRegistry
from firesteel.protocol.messages import (
    Feedback,
    OperatorHandle,
    ReadBudget,
    SlotControl,
    SourceStatus,
    SubtaskAck,
    SubtaskHandle,
    VertexMetrics,
)
from firesteel.protocol.rows import BufferRow
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import SegmentStore
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.state.operator_state import OperatorStates
from firesteel.state.table_descriptions import IncompatibleStateError
from firesteel.task.chain import Consumer, LocalEdge, connect_operators, is_source
from firesteel.task.exchange.input_gate import BarrierTracker, InputGate
from firesteel.task.exchange.record_writers import RecordWriter
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.dataframe_source import DataFrameSourceOperator
from firesteel.task.operators.factory import create_operator
from firesteel.task.operators.iteration import (
    IterationHeadOperator,
    IterationTailOperator,
    read_feedback,
)
from firesteel.task.operators.source import SourceOperator
from firesteel.task.runtime_context import SubtaskInfo
from firesteel.task.state.restoring import restore_from_handle
from firesteel.task.time.clock import SubtaskClock
from firesteel.usercode import pickling
from firesteel.usercode.failures import exit_error, is_failure
from firesteel.usercode.unpicklable import UnpicklableRecordError


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
        self._checkpointed = info.checkpointed
        self._file_systems = info.file_systems
        self._key_types = key_types
        self.clock = SubtaskClock()
        self.operators: dict[int, Operator] = {
            node_id: create_operator(
                OperatorContext(
                    node=nodes[node_id],
                    subtask=info,
                    clock=self.clock.of_operator(),
                    # Of its own: operators of one name are told apart by the driver.
                    metrics=MetricRegistry(),
                    to_driver=_bind_node(to_driver, node_id),
                    keyed=node_id in key_types,
                    # An operator without a key keeps nothing there.
                    keyed_state=create_keyed_state(
                        key_types[node_id], nodes[node_id].max_parallelism
                    )
                    if node_id in key_types
                    else HashMapKeyedStateBackend(),
                )
            )
            for node_id in vertex.operators
        }
        self.head = self.operators[vertex.operators[0]]
        self.gate = InputGate(
            f"{vertex.name} ({info.index + 1}/{vertex.parallelism})",
            self._watermark,
            self.head.process_idle,
            exactly_once=info.exactly_once,
            operator=self.head.name,
        )
        self._ticking = [operator for operator in self.operators.values() if needs_ticks(operator)]
        if self._ticking:
            self.gate.pace(self._tick)
        self.finished = False
        # Nodes whose functions hold what only a checkpoint makes them save; and whether timers or
        # watermarks gave them anything to do in this epoch.
        self._unsaved: frozenset[int] = frozenset()
        self._worked = False
        self.busy_seconds = 0.0
        self._writers: list[RecordWriter] = []
        self._chained: list[StreamEdge] = []
        # The operators as those before them see them.
        self.consumers: dict[int, Consumer] = {}
        # What comes back to the head of a loop in this epoch.
        self._feedback: tuple[OperatorHandle, ...] = ()
        self.gate.held_open = isinstance(self.head, IterationHeadOperator)
        self._local_ends: list[Callable[[bool], None]] = []
        self._local_barriers: list[Callable[[int], None]] = []

    @property
    def reads(self) -> bool:
        """Whether a source is at the head, or records come back to it."""
        return isinstance(self.head, SourceOperator | IterationHeadOperator)

    # Wiring

    def connect(
        self,
        chained: Sequence[StreamEdge],
        writers: Sequence[RecordWriter],
        local: Sequence[LocalEdge],
    ) -> None:
        """Say where every operator's results go: down the chain, to other slots, to neighbors."""
        self._writers = list(writers)
        self._chained = list(chained)
        self.consumers = connect_operators(self.operators, chained, writers, local, self.index)
        self._local_ends = [_end_local(one.gate, one.edge.id, self.index) for one in local]
        self._local_barriers = [_barrier_local(one.gate, one.edge.id, self.index) for one in local]

    # Life

    def replace(self, predecessor: Subtask) -> None:
        """Take the place of a subtask whose last attempt was in vain."""
        for node_id, operator in self.operators.items():
            operator.replace(predecessor.operators[node_id])

    def restore(self, handle: SubtaskHandle, store: SegmentStore) -> None:
        self.gate.restore(handle.gate)
        first = handle.operators.get(self.vertex.operators[0], OperatorHandle())
        if first.watermark is not None:
            self.gate.resume_time(first.watermark)
        self.clock.watermark = self.gate.watermark
        # Every operator's clock shows what the operator before it emitted last.
        arrived = dict.fromkeys(self.operators, self.gate.watermark)
        for node_id, operator in self.operators.items():
            operator.context.clock.watermark = arrived[node_id]
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
            operator.undo(handle.abandoned.get(node_id, ()))
            wholes = [pickling.loads(one) for one in (state.whole, *state.more) if one is not None]
            if len(wholes) > 1:
                operator.restore_several(wholes)
            else:
                operator.restore(wholes[0] if wholes else None)
            if state.watermark is not None:
                operator.resume_time(state.watermark)
            emitted = operator.emitted_watermark(arrived[node_id])
            arrived.update(
                {edge.target: emitted for edge in self._chained if edge.source == node_id}
            )
        self._unsaved = frozenset()
        head = self.head
        if is_source(head):
            self.clock.watermark = head.emitted_watermark(self.clock.watermark)
        self.finished = handle.finished or (
            head.finished if isinstance(head, SourceOperator) else self.gate.finished
        )

    def _restore_keyed_state(
        self, operator: Operator, state: OperatorHandle, store: SegmentStore
    ) -> None:
        # The head of the loop reads what its tail has written.
        if not isinstance(operator, IterationTailOperator):
            restore_from_handle(operator.context.keyed_state, state, store, self._file_systems)

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
            except BaseException as error:  # the others must be closed too
                if not is_failure(error):
                    raise
                errors.append(error if isinstance(error, Exception) else exit_error(error))
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
        if isinstance(self.head, SourceOperator | IterationHeadOperator):
            self.head.records_read = 0

    def apply(self, control: SlotControl) -> None:
        """New splits for a source, committables for sinks, what comes back to a loop's head."""
        head_id = self.head.context.node.id
        self._feedback = control.feedback.get(head_id, ())
        if head_id in control.ended_loops:
            self.gate.held_open = False
        for node_id, operator in self.operators.items():
            if isinstance(operator, SourceOperator):
                operator.add_splits(
                    control.new_splits.get(node_id, ()),
                    complete=node_id in control.complete_sources,
                )
                operator.align(control.aligned_watermarks.get(node_id, MAX_WATERMARK))
            committables = control.committables.get(node_id)
            if committables:
                operator.commit(committables)
            if control.completed_checkpoint is not None:
                operator.notify_checkpoint_complete(control.completed_checkpoint)
            for checkpoint_id in control.aborted_checkpoints:
                operator.notify_checkpoint_aborted(checkpoint_id)

    def read_epoch(
        self, budget: ReadBudget, store: SegmentStore, *, drain: bool = False
    ) -> Iterator[None]:
        """Let a source read, or the head of a loop; others have nothing to do here.

        ``drain``: sources end here.
        """
        head = self.head
        if isinstance(head, IterationHeadOperator):
            carried = (read_feedback(one, store, self._file_systems) for one in self._feedback)
            yield from self._timed(head.read_epoch(carried, budget))
        elif isinstance(head, SourceOperator):
            yield from self._timed(head.read_epoch(budget))
            if (head.finished or drain) and not self.finished:
                self._watermark(MAX_WATERMARK)
                self._finish()

    def _timed(self, reading: Iterator[None]) -> Iterator[None]:
        while True:
            started = time.perf_counter()
            try:
                next(reading)
            except StopIteration:
                break
            finally:
                self.busy_seconds += time.perf_counter() - started
            self._tick()
            yield

    def accept(self, row: BufferRow) -> None:
        started = time.perf_counter()
        self.fire_processing_time_timers()
        before = self.gate.records_in
        self.gate.accept(row)
        self.batch_ended(self.gate.records_in - before)
        self._tick()
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
        operators = self.operators.values()
        times = [operator.context.timers.next_processing_time() for operator in operators]
        times += [operator.next_tick() for operator in operators]
        return min((time for time in times if time is not None), default=None)

    def accept_external(self, payload: bytes) -> None:
        assert isinstance(self.head, DataFrameSourceOperator)
        self.gate.records_in += self.head.receive_external(payload)
        self._tick()

    def _tick(self) -> None:
        for operator in self._ticking:
            operator.tick()

    def end_epoch(self, *, last: bool = False, checkpoint_id: int | None = None) -> None:
        """``last``: no epoch will follow, so sources that Spark reads have ended too.

        With a checkpoint, its barrier goes behind everything that this epoch gave.
        """
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
        if checkpoint_id is not None:
            self._forward_barrier(checkpoint_id)
        for writer in self._writers:
            writer.end_epoch(finished=self.finished)
        for end in self._local_ends:
            end(self.finished)

    def _forward_barrier(self, checkpoint_id: int) -> None:
        arrived = self.gate.barriers.aligned
        if not is_source(self.head) and arrived != checkpoint_id:
            raise JobExecutionError(
                f"{self.vertex.name}, subtask {self.index}: barrier {checkpoint_id} has not come "
                "from all channels"
            )
        for writer in self._writers:
            writer.barrier(checkpoint_id)
        for forward in self._local_barriers:
            forward(checkpoint_id)

    def abort_epoch(self) -> None:
        """Tell everyone downstream that this epoch is void."""
        for operator in self.operators.values():
            operator.abort_epoch()
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
        feedback: dict[int, Feedback] = {}
        operator_state: dict[int, OperatorStates] = {}
        started = time.perf_counter()
        self._note_unsaved(checkpoint_id)
        for node_id, operator in self.operators.items():
            operator.snapshot_state(checkpoint_id, checkpoint_timestamp)
            try:
                sealed = operator.context.keyed_state.seal(epoch, store)
                held = operator.context.operator_state.snapshot()
            except (TypeMismatchError, UnpicklableRecordError, WriteFailedError) as error:
                error.operator = operator.name
                raise
            if sealed:
                segments[node_id] = sealed
            if held is not None:
                operator_state[node_id] = held
            # What becomes a committable is no longer part of the writer's state. With checkpoints,
            # only they and the end of the input make committables.
            if checkpoint_id is not None or self.finished or not self._checkpointed:
                prepared = operator.prepare_commit(finished=self.finished)
                if prepared:
                    committables[node_id] = tuple(prepared)
            state = operator.snapshot()
            if state is not None:
                whole[node_id] = pickling.dumps(state)
            if isinstance(operator, SourceOperator) and operator.status is not None:
                sources[node_id] = operator.status
            if isinstance(operator, IterationTailOperator):
                feedback[node_id] = operator.report(epoch, store, finished=self.finished)
        return SubtaskAck(
            vertex=self.vertex.id,
            subtask=self.index,
            segments=segments,
            whole=whole,
            gate=self.gate.snapshot(),
            sources=sources,
            committables=committables,
            finished=self.finished,
            watermark=self.head.emitted_watermark(self.clock.watermark),
            next_timer=self._next_timer(),
            operator_state=operator_state,
            feedback=feedback,
            unsaved=self._unsaved,
            tables={}
            if checkpoint_id is None
            else described_tables(self.operators, self._key_types),
            watermarks={} if checkpoint_id is None else sent_watermarks(self.operators),
            timing=NO_TIMING
            if checkpoint_id is None
            else self._timing(started, checkpoint_timestamp),
            metrics=self._vertex_metrics(),
            user_metrics={
                node_id: snapshot
                for node_id, operator in self.operators.items()
                if (snapshot := operator.context.metrics.snapshot())
            },
        )

    def _timing(self, started: float, checkpoint_timestamp: int) -> TaskTiming:
        since_trigger = (self.clock.now_millis() - checkpoint_timestamp) / 1000
        return timing_of(self.operators, self.gate.barriers, started, since_trigger)

    def _note_unsaved(self, checkpoint_id: int | None) -> None:
        if checkpoint_id is not None:
            self._unsaved = frozenset()
        elif self._worked or self._records_in():
            self._unsaved = frozenset(
                node_id for node_id, operator in self.operators.items() if operator.saves_itself
            )

    def _records_in(self) -> int:
        if isinstance(self.head, SourceOperator | IterationHeadOperator):
            return self.gate.records_in + self.head.records_read
        return self.gate.records_in

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
        self.head.accept_watermark(watermark)

    def _finish(self) -> None:
        self.finished = True
        for operator in self.operators.values():
            if self._batch:
                # As in Flink: a batch has all the time in the world, a stream drops these timers.
                operator.context.timers.finish_processing_time()
            operator.finish()


def needs_ticks(operator: Operator) -> bool:
    return type(operator).tick is not Operator.tick


def _bind_node(
    to_driver: Callable[[int, int, bytes], None], node_id: int
) -> Callable[[int, bytes], None]:
    return lambda kind, payload: to_driver(node_id, kind, payload)


def _barrier_local(gate: InputGate, edge: int, upstream: int) -> Callable[[int], None]:
    return lambda checkpoint_id: gate.barrier_local(edge, upstream, checkpoint_id)


def _end_local(gate: InputGate, edge: int, upstream: int) -> Callable[[bool], None]:
    return lambda finished: gate.end_local(edge, upstream, finished=finished)


Operators = Mapping[int, Operator]


def described_tables(
    operators: Operators, key_types: Mapping[int, TypeInformation | None]
) -> dict[int, tuple[StateDescription, ...]]:
    return {
        node_id: describe_tables(tables, key_types.get(node_id))
        for node_id, operator in operators.items()
        if (tables := operator.context.keyed_state.descriptions())
    }


def sent_watermarks(operators: Operators) -> dict[int, int]:
    """What each operator has sent on last."""
    return {
        node_id: operator.emitted_watermark(operator.context.clock.watermark)
        for node_id, operator in operators.items()
    }


def timing_of(
    operators: Operators, barriers: BarrierTracker, started: float, since_trigger: float
) -> TaskTiming:
    """Of the snapshot that was begun at ``started`` and is done now, so long after its trigger."""
    now = time.perf_counter()
    first_barrier = started if barriers.first_at is None else barriers.first_at
    return TaskTiming(
        start_delay=max(0.0, since_trigger - (now - first_barrier)),
        alignment=barriers.alignment_seconds,
        sync=now - started,
        asynchronous=sum(
            operator.context.keyed_state.take_background_seconds()
            for operator in operators.values()
        ),
    )
