"""OperatorHarness, which tests one operator of a program."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

from firesteel.checkpoint.rules.redistribution import KeyedPart
from firesteel.checkpoint.rules.restore import SubtaskAssignment
from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.config import options
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.state_backend import HashMapStateBackend, StateBackend
from firesteel.errors import (
    FiresteelError,
    InvalidProgramError,
    RescalingError,
    UserFunctionError,
    shorten,
)
from firesteel.graph.job_graph import JobGraph, broadcast_edges, keyed_edges
from firesteel.graph.partitioning import FORWARD, ShipStrategy, source_subtasks
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.protocol.messages import OperatorHandle, RestoredState, SubtaskAck, SubtaskHandle
from firesteel.protocol.program import JobProgram
from firesteel.protocol.rows import OUTPUT, BufferRow
from firesteel.stability import public_evolving
from firesteel.state.backend_factory import settings_of
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.key_encoding import encode_key
from firesteel.state.key_groups import KeyGroupRange, KeyRouter
from firesteel.state.operator_state import OperatorState, distribute, redistribute
from firesteel.task.capabilities import Committing, Rescalable
from firesteel.task.exchange.input_gate import InputGate
from firesteel.task.exchange.keys import key_converter, route_keys
from firesteel.task.exchange.record_writers import RecordWriter
from firesteel.task.exchange.sorted_exchange import SortingGate
from firesteel.task.operators.base import Operator
from firesteel.task.operators.timestamps_and_watermarks import TimestampsAndWatermarksOperator
from firesteel.task.record_batch import Emit, RecordBatch
from firesteel.task.slot_wiring import wire_slot
from firesteel.task.time.timers import TIMER_TABLES
from firesteel.testing.manual_clock import ManualClock
from firesteel.testing.scripted_source import ScriptedSource
from firesteel.usercode import pickling
from firesteel.usercode.failures import USER_ERRORS, exit_error, is_failure, user_function_error

HARNESS_NAME = "operator harness"


def compile_operator(
    program: Callable[..., Any],
    parallelism: int,
    max_parallelism: int,
    input_types: Sequence[Any],
    batch: bool,
    state_backend: StateBackend,
) -> tuple[Any, list[int]]:
    """Return the job around the operator, and the nodes of its inputs."""
    environment = StreamExecutionEnvironment()
    environment.set_parallelism(parallelism).set_max_parallelism(max_parallelism)
    environment.disable_operator_chaining()
    environment.set_state_backend(state_backend)
    if batch:
        environment.set_runtime_mode(RuntimeExecutionMode.BATCH)
    parameters = inspect.signature(program).parameters.values()
    count = sum(parameter.default is parameter.empty for parameter in parameters)
    if count not in (1, 2):
        raise InvalidProgramError(
            f"the program of an OperatorHarness must have one or two parameters, got {count}"
        )
    types = [*input_types, *[None] * (count - len(input_types))]
    streams = [
        environment.from_source(ScriptedSource([]), None, f"input {number}", types[number - 1])
        for number in range(1, count + 1)
    ]
    program(*streams)
    job = environment.program.compile(environment.get_parallelism(), HARNESS_NAME)
    nodes = job.stream_graph.nodes.values()
    inputs = [
        node.id
        for number in range(1, count + 1)
        for node in nodes
        if node.name == f"Source: input {number}"
    ]
    return job, inputs


def the_operator(nodes: list[StreamNode], inputs: list[int]) -> StreamNode:
    operators = [node for node in nodes if node.id not in inputs]
    if len(operators) != 1:
        names = ", ".join(f"'{node.name}'" for node in operators)
        raise InvalidProgramError(
            f"an OperatorHarness tests one operator, but the program has {len(operators)}: "
            f"{names}. Use a JobHarness for whole programs."
        )
    return operators[0]


class Recorder(RecordWriter):
    """Replaces a record writer and keeps everything it receives."""

    def __init__(self, node_id: int) -> None:
        self.edge = StreamEdge(id=-1, source=node_id, target=-1, partitioning=FORWARD)
        self.values: list[Any] = []
        self.timestamps: list[int | None] = []
        self.sides: dict[str, list[Any]] = {}
        self.watermarks: list[int] = []
        self.idleness: list[bool] = []
        self.records_out = 0
        self.bytes_out = 0

    def begin_epoch(self, epoch: int) -> None:
        self.records_out = 0

    def emit(self, batch: RecordBatch) -> None:
        self.values += batch.values
        self.timestamps += [None] * len(batch) if batch.timestamps is None else batch.timestamps
        self.records_out += len(batch)

    def watermark(self, watermark: int) -> None:
        self.watermarks.append(watermark)

    def idle(self, idle: bool) -> None:
        self.idleness.append(idle)

    def end_epoch(self, *, finished: bool) -> None:
        """Do nothing: nothing is buffered."""


class EveryTag(dict[str, Any]):
    """Records each side output, as if a stream read it."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def get(self, key: str, default: Any = None) -> Any:
        values = self._recorder.sides.setdefault(key, [])
        return lambda batch: values.extend(batch.values)


@public_evolving
@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """The state of an operator subtask, from ``OperatorHarness.snapshot()``. Not in PyFlink.

    A snapshot can be pickled.

    Attributes:
        operator: The name of the operator.
        subtask: The number of the subtask.
        parallelism: The number of subtasks.
        max_parallelism: The number of key groups.
        tables: The keyed state.
        checkpoint_id: The number of the checkpoint.
        operator_state: The operator state by name.
        whole: State that belongs to the subtask as a whole, or None.
        committables: The committables of a sink.

    >>> from firesteel.testing import OperatorHarness
    >>> def longest(words):
    ...     return words.key_by(len).reduce(max)
    >>> with OperatorHarness.of(longest) as harness:
    ...     harness.process_element("ox")
    ...     snapshot = harness.snapshot()
    >>> snapshot.operator, snapshot.checkpoint_id
    ('Reduce', 1)
    """

    operator: str
    subtask: int
    parallelism: int
    max_parallelism: int
    tables: Segment
    checkpoint_id: int = 0
    operator_state: dict[str, OperatorState] = field(default_factory=dict)
    whole: bytes | None = None
    committables: tuple[Any, ...] = ()


def share_of_wholes(
    operator: Operator, snapshots: Sequence[OperatorSnapshot], subtask: int, parallelism: int
) -> tuple[bytes, ...]:
    """Return the non-keyed state for one subtask. Each state goes to exactly one subtask."""
    wholes = [snapshot.whole for snapshot in snapshots if snapshot.whole is not None]
    if len(snapshots) == parallelism:
        own = snapshots[subtask].whole
        return () if own is None else (own,)
    if wholes and not isinstance(operator, Rescalable):
        raise RescalingError(operator.name)
    return tuple(distribute(wholes, parallelism)[subtask])


class WaitingRecords:
    """Records that a batch job processes last: sorted ones, and those that meet a broadcast side."""

    def __init__(self, graph: JobGraph) -> None:
        self._keyed = keyed_edges(graph)
        self._broadcast = broadcast_edges(graph)
        self._batches: list[tuple[StreamEdge, RecordBatch]] = []

    def are_of(self, edge: StreamEdge) -> bool:
        """Return True if the records of the edge wait for the end of the inputs."""
        if edge.id in self._keyed:
            return True
        return bool(self._broadcast) and edge.id not in self._broadcast

    def add(self, edge: StreamEdge, batch: RecordBatch) -> None:
        self._batches.append((edge, batch))

    def release(self, gate: InputGate, process_of: Callable[[StreamEdge], Emit]) -> None:
        assert isinstance(gate, SortingGate)
        batches, self._batches = self._batches, []
        records = []
        for edge, batch in batches:
            process = process_of(edge)
            if batch.keys is None:
                process(batch)
                continue
            stamps = batch.timestamps or itertools.repeat(None)
            for value, key, stamp in zip(batch.values, batch.keys, stamps, strict=False):
                records.append((encode_key(key), stamp, key, value, process))
        records.sort(
            key=lambda record: (record[0], MIN_WATERMARK if record[1] is None else record[1])
        )
        for front, stamp, key, value, process in records:
            own_stamps = None if stamp is None else [stamp]
            gate.sorted_input.add(front, key, own_stamps, [value], process)
        gate.sorted_input.end_key()


_R = TypeVar("_R")
# A harness that continues from snapshots represents a restarted job.
_restarts = itertools.count(1)


@public_evolving
class WrongSubtaskError(FiresteelError, ValueError):
    """The key of a record belongs to a different subtask than the tested one. Not in PyFlink.

    >>> from firesteel.testing import OperatorHarness
    >>> harness = OperatorHarness.of(
    ...     lambda numbers: numbers.key_by(lambda number: number).reduce(max), parallelism=2
    ... )
    >>> harness.process_elements(range(10))
    Traceback (most recent call last):
    firesteel...WrongSubtaskError: the key ... belongs to subtask 1 of 2, ...
    >>> harness.close()
    """


@public_evolving
class OperatorHarness:
    """Tests one operator: feeds it records and time, and shows its output. Not in PyFlink.

    The operator is the real one. All calls run immediately, in this thread, without Spark.

    Args:
        program: A function of one stream, or of two for an operator with two inputs. It adds one
            operator with the usual API.
        parallelism: The number of subtasks.
        subtask: The number of the tested subtask, from 0.
        max_parallelism: The number of key groups.
        input_types: The types of the input streams.
        batch: True runs the operator as in a batch job.
        attempt: The number of the restart, from 0.
        state_backend: The state backend. The default is ``default_state_backend``.

    >>> from firesteel.testing import OperatorHarness
    >>> with OperatorHarness.of(lambda words: words.key_by(len).reduce(max)) as harness:
    ...     harness.process_elements(["ox", "cat", "ant", "zoo"])
    ...     harness.output
    ['ox', 'cat', 'cat', 'zoo']
    >>> harness.keyed_state()
    {'reduce': {2: 'ox', 3: 'zoo'}}
    """

    default_state_backend: StateBackend = HashMapStateBackend()
    """The backend of harnesses without one. Set it to run a test suite on a different backend."""

    def __init__(
        self,
        program: Callable[..., Any],
        *,
        parallelism: int = 1,
        subtask: int = 0,
        max_parallelism: int = 128,
        input_types: Sequence[Any] = (),
        batch: bool = False,
        attempt: int = 0,
        state_backend: StateBackend | None = None,
    ) -> None:
        if not 0 <= subtask < parallelism:
            raise InvalidProgramError(
                f"the subtask of an OperatorHarness must be from 0 to {parallelism - 1}, "
                f"got {subtask}"
            )
        backend = state_backend or self.default_state_backend
        job, inputs = compile_operator(
            program, parallelism, max_parallelism, input_types, batch, backend
        )
        graph, configuration = job.levels.job_graph, job.settings.configuration
        self._node = the_operator(list(graph.nodes.values()), inputs)
        self._edges = [[edge for edge in graph.edges if edge.source == source] for source in inputs]
        job_program = JobProgram(
            *(HARNESS_NAME, HARNESS_NAME, attempt, job.levels),
            job_parameters=configuration.get(options.GLOBAL_JOB_PARAMETERS),
            batch=batch,
            state_backend=settings_of(configuration),
        )
        level = job.levels.level_of[self._node.id]
        slot = job.levels.slot_offset[self._node.slot_sharing_group] + subtask
        self._subtask = wire_slot(job_program, level, slot, self._sent).by_node[self._node.id]
        self._parallelism = parallelism
        self._router = KeyRouter(self._node.parallelism, self._node.max_parallelism)
        self._store = SegmentStore(None, 0)
        self._epoch = 0
        self._checkpoint_id = 0
        self._operator_state: Mapping[str, OperatorState] = {}
        self._opened = self._closed = self._ended = False
        self._waiting = WaitingRecords(graph) if batch else None
        self.clock = ManualClock()
        self._recorder = Recorder(self._node.id)
        self._committables: list[Any] = []
        self._rows: list[BufferRow] = []
        self._watch()

    @staticmethod
    def of(
        program: Callable[..., Any],
        parallelism: int = 1,
        subtask: int = 0,
        max_parallelism: int = 128,
        input_types: Sequence[Any] = (),
        batch: bool = False,
        state_backend: StateBackend | None = None,
    ) -> OperatorHarness:
        """Create a harness.

        Args:
            program: A function of one stream, or of two for an operator with two inputs. It adds
                one operator with the usual API.
            parallelism: The number of subtasks.
            subtask: The number of the tested subtask, from 0.
            max_parallelism: The number of key groups.
            input_types: The types of the input streams.
            batch: True runs the operator as in a batch job.
            state_backend: The state backend. The default is ``default_state_backend``.
        """
        return OperatorHarness(
            program,
            parallelism=parallelism,
            subtask=subtask,
            max_parallelism=max_parallelism,
            input_types=input_types,
            batch=batch,
            state_backend=state_backend,
        )

    @staticmethod
    def restored(
        program: Callable[..., Any],
        snapshots: OperatorSnapshot | Sequence[OperatorSnapshot],
        parallelism: int = 1,
        subtask: int = 0,
        input_types: Sequence[Any] = (),
        state_backend: StateBackend | None = None,
    ) -> OperatorHarness:
        """Create a harness that continues from snapshots.

        The harness restores only the keys of its subtask, so the parallelism may differ from that
        of the snapshots.

        Args:
            program: A function of one stream, or of two for an operator with two inputs.
            snapshots: A snapshot of each subtask.
            parallelism: The number of subtasks.
            subtask: The number of the tested subtask, from 0.
            input_types: The types of the input streams.
            state_backend: The state backend. The default is ``default_state_backend``.

        >>> from firesteel.testing import OperatorHarness
        >>> def total(numbers):
        ...     return numbers.key_by(lambda number: 0).reduce(lambda first, second: first + second)
        >>> with OperatorHarness.of(total) as harness:
        ...     harness.process_elements([1, 2])
        ...     snapshot = harness.snapshot()
        >>> with OperatorHarness.restored(total, snapshot) as harness:
        ...     harness.process_element(3)
        ...     harness.output
        [6]
        """
        given = [snapshots] if isinstance(snapshots, OperatorSnapshot) else list(snapshots)
        if sorted(s.subtask for s in given) != list(range(given[0].parallelism)):
            raise InvalidProgramError(
                f"OperatorHarness.restored() needs one snapshot of each of the "
                f"{given[0].parallelism} subtasks"
            )
        harness = OperatorHarness(
            program,
            parallelism=parallelism,
            subtask=subtask,
            max_parallelism=given[0].max_parallelism,
            input_types=input_types,
            attempt=next(_restarts),
            state_backend=state_backend,
        )
        harness._restore(given)
        return harness

    # Life cycle

    def open(self) -> Self:
        """Open the operator. The first record also opens it.

        >>> from firesteel.testing import OperatorHarness
        >>> harness = OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)).open()
        >>> harness.process_element(1)
        >>> harness.close()
        >>> harness.output
        [2]
        """
        if self._closed:
            raise InvalidProgramError(
                f"the harness of operator '{self._node.name}' is closed: create a new harness"
            )
        if not self._opened:
            self._begin(SubtaskHandle())
        return self

    def close(self) -> None:
        """Close the operator. Raises the errors of the user function.

        >>> from firesteel.testing import OperatorHarness
        >>> class Closing(MapFunction):
        ...     def map(self, value):
        ...         return value
        ...     def close(self):
        ...         print("closed")
        >>> harness = OperatorHarness.of(lambda numbers: numbers.map(Closing())).open()
        >>> harness.close()
        closed
        """
        self._closed = True
        if not self._opened:
            self._subtask.release()
            return
        self._opened = False
        errors = self._subtask.close()
        for edge in self._all_edges():
            for function in edge.partitioning.functions:
                function.close()
        if errors:
            raise errors[0]

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    # Input

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Send a record to the first or only input.

        Args:
            value: The record.
            timestamp: Its event timestamp in milliseconds, or None.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.process_element(1)
        ...     harness.output
        [2]
        """
        self._process(0, [value], None if timestamp is None else [timestamp])

    process_element1 = process_element

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """Send a record to the second input.

        Args:
            value: The record.
            timestamp: Its event timestamp in milliseconds, or None.

        >>> from firesteel.testing import OperatorHarness
        >>> class Tag(CoMapFunction):
        ...     def map1(self, value):
        ...         return f"first {value}"
        ...     def map2(self, value):
        ...         return f"second {value}"
        >>> with OperatorHarness.of(lambda one, two: one.connect(two).map(Tag())) as harness:
        ...     harness.process_element1("a")
        ...     harness.process_element2("b")
        ...     harness.output
        ['first a', 'second b']
        """
        self._process(1, [value], None if timestamp is None else [timestamp])

    def process_elements(
        self, values: Iterable[Any], timestamps: Iterable[int] | None = None
    ) -> None:
        """Send records to the first or only input, as one batch.

        Args:
            values: The records.
            timestamps: Their event timestamps in milliseconds, or None.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.process_elements([1, 2], timestamps=[1000, 2000])
        ...     harness.output_with_timestamps
        [(2, 1000), (3, 2000)]
        """
        self._process_batch(0, values, timestamps)

    process_elements1 = process_elements

    def process_elements2(
        self, values: Iterable[Any], timestamps: Iterable[int] | None = None
    ) -> None:
        """Send records to the second input, as one batch.

        Args:
            values: The records.
            timestamps: Their event timestamps in milliseconds, or None.

        >>> from firesteel.testing import OperatorHarness
        >>> class Tag(CoMapFunction):
        ...     def map1(self, value):
        ...         return f"first {value}"
        ...     def map2(self, value):
        ...         return f"second {value}"
        >>> with OperatorHarness.of(lambda one, two: one.connect(two).map(Tag())) as harness:
        ...     harness.process_elements2(["a", "b"])
        ...     harness.output
        ['second a', 'second b']
        """
        self._process_batch(1, values, timestamps)

    def process_watermark(self, timestamp: int) -> None:
        """Send a watermark to all channels of all inputs.

        Args:
            timestamp: The watermark in milliseconds.

        >>> from firesteel.testing import OperatorHarness
        >>> def count(words):
        ...     windows = words.key_by(len).window(TumblingEventTimeWindows.of(Time.seconds(5)))
        ...     return windows.reduce(lambda first, second: f"{first} {second}")
        >>> with OperatorHarness.of(count) as harness:
        ...     harness.process_elements(["be", "or"], timestamps=[1000, 4000])
        ...     harness.process_watermark(4999)
        ...     harness.output
        ['be or']
        """
        for index in range(len(self._edges)):
            self._process_watermark(index, timestamp)

    def process_watermark1(self, timestamp: int) -> None:
        """Send a watermark to all channels of the first input.

        Args:
            timestamp: The watermark in milliseconds.

        >>> from firesteel.testing import OperatorHarness
        >>> class Both(CoMapFunction):
        ...     def map1(self, value):
        ...         return value
        ...     def map2(self, value):
        ...         return value
        >>> with OperatorHarness.of(lambda one, two: one.connect(two).map(Both())) as harness:
        ...     harness.process_watermark1(2000)
        ...     harness.process_watermark2(1000)
        ...     harness.watermarks
        [1000]
        """
        self._process_watermark(0, timestamp)

    def process_watermark2(self, timestamp: int) -> None:
        """Send a watermark to all channels of the second input.

        Args:
            timestamp: The watermark in milliseconds.

        >>> from firesteel.testing import OperatorHarness
        >>> class Both(CoMapFunction):
        ...     def map1(self, value):
        ...         return value
        ...     def map2(self, value):
        ...         return value
        >>> with OperatorHarness.of(lambda one, two: one.connect(two).map(Both())) as harness:
        ...     harness.process_watermark2(1000)
        ...     harness.watermarks
        []
        """
        self._process_watermark(1, timestamp)

    def process_idleness(self, idle: bool, input_index: int | None = None) -> None:
        """Make all channels of all inputs, or of one input, idle or active.

        Args:
            idle: True makes them idle.
            input_index: 0 or 1 for one of two inputs, or None for all.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.process_idleness(True)
        ...     harness.idleness
        [True]
        """
        self.open()
        for edge in self._all_edges() if input_index is None else self._edges[input_index]:
            for upstream in self._upstream(edge):
                self._subtask.gate.accept_local(edge.id, upstream).idle(idle)

    def set_processing_time(self, now_millis: int) -> None:
        """Set the clock without input. Timers that are due fire.

        Args:
            now_millis: The time in milliseconds.

        >>> from firesteel.testing import OperatorHarness
        >>> def first_of_minute(words):
        ...     minutes = TumblingProcessingTimeWindows.of(Time.minutes(1))
        ...     windows = words.key_by(len).window(minutes)
        ...     return windows.reduce(lambda first, second: first)
        >>> with OperatorHarness.of(first_of_minute) as harness:
        ...     harness.process_elements(["be", "or"])
        ...     harness.set_processing_time(60_000)
        ...     harness.output
        ['be']
        """
        self.open()
        for now in (self.clock(), now_millis):
            self.clock.set(now)
            if isinstance(self._operator, TimestampsAndWatermarksOperator):
                self._operator.found_nothing()
        self._explaining(self._subtask.fire_processing_time_timers)
        self._explaining(self._subtask.tick)

    def advance_processing_time(self, millis: int) -> None:
        """Move the clock forward without input. Timers that are due fire.

        Args:
            millis: The time to add, in milliseconds.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.advance_processing_time(500)
        ...     harness.clock()
        500
        """
        self.set_processing_time(self.clock() + millis)

    def finish(self) -> None:
        """End all inputs. A maximum watermark fires all event time timers.

        >>> from firesteel.testing import OperatorHarness
        >>> def count(words):
        ...     windows = words.key_by(len).window(TumblingEventTimeWindows.of(Time.seconds(5)))
        ...     return windows.reduce(lambda first, second: f"{first} {second}")
        >>> with OperatorHarness.of(count) as harness:
        ...     harness.process_elements(["be", "or"], timestamps=[1000, 4000])
        ...     harness.finish()
        ...     harness.output
        ['be or']
        """
        self.open()
        if not self._ended:
            self.process_watermark(MAX_WATERMARK)
            self._ended = True
            self._end_epoch()

    # Results

    @property
    def output(self) -> list[Any]:
        """The records of the main output so far."""
        return list(self._recorder.values)

    @property
    def output_with_timestamps(self) -> list[tuple[Any, int | None]]:
        """The records of the main output so far, with their event timestamps or None.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.process_element(1, timestamp=1000)
        ...     harness.output_with_timestamps
        [(2, 1000)]
        """
        return list(zip(self._recorder.values, self._recorder.timestamps, strict=True))

    def extract_output(self) -> list[Any]:
        """Return the records of the main output since the last call.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.process_element(1)
        ...     harness.extract_output(), harness.extract_output()
        ([2], [])
        """
        values = self.output
        self._recorder.values.clear()
        self._recorder.timestamps.clear()
        return values

    def side_output(self, tag: OutputTag | str) -> list[Any]:
        """Return the records of a side output so far.

        Args:
            tag: The tag of the side output, or its id.

        >>> from firesteel.testing import OperatorHarness
        >>> late = OutputTag("late", Types.STRING())
        >>> class Split(ProcessFunction):
        ...     def process_element(self, value, context):
        ...         yield late, value
        >>> with OperatorHarness.of(lambda words: words.process(Split())) as harness:
        ...     harness.process_element("be")
        ...     harness.side_output(late)
        ['be']
        """
        tag_id = tag.tag_id if isinstance(tag, OutputTag) else tag
        return list(self._recorder.sides.get(tag_id, ()))

    @property
    def watermarks(self) -> list[int]:
        """The watermarks that the operator has passed on.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.process_watermark(1000)
        ...     harness.watermarks
        [1000]
        """
        return list(self._recorder.watermarks)

    @property
    def idleness(self) -> list[bool]:
        """The changes of the output's idleness: True for idle, False for active.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.process_idleness(True)
        ...     harness.process_idleness(False)
        ...     harness.idleness
        [True, False]
        """
        return list(self._recorder.idleness)

    @property
    def printed(self) -> list[Any]:
        """The lines of ``print()``. For ``execute_and_collect()`` these are the records.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.print()) as harness:
        ...     harness.process_elements([1, 2])
        ...     snapshot = harness.end_epoch()
        ...     harness.printed
        ['1', '2']
        """
        outputs = (row.payload for row in self._rows if row.kind == OUTPUT)
        return [line for payload in outputs for line in pickling.loads(payload)]

    def keyed_state(self) -> dict[str, dict[Any, Any]]:
        """Return the current keyed state by table and key, without timers."""
        tables = self._operator.context.keyed_state.snapshot()
        return {name: t for name, t in tables.items() if not name.startswith(TIMER_TABLES)}

    def num_event_time_timers(self) -> int:
        """Return the number of timers that wait for a watermark.

        >>> from firesteel.testing import OperatorHarness
        >>> class Remind(KeyedProcessFunction):
        ...     def process_element(self, value, context):
        ...         context.timer_service().register_event_time_timer(context.timestamp() + 1000)
        >>> with OperatorHarness.of(lambda words: words.key_by(len).process(Remind())) as harness:
        ...     harness.process_element("be", timestamp=1000)
        ...     harness.num_event_time_timers(), harness.num_processing_time_timers()
        (1, 0)
        """
        return sum(service.count()[0] for service in self._operator.context.timers)

    def num_processing_time_timers(self) -> int:
        """Return the number of timers that wait for the clock.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1)) as harness:
        ...     harness.num_processing_time_timers()
        0
        """
        return sum(service.count()[1] for service in self._operator.context.timers)

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the user's function.

        >>> from firesteel.testing import OperatorHarness
        >>> class Count(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.records = runtime_context.get_metrics_group().counter("records")
        ...     def map(self, value):
        ...         self.records.inc()
        ...         return value
        >>> with OperatorHarness.of(lambda words: words.map(Count())) as harness:
        ...     harness.process_element("be")
        ...     harness.metrics()
        {'Map.records': {'kind': 'counter', 'count': 1}}
        """
        return self._operator.context.metrics.snapshot()

    # Checkpoints

    def snapshot(self, checkpoint_id: int | None = None) -> OperatorSnapshot:
        """Take a checkpoint of the operator. The operator continues.

        Args:
            checkpoint_id: The number of the checkpoint. The default is the next one.

        Returns:
            The state, for ``OperatorHarness.restored()``.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda words: words.key_by(len).reduce(max)) as harness:
        ...     harness.process_element("be")
        ...     harness.snapshot(checkpoint_id=7).checkpoint_id
        7
        """
        self._checkpoint_id = checkpoint_id or self._checkpoint_id + 1
        return self._snapshot(self._checkpoint_id)

    def end_epoch(self) -> OperatorSnapshot:
        """End an epoch without a checkpoint.

        Returns:
            The state from which a retried task starts.

        >>> from firesteel.testing import OperatorHarness
        >>> with OperatorHarness.of(lambda words: words.key_by(len).reduce(max)) as harness:
        ...     harness.process_element("be")
        ...     harness.end_epoch().operator
        'Reduce'
        """
        return self._snapshot(None)

    def _snapshot(self, checkpoint_id: int | None) -> OperatorSnapshot:
        self.open()
        ack = self._end_epoch(checkpoint_id)
        self._operator_state = ack.operator_state.get(self._node.id, self._operator_state)
        return OperatorSnapshot(
            operator=self._node.name,
            subtask=self._subtask.index,
            parallelism=self._node.parallelism,
            max_parallelism=self._node.max_parallelism,
            checkpoint_id=self._checkpoint_id,
            tables=self._operator.context.keyed_state.write_everything(self._epoch, self._store),
            operator_state=dict(self._operator_state),
            whole=ack.whole.get(self._node.id),
            committables=ack.committables.get(self._node.id, ()),
        )

    @property
    def committables(self) -> list[Any]:
        """The committables of a sink that are not yet committed.

        >>> from firesteel.testing import ListSink, OperatorHarness
        >>> results = ListSink()
        >>> with OperatorHarness.of(lambda words: words.sink_to(results)) as harness:
        ...     harness.process_element("be")
        ...     snapshot = harness.snapshot()
        ...     len(harness.committables)
        1
        """
        return list(self._committables)

    def commit(self) -> None:
        """Commit the committables of a sink, as a completed checkpoint does.

        >>> from firesteel.testing import ListSink, OperatorHarness
        >>> results = ListSink()
        >>> with OperatorHarness.of(lambda words: words.sink_to(results)) as harness:
        ...     harness.process_element("be")
        ...     snapshot = harness.snapshot()
        ...     harness.commit()
        >>> results.values()
        ['be']
        """
        if isinstance(self._operator, Committing):
            self._operator.commit(self._committables)
        self._committables.clear()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Tell the operator that a checkpoint is complete.

        Args:
            checkpoint_id: The number of the checkpoint.

        >>> from firesteel.datastream.functions import TwoPhaseCommitSinkFunction
        >>> from firesteel.testing import OperatorHarness
        >>> class Printing(TwoPhaseCommitSinkFunction):
        ...     def begin_transaction(self):
        ...         return []
        ...     def invoke(self, transaction, value, context):
        ...         transaction.append(value)
        ...     def pre_commit(self, transaction):
        ...         pass
        ...     def commit(self, transaction):
        ...         print("commit", transaction)
        ...     def abort(self, transaction):
        ...         pass
        >>> with OperatorHarness.of(lambda words: words.add_sink(Printing())) as harness:
        ...     harness.process_element("be")
        ...     snapshot = harness.snapshot(checkpoint_id=1)
        ...     harness.notify_checkpoint_complete(1)
        commit ['be']
        """
        self._explaining(partial(self._operator.notify_checkpoint_complete, checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Tell the operator that a checkpoint will not complete. A later one may.

        Args:
            checkpoint_id: The number of the checkpoint.

        >>> from firesteel.datastream.functions import TwoPhaseCommitSinkFunction
        >>> from firesteel.testing import OperatorHarness
        >>> class Printing(TwoPhaseCommitSinkFunction):
        ...     def begin_transaction(self):
        ...         return []
        ...     def invoke(self, transaction, value, context):
        ...         transaction.append(value)
        ...     def pre_commit(self, transaction):
        ...         pass
        ...     def commit(self, transaction):
        ...         print("commit", transaction)
        ...     def abort(self, transaction):
        ...         pass
        >>> with OperatorHarness.of(lambda words: words.add_sink(Printing())) as harness:
        ...     harness.process_element("be")
        ...     snapshot = harness.snapshot(checkpoint_id=1)
        ...     harness.notify_checkpoint_aborted(1)
        ...     harness.process_element("not")
        ...     snapshot = harness.snapshot(checkpoint_id=2)
        ...     harness.notify_checkpoint_complete(2)
        commit ['be']
        commit ['not']
        """
        self._explaining(partial(self._operator.notify_checkpoint_aborted, checkpoint_id))

    # Internals

    @property
    def _operator(self) -> Operator:
        return self._subtask.operators[self._node.id]

    def _watch(self) -> None:
        self._subtask.clock.now_millis = self.clock
        self._subtask.connect(chained=[], writers=[self._recorder], local=[])
        self._operator.output.side_outputs = EveryTag(self._recorder)

    def _sent(self, row: BufferRow) -> None:
        self._rows.append(row)

    def _begin(self, handle: SubtaskHandle) -> None:
        self._subtask.restore(handle, self._store)
        self._start()

    def _start(self) -> None:
        self._opened = True
        self._subtask.open()
        for edge in self._all_edges():
            for function in edge.partitioning.functions:
                function.open(self._operator.context.runtime_context())
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._epoch += 1
        self._subtask.begin_epoch(self._epoch)

    def _end_epoch(self, checkpoint_id: int | None = None) -> SubtaskAck:
        """Flush, seal and acknowledge, as at the end of each epoch, and begin the next one."""
        for edge in self._all_edges():
            for upstream in self._upstream(edge):
                self._subtask.gate.accept_local(edge.id, upstream).end(self._ended)
        self._explaining(self._subtask.end_epoch)
        ack = self._explaining(
            lambda: self._subtask.ack(self._epoch, self._store, checkpoint_id, self.clock())
        )
        self._committables.extend(ack.committables.get(self._node.id, ()))
        self._subtask.confirm()
        self._begin_epoch()
        return ack

    def _restore(self, snapshots: list[OperatorSnapshot]) -> None:
        node, index = self._node, self._subtask.index
        by_subtask = sorted(snapshots, key=lambda snapshot: snapshot.subtask)
        wholes = share_of_wholes(self._operator, by_subtask, index, node.parallelism)
        states = redistribute([s.operator_state for s in by_subtask], node.parallelism)[index]
        assignment = SubtaskAssignment(
            KeyGroupRange.of_subtask(index, node.parallelism, node.max_parallelism),
            tuple(KeyedPart((one.tables,), (), is_exact=False) for one in by_subtask),
            must_materialize=True,
        )
        whole, more = (wholes[0], wholes[1:]) if wholes else (None, ())
        restored = RestoredState(assignment, node.max_parallelism)
        handle = OperatorHandle(restored=restored, whole=whole, more=more, operator_state=states)
        self._checkpoint_id = max(snapshot.checkpoint_id for snapshot in snapshots)
        self._subtask.restore(
            SubtaskHandle({node.id: handle}, restored_checkpoint_id=self._checkpoint_id),
            self._store,
        )
        self._start()

    def _all_edges(self) -> list[StreamEdge]:
        return [edge for edges in self._edges for edge in edges]

    def _upstream(self, edge: StreamEdge) -> range:
        return source_subtasks(
            edge.partitioning.strategy,
            self._subtask.index,
            self._parallelism,
            self._node.parallelism,
        )

    def _process(self, index: int, values: list[Any], timestamps: list[int] | None) -> None:
        if index >= len(self._edges):
            raise InvalidProgramError(f"operator '{self._node.name}' has only one input")
        self._expect_input()
        for edge in self._edges[index]:
            batch = RecordBatch(values, timestamps, self._keys(edge, values))
            if self._waiting is not None and self._waiting.are_of(edge):
                self._waiting.add(edge, batch)
                continue
            self._explaining(partial(self._process_of(edge), batch))
            self._subtask.batch_ended(len(values))
            self._explaining(self._subtask.tick)

    def _process_of(self, edge: StreamEdge) -> Emit:
        operator = self._operator
        return operator.process if edge.input_index == 0 else operator.process_second

    def _process_batch(
        self, index: int, values: Iterable[Any], timestamps: Iterable[int] | None
    ) -> None:
        batch = list(values)
        if batch:
            self._process(index, batch, None if timestamps is None else list(timestamps))

    def _explaining(self, call: Callable[[], _R]) -> _R:
        try:
            return call()
        except UserFunctionError as error:
            error.job = HARNESS_NAME
            raise
        except BaseException as error:
            if isinstance(error, Exception) or not is_failure(error):
                raise
            explained = exit_error(error)
            explained.job = HARNESS_NAME
            raise explained from error

    def _keys(self, edge: StreamEdge, values: list[Any]) -> list[Any] | None:
        if edge.partitioning.strategy is not ShipStrategy.HASH:
            return None
        select = edge.partitioning.key_selector
        assert select is not None
        iterator = iter(values)
        try:
            keys = [select(value) for value in iterator]
        except USER_ERRORS as error:
            explained = user_function_error(error, "key_by", select, values, iterator)
            raise explained from error
        convert = key_converter(edge, "key_by")
        if convert is not None:
            keys = convert(keys)
        keys, targets = route_keys(self._router, "key_by", select, values, keys)
        for key, target in zip(keys, targets, strict=True):
            if target != self._subtask.index:
                raise WrongSubtaskError(
                    f"the key {shorten(key)} belongs to subtask {target} of "
                    f"{self._node.parallelism}, but the harness tests subtask {self._subtask.index}"
                )
        return keys

    def _expect_input(self) -> None:
        self.open()
        if self._ended:
            raise InvalidProgramError(
                f"operator '{self._node.name}' takes no input after finish(): create a new harness"
            )

    def _process_watermark(self, index: int, timestamp: int) -> None:
        self._expect_input()
        waiting = self._waiting
        if waiting is not None and timestamp == MAX_WATERMARK:
            self._explaining(partial(waiting.release, self._subtask.gate, self._process_of))
        for edge in self._edges[index]:
            if waiting is not None and waiting.are_of(edge) and timestamp < MAX_WATERMARK:
                # Sorted records have no place for it between them.
                continue
            for upstream in self._upstream(edge):
                advance = self._subtask.gate.accept_local(edge.id, upstream).watermark
                self._explaining(partial(advance, timestamp))
