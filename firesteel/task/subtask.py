"""A subtask: one parallel instance of a vertex, with its operators connected into a chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from firesteel.checkpoint.rules.tasks import NO_TIMING, TaskTiming
from firesteel.checkpoint.state_descriptions import StateDescription, describe_tables
from firesteel.common.constants import MAX_WATERMARK
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import (
    JobExecutionError,
    RescalingError,
    TypeMismatchError,
    UnsavedStateError,
    WriteFailedError,
)
from firesteel.graph.job_graph import JobVertex
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.metrics import MetricRegistry
from firesteel.protocol.messages import (
    OperatorHandle,
    ReadBudget,
    SlotControl,
    SubtaskAck,
    SubtaskHandle,
    VertexMetrics,
)
from firesteel.protocol.reports import SubtaskFigures
from firesteel.protocol.rows import BufferRow
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import SegmentStore
from firesteel.state.frozen_state import FrozenFiles, FrozenState
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.state.operator_state import OperatorStates
from firesteel.state.table_descriptions import IncompatibleStateError
from firesteel.task.capabilities import Committing, Rescalable, Scheduled, Ticking
from firesteel.task.chain import Consumer, LocalEdge, connect_operators
from firesteel.task.exchange.in_flight import InFlightRows
from firesteel.task.exchange.input_gate import Entrance, InputGate
from firesteel.task.exchange.record_writers import RecordWriter
from firesteel.task.exchange.sorted_exchange import SortingGate
from firesteel.task.operator_factory import create_operator
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.iteration import IterationTailOperator
from firesteel.task.record_batch import RecordBatch, SentRecords
from firesteel.task.runtime_context import SubtaskInfo
from firesteel.task.state.savepoint_writing import FrozenOperator
from firesteel.task.time.clock import SubtaskClock
from firesteel.usercode import pickling
from firesteel.usercode.failures import exit_error, is_failure
from firesteel.usercode.unpicklable import UnpicklableRecordError

# A reader in a different thread tries this often to find the figures at rest.
_READ_ATTEMPTS = 3


class Subtask:
    """Runs the operators of one vertex. The slot connects it, then drives it epoch by epoch."""

    def __init__(
        self,
        vertex: JobVertex,
        nodes: dict[int, StreamNode],
        info: SubtaskInfo,
        to_driver: Callable[[int, int, bytes], None],
        key_types: Mapping[int, TypeInformation | None],
        create_keyed_state: Callable[[TypeInformation | None, int], KeyedStateBackend],
    ) -> None:
        """Build the operators.

        to_driver: sends (node, row kind, payload) to the driver.
        key_types: the key types of all nodes with keyed input.
        create_keyed_state: makes a backend for a key type and a maximum parallelism.
        """
        self.vertex = vertex
        self.index = info.index
        self._batch = info.batch
        self._fence = info.fence
        self._checkpointed = info.checkpointed
        self._key_types = key_types
        self.clock = SubtaskClock()
        self.operators: dict[int, Operator] = {
            node_id: create_operator(
                OperatorContext(
                    node=nodes[node_id],
                    subtask=info,
                    clock=self.clock.of_operator(),
                    # One registry per operator: the driver tells operators of one name apart.
                    metrics=MetricRegistry(),
                    to_driver=_bind_node(to_driver, node_id),
                    keyed=node_id in key_types,
                    # An operator without a key keeps nothing in it.
                    keyed_state=create_keyed_state(
                        key_types[node_id], nodes[node_id].max_parallelism
                    )
                    if node_id in key_types
                    else HashMapKeyedStateBackend(),
                )
            )
            for node_id in vertex.operators
        }
        self._first = self.operators[vertex.operators[0]]
        self._last = self.operators[vertex.operators[-1]]
        create_gate: Callable[..., InputGate] = InputGate
        if info.batch:
            create_gate = partial(SortingGate, on_key_end=self._first.end_key)
        self.gate = create_gate(
            f"{vertex.name} ({info.index + 1}/{vertex.parallelism})",
            self._watermark,
            self._first.process_idle,
            operator=self._first.name,
        )
        self.head = self._first.create_head(self.gate)
        operators = self.operators.items()
        self._ticking = [one for _, one in operators if isinstance(one, Ticking)]
        self._scheduled = [one for _, one in operators if isinstance(one, Scheduled)]
        self._committing = {node: one for node, one in operators if isinstance(one, Committing)}
        self._timers = [one.context.timers for _, one in operators if one.context.timers]
        # Tails of iterations by node. The wiring of the slot fills it in.
        self.tails: dict[int, IterationTailOperator] = {}
        if self._ticking:
            self.gate.pace(self.tick)
        self.finished = False
        # Nodes whose functions hold changes that they save at the next checkpoint only.
        self._unsaved: frozenset[int] = frozenset()
        # Timers or watermarks have called functions in this epoch.
        self._worked = False
        self.busy_seconds = 0.0
        # The work of earlier epochs, the beginning of work that has not ended, and the number of
        # changes to the totals, for readers in other threads.
        self._totals = VertexMetrics()
        self._working_since = 0.0
        self._changes = 0
        self._writers: list[RecordWriter] = []
        self._chained: list[StreamEdge] = []
        self._entrances: list[Entrance] = []
        # The edges into the subtask, and rows of the restored checkpoint.
        self.in_flight = InFlightRows(vertex.name, info.index, vertex.parallelism)
        self._replayed: list[BufferRow] = []
        self._replayed_in_chain: list[tuple[int, list[RecordBatch]]] = []
        # The number of these records in this epoch, by node.
        self._replayed_records: dict[int, int] = {}
        # The operators as the operators before them see them.
        self.consumers: dict[int, Consumer] = {}

    # Wiring

    def connect(
        self,
        chained: Sequence[StreamEdge],
        writers: Sequence[RecordWriter],
        local: Sequence[LocalEdge],
    ) -> None:
        """Connect the operators to each other, to other slots, and to subtasks of this slot."""
        self._writers = list(writers)
        self._chained = list(chained)
        self._entrances = [edge.entrance for edge in local]
        self.consumers = connect_operators(self.operators, chained, writers, local)

    # Life

    def replace(self, predecessor: Subtask) -> None:
        """Take the place of a subtask whose last attempt was abandoned."""
        for node_id, operator in self.operators.items():
            operator.replace(predecessor.operators[node_id])

    def restore(self, handle: SubtaskHandle, store: SegmentStore) -> None:
        if self._committing:
            # Sinks commit the transactions of the restored checkpoint.
            self._check_fence()
        self.gate.restore(handle.gate)
        first = handle.operators.get(self.vertex.operators[0], OperatorHandle())
        if first.watermark is not None:
            self.gate.resume_time(first.watermark)
        self.clock.watermark = self.gate.watermark
        # The clock of an operator shows the last watermark that the operator before it emitted.
        arrived = dict.fromkeys(self.operators, self.gate.watermark)
        for node_id, operator in self.operators.items():
            operator.context.clock.watermark = arrived[node_id]
            state = handle.operators.get(node_id, OperatorHandle())
            try:
                operator.restore_keyed_state(state, store)
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
            _restore_whole(operator, state)
            if state.watermark is not None:
                operator.resume_time(state.watermark)
            emitted = operator.emitted_watermark(arrived[node_id])
            arrived.update(
                {edge.target: emitted for edge in self._chained if edge.source == node_id}
            )
        self._unsaved = frozenset()
        self.head.restore()
        if self.head.is_origin:
            self.clock.watermark = self._first.emitted_watermark(self.clock.watermark)
        self.finished = handle.finished or self.head.finished
        self._replayed = []
        self._replayed_in_chain = []
        for node_id, rows in handle.in_flight.items():
            if node_id == self.vertex.operators[0]:
                self._replayed = self.in_flight.restored(rows, store)
            else:
                batches = self.in_flight.restored_in_chain(rows, store)
                self._replayed_in_chain.append((node_id, batches))

    def restore_failed(self, handle: SubtaskHandle) -> None:
        """Let operators undo the work of an epoch that does not count: they cannot continue."""
        for node_id, operator in self.operators.items():
            whole = handle.operators.get(node_id, OperatorHandle()).whole
            operator.restore_failed(None if whole is None else pickling.loads(whole))

    def take_replayed(self) -> list[BufferRow]:
        """Return the rows that the restored checkpoint contains. They come before all others.

        Records on their way to an operator that was the first of a chain, and is not any more, are
        processed at once.
        """
        in_chain, self._replayed_in_chain = self._replayed_in_chain, []
        for node_id, batches in in_chain:
            for batch in batches:
                so_far = self._replayed_records.get(node_id, 0)
                self._replayed_records[node_id] = so_far + len(batch)
                self.consumers[node_id].emit(batch)
        replayed, self._replayed = self._replayed, []
        return replayed

    def open(self) -> None:
        """Open the functions from the end of the chain, as Flink does: a head may emit at once."""
        for operator in reversed(self.operators.values()):
            operator.open()
        for writer in self._writers:
            context = self.operators[writer.edge.source].context.bare_runtime_context()
            for function in writer.edge.partitioning.functions:
                function.open(context)

    def confirm(self) -> None:
        """The driver has confirmed the last epoch."""
        for operator in self.operators.values():
            operator.context.keyed_state.confirm()

    def close(self) -> list[Exception]:
        """Close all functions, even if some of them raise."""
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
        """Release threads and files. This is enough for a subtask that was never opened."""
        for operator in self.operators.values():
            operator.context.keyed_state.close()

    # An epoch

    def begin_epoch(self, epoch: int) -> None:
        self._changes += 1
        self._totals.add(self._vertex_metrics())
        self.gate.begin_epoch()
        self.head.begin_epoch()
        self.busy_seconds = 0.0
        self._replayed_records = {}
        for operator in self.operators.values():
            for sent in operator.output.sent.values():
                sent.count = 0
        self._worked = False
        for writer in self._writers:
            writer.begin_epoch(epoch)
        self._changes += 1

    def apply(self, control: SlotControl) -> None:
        """Take what the control row has for the head, for sinks, and about checkpoints."""
        self.head.apply(control)
        if self._committing and (control.committables or control.completed_checkpoint is not None):
            self._check_fence()
        for node_id, sink in self._committing.items():
            committables = control.committables.get(node_id)
            if committables:
                sink.commit(committables)
        for operator in self.operators.values():
            if control.completed_checkpoint is not None:
                operator.notify_checkpoint_complete(control.completed_checkpoint)
            for checkpoint_id in control.aborted_checkpoints:
                operator.notify_checkpoint_aborted(checkpoint_id)
        for node_id, work in control.abandoned.items():
            if node_id in self.operators:
                self.operators[node_id].abandon(work)

    def _check_fence(self) -> None:
        """Raise LeadershipLostError if a different master runs the job now."""
        if self._fence is not None:
            self._fence.check()

    def read_epoch(
        self, budget: ReadBudget, store: SegmentStore, *, drain: bool = False
    ) -> Iterator[None]:
        """Let the head read, in chunks. A head that is fed by its gate alone reads nothing.

        drain: sources end with this epoch.
        """
        reading = self.head.read_epoch(budget, store, drain=drain)
        while True:
            started = time.perf_counter()
            try:
                next(reading)
            except StopIteration:
                break
            finally:
                self.busy_seconds += time.perf_counter() - started
            self.tick()
            yield
        if self.head.is_origin:
            self._finish_if_ended()

    def read_some(self, limit: int) -> float | None:
        """Let the head read a chunk, without waiting. See ``SubtaskHead.read_some``."""
        started = self._working_since = time.perf_counter()
        wait = self.head.read_some(limit)
        if wait == 0.0:
            self.tick()
            self.busy_seconds += time.perf_counter() - started
        self._working_since = 0.0
        return wait

    def stop_reading(self, *, drain: bool) -> None:
        """Note the progress of ``read_some`` at the end of an epoch."""
        self.head.stop_reading(drain=drain)
        if self.head.is_origin:
            self._finish_if_ended()

    def accept(self, row: BufferRow) -> None:
        """Process a row of one of the gate's channels."""
        started = self._working_since = time.perf_counter()
        self.fire_processing_time_timers()
        before = self.gate.records_in
        self.gate.accept(row)
        self.batch_ended(self.gate.records_in - before)
        self.tick()
        self.busy_seconds += time.perf_counter() - started
        self._working_since = 0.0

    def accept_external(self, payload: bytes) -> None:
        """Process rows of a DataFrame."""
        self.head.accept_external(payload)
        self.tick()

    def batch_ended(self, records: int) -> None:
        """Called after this number of records came in and were processed."""
        if records:
            self._first.context.key_context.batch_ended(records)

    def fire_processing_time_timers(self) -> None:
        """Fire the timers that are due: at both ends of an epoch and between its buffers."""
        if self.finished or self._batch or not self._timers:
            return
        now = self.clock.now_millis()
        for timers in self._timers:
            if timers.advance_processing_time(now):
                self._worked = True

    def tick(self) -> None:
        for operator in self._ticking:
            operator.tick()

    def next_wake(self) -> int | None:
        """Return the processing time at which a timer or ``tick`` is due, or None."""
        if self.finished:
            return None
        times = [timers.next_processing_time() for timers in self._timers]
        times += [operator.next_tick() for operator in self._ticking]
        return min((time for time in times if time is not None), default=None)

    def wake_with(self, wake: Callable[[], None]) -> None:
        """Give operators that work in other threads a way to have ``tick`` called."""
        for operator in self.operators.values():
            operator.context.wake = wake

    @property
    def writers(self) -> Sequence[RecordWriter]:
        return self._writers

    def end_epoch(
        self, *, last: bool = False, checkpoint_id: int | None = None, overtakes: bool = False
    ) -> None:
        """Emit what is left, then the barrier of the checkpoint if there is one.

        last: no epoch follows.
        overtakes: the barrier overtakes rows that have not been processed.
        """
        if not overtakes:
            self.head.end_epoch(last=last)
        self._end_work()
        if checkpoint_id is not None:
            self._forward_barrier(checkpoint_id, overtakes=overtakes)
        for writer in self._writers:
            writer.end_epoch(finished=self.finished)
        for entrance in self._entrances:
            entrance.end(self.finished)

    def pause_epoch(self) -> None:
        """End an epoch in this subtask alone, without a mark for later subtasks."""
        self._end_work()
        if self.finished:
            for writer in self._writers:
                writer.finish()
        for entrance in self._entrances:
            entrance.end(self.finished)

    def _end_work(self) -> None:
        self.fire_processing_time_timers()
        self._finish_if_ended()
        for operator in self.operators.values():
            operator.end_epoch(finished=self.finished)

    def _forward_barrier(self, checkpoint_id: int, *, overtakes: bool) -> None:
        aligned = overtakes or self.gate.barriers.aligned == checkpoint_id
        if not self.head.is_origin and not aligned:
            raise JobExecutionError(
                f"{self.vertex.name}, subtask {self.index}: barrier {checkpoint_id} has not come "
                "from all channels"
            )
        for writer in self._writers:
            writer.barrier(checkpoint_id)
        for entrance in self._entrances:
            entrance.barrier(checkpoint_id)

    def abort_epoch(self) -> None:
        """Tell all consumers that this epoch is void."""
        for operator in self.operators.values():
            operator.abort_epoch()
        for writer in self._writers:
            writer.abort_epoch()

    def _watermark(self, watermark: int) -> None:
        self._worked = True
        self.clock.watermark = watermark
        self._first.accept_watermark(watermark)

    def _finish_if_ended(self) -> None:
        if self.finished or not self.head.finished:
            return
        if self.head.is_origin:
            self._watermark(MAX_WATERMARK)
        self.finished = True
        for operator in self.operators.values():
            operator.finish()

    # The report

    def ack(
        self,
        epoch: int,
        store: SegmentStore,
        checkpoint_id: int | None = None,
        checkpoint_timestamp: int = 0,
    ) -> SubtaskAck:
        """Seal the state of the epoch, and report it to the driver."""
        segments, whole, committables = {}, {}, {}
        operator_state: dict[int, OperatorStates] = {}
        started = time.perf_counter()
        self._note_unsaved(checkpoint_id)
        # With checkpoints, only they and the end of the input make committables.
        commits = checkpoint_id is not None or self.finished or not self._checkpointed
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
            # Before the snapshot: a committable is no longer part of the writer's state.
            if commits and node_id in self._committing:
                prepared = self._committing[node_id].prepare_commit(finished=self.finished)
                if prepared:
                    committables[node_id] = tuple(prepared)
            state = operator.snapshot()
            if state is not None:
                whole[node_id] = pickling.dumps(state)
        feedback = {
            node_id: tail.report(epoch, store, finished=self.finished)
            for node_id, tail in self.tails.items()
        }
        status, is_checkpoint = self.head.status, checkpoint_id is not None
        return SubtaskAck(
            vertex=self.vertex.id,
            subtask=self.index,
            segments=segments,
            whole=whole,
            gate=self.gate.snapshot(),
            sources={} if status is None else {self.vertex.operators[0]: status},
            committables=committables,
            finished=self.finished,
            watermark=self._first.emitted_watermark(self.clock.watermark),
            next_timer=self._next_timer(),
            operator_state=operator_state,
            feedback=feedback,
            unsaved=self._unsaved,
            tables=self._described_tables() if is_checkpoint else {},
            watermarks=self._emitted_watermarks() if is_checkpoint else {},
            timing=self._timing(started, checkpoint_timestamp) if is_checkpoint else NO_TIMING,
            metrics=self._vertex_metrics(),
            user_metrics={
                node_id: snapshot
                for node_id, operator in self.operators.items()
                if (snapshot := operator.context.metrics.snapshot())
            },
        )

    def freeze(
        self, ack: SubtaskAck, store: SegmentStore, *, native: bool
    ) -> Iterator[FrozenOperator]:
        """Freeze the keyed state of the epoch that ``ack`` reports and that is confirmed.

        native: freeze the files of the state backend, if it has any.
        """
        state: FrozenState | FrozenFiles
        for node_id, operator in self.operators.items():
            node = operator.context.node
            feedback = ack.feedback.get(node_id)
            if feedback is not None:
                if not feedback.segments:
                    continue
                backend = HashMapKeyedStateBackend()
                backend.restore(feedback.segments, store)
                state, key_type = backend.freeze(node.max_parallelism), None
            elif operator.context.keyed_state.descriptions():
                # An operator without a key may use the tables, too, with keys of its own.
                keyed_state = operator.context.keyed_state
                files = keyed_state.freeze_files() if native else None
                state = keyed_state.freeze(node.max_parallelism) if files is None else files
                key_type = self._key_types.get(node_id)
            else:
                continue
            yield FrozenOperator(
                self.vertex.id, self.index, node_id, node.operator_id, key_type, state
            )

    def _next_timer(self) -> int | None:
        times = [timers.next_processing_time() for timers in self._timers]
        times += [operator.next_tick() for operator in self._scheduled]
        return min((time for time in times if time is not None), default=None)

    def _note_unsaved(self, checkpoint_id: int | None) -> None:
        if checkpoint_id is not None:
            self._unsaved = frozenset()
        elif self._worked or self._records_in():
            self._unsaved = frozenset(
                node_id for node_id, operator in self.operators.items() if operator.saves_itself
            )

    def _records_in(self) -> int:
        return self.gate.records_in + self.head.records_read

    def _vertex_metrics(self) -> VertexMetrics:
        return VertexMetrics(
            records_in=self._records_in(),
            records_out=sum(writer.records_out for writer in self._writers),
            bytes_in=self.gate.bytes_in,
            bytes_out=sum(writer.bytes_out for writer in self._writers),
            busy_seconds=self.busy_seconds,
            records=self._operator_records(),
            watermark_in=self.clock.watermark,
            operators=self._operator_figures(),
        )

    def _operator_records(self) -> dict[int, dict[str, int]]:
        """Return the records into and out of each operator in this epoch.

        The input of an operator in the middle of a chain is the output of those before it.
        """
        found: dict[int, dict[str, int]] = {}
        inputs: dict[int, list[SentRecords]] = {}
        for edge in self._chained:
            sent = self.operators[edge.source].output.sent[edge.side_output]
            inputs.setdefault(edge.target, []).append(sent)
        for node_id, operator in self.operators.items():
            counts = found[node_id] = {}
            before = inputs.get(node_id, [])
            if all(sent.is_known for sent in before):
                records = self._records_in() if operator is self._first else 0
                records += self._replayed_records.get(node_id, 0)
                counts["numRecordsIn"] = records + sum(sent.count for sent in before)
            outputs = operator.output.sent.values()
            if all(sent.is_known for sent in outputs):
                counts["numRecordsOut"] = sum(sent.count for sent in outputs)
        return found

    def _operator_figures(self) -> dict[int, dict[str, float]]:
        """Return the latest values of operators."""
        found: dict[int, dict[str, float]] = {}
        for node_id, operator in self.operators.items():
            arrived = operator.context.clock.watermark
            figures = found[node_id] = {
                "currentInputWatermark": arrived,
                "currentOutputWatermark": operator.emitted_watermark(arrived),
            }
            if timers := operator.context.timers:
                figures["numFiredTimers"] = timers.fired
                figures["numTimers"] = timers.registered
        inputs = self.gate.input_watermarks
        if len(inputs) > 1:
            found[self.vertex.operators[0]].update(
                {f"currentInput{index + 1}Watermark": arrived for index, arrived in inputs.items()}
            )
        return found

    def figures(self) -> SubtaskFigures:
        """Return the work since the subtask was created. Any thread may call it."""
        for _ in range(_READ_ATTEMPTS):
            changes = self._changes
            found = self._read_figures()
            if changes % 2 == 0 and changes == self._changes:
                break
        return found

    def _read_figures(self) -> SubtaskFigures:
        sums, epoch = VertexMetrics(), self._vertex_metrics()
        sums.add(self._totals)
        sums.add(epoch)
        since = self._working_since
        running = time.perf_counter() - since if since else 0.0
        return SubtaskFigures(
            vertex=self.vertex.id,
            subtask=self.index,
            records_in=sums.records_in,
            records_out=sums.records_out,
            bytes_in=sums.bytes_in,
            bytes_out=sums.bytes_out,
            busy_seconds=sums.busy_seconds + running,
            watermark_in=epoch.watermark_in,
            watermark_out=self._last.emitted_watermark(self._last.context.clock.watermark),
            operators=epoch.operators,
            records=sums.records,
        )

    def _described_tables(self) -> dict[int, tuple[StateDescription, ...]]:
        return {
            node_id: describe_tables(tables, self._key_types.get(node_id))
            for node_id, operator in self.operators.items()
            if (tables := operator.context.keyed_state.descriptions())
        }

    def _emitted_watermarks(self) -> dict[int, int]:
        return {
            node_id: operator.emitted_watermark(operator.context.clock.watermark)
            for node_id, operator in self.operators.items()
        }

    def _timing(self, started: float, checkpoint_timestamp: int) -> TaskTiming:
        """The times of the snapshot that began at ``started`` and ends now."""
        now, barriers = time.perf_counter(), self.gate.barriers
        since_trigger = (self.clock.now_millis() - checkpoint_timestamp) / 1000
        first_barrier = started if barriers.first_at is None else barriers.first_at
        return TaskTiming(
            start_delay=max(0.0, since_trigger - (now - first_barrier)),
            alignment=barriers.alignment_seconds,
            sync=now - started,
            asynchronous=sum(
                operator.context.keyed_state.take_background_seconds()
                for operator in self.operators.values()
            ),
        )


def _restore_whole(operator: Operator, handle: OperatorHandle) -> None:
    """Restore the state that an operator keeps as a whole; after rescaling, that of several."""
    wholes = [pickling.loads(one) for one in (handle.whole, *handle.more) if one is not None]
    if len(wholes) < 2:
        operator.restore(wholes[0] if wholes else None)
    elif isinstance(operator, Rescalable):
        operator.restore_several(wholes)
    else:
        raise RescalingError(operator.name)


def _bind_node(
    to_driver: Callable[[int, int, bytes], None], node_id: int
) -> Callable[[int, bytes], None]:
    return lambda kind, payload: to_driver(node_id, kind, payload)
