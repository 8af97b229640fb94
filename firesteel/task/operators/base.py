"""The base of all operators: their context, their output, and their life in a slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.datastream.functions import CheckpointedFunction, Function
from firesteel.graph.stream_graph import StreamNode
from firesteel.metrics import MetricRegistry
from firesteel.protocol.messages import AbandonedState, OperatorHandle
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import SegmentStore
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.task.codegen.fusion import FusedNode, Step, StepKind, fuse
from firesteel.task.exchange.input_gate import InputGate
from firesteel.task.head import GateHead, SubtaskHead
from firesteel.task.key_context import KeyContext
from firesteel.task.record_batch import Emit, RecordBatch, SentRecords
from firesteel.task.runtime_context import (
    InitializationContext,
    SnapshotContext,
    SubtaskInfo,
    TaskRuntimeContext,
)
from firesteel.task.state.keyed_state_store import TaskKeyedStateStore
from firesteel.task.state.operator_state_store import TaskOperatorStateStore
from firesteel.task.state.restoring import restore_from_handle
from firesteel.task.time.clock import SubtaskClock
from firesteel.task.time.timers import TimerServices
from firesteel.usercode.failures import USER_ERRORS, user_function_error


@dataclass(slots=True)
class OperatorContext:
    """The environment of an operator in its subtask."""

    node: StreamNode
    subtask: SubtaskInfo
    clock: SubtaskClock
    metrics: MetricRegistry
    # Sends (row kind, payload) to the driver.
    to_driver: Callable[[int, bytes], None]
    # The operator's input is partitioned by a key.
    keyed: bool = False
    keyed_state: KeyedStateBackend = field(default_factory=HashMapKeyedStateBackend)
    key_context: KeyContext = field(default_factory=KeyContext)
    operator_state: TaskOperatorStateStore = field(default_factory=TaskOperatorStateStore)
    # The operator continues from a snapshot, and the checkpoint from which the job was restored.
    restored: bool = False
    restored_checkpoint_id: int | None = None
    # Makes a live slot call ``tick`` soon. A different thread may call it.
    wake: Callable[[], None] | None = None
    timers: TimerServices = field(init=False)
    _state_store: TaskKeyedStateStore | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.timers = TimerServices(self.keyed_state, self.clock, batch=self.subtask.batch)

    def runtime_context(self) -> TaskRuntimeContext:
        """The context for the functions of this operator, which all see the same states."""
        if self.keyed and self._state_store is None:
            self._state_store = TaskKeyedStateStore(self.keyed_state, self.key_context, self.clock)
        return TaskRuntimeContext(self.node, self.subtask, self.metrics, self._state_store)

    def initialization_context(self) -> InitializationContext:
        return InitializationContext(
            self.runtime_context(),
            self.operator_state,
            restored=self.restored,
            checkpoint_id=self.restored_checkpoint_id,
        )

    def bare_runtime_context(self) -> TaskRuntimeContext:
        """The context for functions that have no part in the operator's state."""
        return TaskRuntimeContext(self.node, self.subtask, self.metrics)


def _discard(batch: RecordBatch) -> None:
    """The output of an operator without consumers."""


@dataclass(slots=True)
class Output:
    """The consumers of an operator's results. The chain fills them in, operators call them."""

    emit: Emit = _discard
    side_outputs: dict[str, Emit] = field(default_factory=dict)
    watermark: Callable[[int], None] = lambda _: None
    # Tells consumers not to wait for the watermarks of this output, or to wait again.
    idle: Callable[[bool], None] = lambda _: None
    # Every consumer iterates over a batch once, so that its values may be a range.
    is_iterated_once: bool = False
    # Counts the records of the main output, under None, and of side outputs, by tag.
    sent: dict[str | None, SentRecords] = field(default_factory=dict)

    def emit_side(self, tag_id: str, batch: RecordBatch) -> None:
        emit = self.side_outputs.get(tag_id)
        if emit is not None:
            emit(batch)


class Operator:
    """A running operator of a chain. Subclasses override the hooks that they need."""

    def __init__(self, context: OperatorContext) -> None:
        self.context = context
        self.name = context.node.name
        self.output = Output()
        # Results are checked against the declared type, if the program declares one.
        self.checks_results = True

    def create_head(self, gate: InputGate) -> SubtaskHead:
        """Return the head of a subtask whose first operator this is."""
        return GateHead(gate)

    def open(self) -> None:
        """Called once, before the first record."""

    def process(self, batch: RecordBatch) -> None:
        """Take a batch of the only or first input."""
        raise NotImplementedError

    def process_second(self, batch: RecordBatch) -> None:
        """Take a batch of the second input."""
        raise NotImplementedError(f"{self.name} has only one input")

    def step(self) -> Step | None:
        """The work on a single record, if that is all this operator does; None otherwise."""
        return None

    def begin_loop(self, loop: FusedNode) -> Emit:
        """Return the entry for batches, given the operators that share a loop with this one."""
        return fuse(loop) if loop.children else self.process

    def accept_watermark(self, watermark: int) -> None:
        """Take a watermark from the chain. It is current before the timers fire."""
        self.context.clock.watermark = watermark
        self.process_watermark(watermark)

    def process_watermark(self, watermark: int) -> None:
        """Fire the timers that are due, then emit the watermark."""
        self.context.timers.advance_watermark(watermark)
        self.output.watermark(watermark)

    def end_key(self) -> None:
        """Fire the timers of the current key, then forget its state. It has no more records.

        Called in batch jobs only. As in Flink, the watermark is at the end of time meanwhile, and
        at its beginning while records are processed.
        """
        context = self.context
        context.clock.watermark = MAX_WATERMARK
        context.timers.end_key()
        context.clock.watermark = MIN_WATERMARK
        context.keyed_state.forget_changes()

    def process_idle(self, idle: bool) -> None:
        """The input has become idle, or active again."""
        self.output.idle(idle)

    def emitted_watermark(self, watermark: int) -> int:
        """The last emitted watermark, given the last one that arrived."""
        return watermark

    def replace(self, predecessor: Operator) -> None:
        """Take the place of an operator whose last attempt was abandoned. It has been closed."""

    def abort_epoch(self) -> None:
        """Give up the epoch. The failure is reported already, so this must not raise."""

    def restore_failed(self, whole: Any) -> None:
        """The slot could not be restored. Undo the predecessor's work that ``whole`` has not.

        The failure is reported already, so this must not raise.
        """

    def undo(self, abandoned: Sequence[AbandonedState]) -> None:
        """Undo what failed attempts of the job left. Called before ``restore``."""

    def resume_time(self, watermark: int) -> None:
        """Continue from the last watermark that was emitted before the job was restored."""

    def finish(self) -> None:
        """Emit the last results. The input has ended."""

    def end_epoch(self, *, finished: bool) -> None:
        """Flush at the end of an epoch: written data must leave the process."""

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        """Put everything to be saved into the states.

        checkpoint_id: the checkpoint that the epoch ends with, or None.
        timestamp: the time at which the checkpoint was triggered.
        """

    @property
    def saves_itself(self) -> bool:
        """True if the operator puts some of its data into its state at checkpoints only."""
        return False

    def restore_keyed_state(self, handle: OperatorHandle, store: SegmentStore) -> None:
        """Fill the tables with what the handle refers to."""
        context = self.context
        restore_from_handle(context.keyed_state, handle, store, context.subtask.file_systems)

    def snapshot(self) -> Any:
        """The small state that is kept as a whole, apart from keyed and operator state."""
        return None

    def restore(self, whole: Any) -> None:
        """Restore what ``snapshot`` returned, or begin empty with None.

        This can come before ``open`` or after it.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is complete and supersedes all earlier ones. This may come twice."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """A checkpoint will never be complete. A later one may."""

    def abandon(self, work: AbandonedState) -> None:
        """Undo what no checkpoint of a canceled job holds. Called before ``close``."""

    def close(self) -> None:
        """Called once, after the last record or when the job is canceled."""

    def failure(
        self,
        error: BaseException,
        function: Callable[..., Any],
        values: list[Any] | None = None,
        iterator: Any = None,
    ) -> Exception:
        """The error to raise for a failed function of the user.

        values: the records of the batch.
        iterator: iterates over them, so that it shows which one failed.
        """
        return user_function_error(error, self.name, function, values, iterator)


class FunctionOperator(Operator):
    """An operator around a user's function: opens and closes it, and explains its failures."""

    def __init__(self, context: OperatorContext, function: Any) -> None:
        super().__init__(context)
        self.function = function
        # A function that is never opened cannot ask for state, so it does not need the key.
        self.uses_keys = context.keyed and _is_opened(function)

    def open(self) -> None:
        if isinstance(self.function, CheckpointedFunction):
            try:
                self.function.initialize_state(self.context.initialization_context())
            except USER_ERRORS as error:
                raise self.failure(error, self.function.initialize_state) from error
        if isinstance(self.function, Function):
            try:
                self.function.open(self.context.runtime_context())
            except USER_ERRORS as error:
                raise self.failure(error, self.function.open) from error

    @property
    def saves_itself(self) -> bool:
        return isinstance(self.function, CheckpointedFunction)

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        if checkpoint_id is None or not isinstance(self.function, CheckpointedFunction):
            return
        try:
            self.function.snapshot_state(SnapshotContext(checkpoint_id, timestamp))
        except USER_ERRORS as error:
            raise self.failure(error, self.function.snapshot_state) from error

    def close(self) -> None:
        if isinstance(self.function, Function):
            try:
                self.function.close()
            except USER_ERRORS as error:
                raise self.failure(error, self.function.close) from error

    def fed(self, iterator: Iterator[Any], batch: RecordBatch) -> Iterator[Any]:
        """The batch's values, each with its key current if the function can ask for state."""
        if self.uses_keys and batch.keys is not None:
            return self.context.key_context.feed(iterator, batch.keys)
        return iterator

    def method(self, name: str) -> Callable[..., Any]:
        """The function itself if it is a plain callable, else its method ``name``."""
        if isinstance(self.function, Function):
            method: Callable[..., Any] = getattr(self.function, name)
            return method
        plain: Callable[..., Any] = self.function
        return plain

    def step_of(self, kind: StepKind, function: Callable[..., Any], context: Any = None) -> Step:
        def explain(error: BaseException, record: Any) -> Exception:
            return self.failure(error, function, [record])

        return Step(kind, function, explain, context)


def _is_opened(function: Any) -> bool:
    """True if the function has a method of the user's that can ask for states."""
    if isinstance(function, CheckpointedFunction):
        return True
    return isinstance(function, Function) and type(function).open is not Function.open
