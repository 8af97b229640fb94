"""A whole job in one process, without Spark: the real job runner drives the real slots.

Checkpoints use the real coordinator, storage and recovery. Only their threads are missing: the
harness writes checkpoints between two epochs, and enumerators answer immediately.
"""

from __future__ import annotations

import tempfile
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from threading import Condition
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.savepoints.savepoint import savepoint_directory
from firesteel.checkpoint.storage.checkpoint_directory import CheckpointDirectory
from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import Storage
from firesteel.common.configuration import Configuration
from firesteel.common.job_status import JobStatus
from firesteel.config import options
from firesteel.config.checkpoint_options import (
    CHECKPOINT_DIR,
    CHECKPOINT_STORAGE,
    CHECKPOINTING_INTERVAL,
    RECOVERY_PATH,
)
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.data_stream.stream_base import StreamBase, collect_sink
from firesteel.datastream.stream_execution_environment.job_compiler import CompiledJob
from firesteel.errors import InvalidProgramError, JobExecutionError
from firesteel.filesystems.file_systems import qualify
from firesteel.filesystems.scratch import scratch_of_process
from firesteel.graph.job_graph import key_types_of
from firesteel.graph.levels import Levels
from firesteel.graph.rescaling import rescale, uniform_parallelism
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.job_master import JobMaster
from firesteel.master.job_runner import JobRunner
from firesteel.master.rate_control import RateControl
from firesteel.protocol.execution import Placement
from firesteel.protocol.messages import ReadBudget
from firesteel.protocol.program import JobProgram
from firesteel.stability import public_evolving
from firesteel.state.backend_factory import create_keyed_state
from firesteel.state.changelog import SegmentStore
from firesteel.task.state.restoring import restore_from_handle
from firesteel.task.state.savepoint_writing import Join
from firesteel.testing.harness_live_slots import HarnessLiveSlots
from firesteel.testing.harness_slots import Faults, HarnessExecutor, HarnessSlots, Place

Program = Callable[[StreamExecutionEnvironment], Any]
"""Builds a job. The harness collects the stream, or the tuple of streams, that it returns."""


@dataclass(slots=True)
class CollectedRecords:
    """Receives the records of a collected stream in the driver."""

    records: list[Any] = field(default_factory=list)

    def add(self, records: list[Any]) -> None:
        self.records += records

    def release(self) -> None:
        """Do nothing: no thread waits for the records."""


@dataclass(slots=True)
class ScriptedRate(RateControl):
    """Gives each epoch the next read limit of a script."""

    target_seconds: float = 0.0
    records: Iterable[int] = (1000,)
    _remaining: Any = None

    def budget(self) -> ReadBudget:
        if self._remaining is None:
            self._remaining = cycle(self.records)
        return ReadBudget(next(self._remaining), float("inf"))

    def epoch_took(self, seconds: float, records_of_fullest_slot: int) -> None:
        """Do nothing: the script determines the read limits."""


def compile_program(
    program: Program, parallelism: int, configuration: Configuration
) -> tuple[CompiledJob, list[CollectedRecords]]:
    environment = StreamExecutionEnvironment(configuration).set_parallelism(parallelism)
    returned = program(environment)
    streams = returned if isinstance(returned, tuple) else (returned,)
    collected: list[CollectedRecords] = []
    sinks = []
    for stream in streams:
        if not isinstance(stream, StreamBase):
            continue
        collected.append(CollectedRecords())
        sinks.append(collect_sink(stream, collected[-1]))
    parallelism = environment.get_parallelism()
    return environment.program.compile(parallelism, "harness", *sinks), collected


def with_checkpoints(configuration: Configuration, root: str) -> Configuration:
    """Enable checkpoints. Without a configured interval, only the harness triggers them."""
    configuration = Configuration(configuration)
    if not configuration.contains(CHECKPOINTING_INTERVAL):
        configuration.set_string(CHECKPOINTING_INTERVAL.key, "36500 d")
    if not configuration.contains(CHECKPOINT_STORAGE) and not configuration.contains(
        CHECKPOINT_DIR
    ):
        configuration.set_string(CHECKPOINT_DIR.key, root)
    return configuration


class WorkQueue(Executor):
    """Replaces a thread: submitted work waits for ``run``, or until its ``result`` is needed.

    If ``at_once()`` is true, ``submit`` does the work immediately.
    """

    def __init__(self, at_once: Callable[[], bool] = lambda: False) -> None:
        self._at_once = at_once
        self._waiting: deque[tuple[_Work, Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        work = _Work(self)
        self._waiting.append((work, lambda: fn(*args, **kwargs)))
        if self._at_once():
            self.run()
        return work

    def run(self) -> bool:
        """Do all submitted work. Returns False if there is none."""
        had_work = bool(self._waiting)
        while self._waiting:
            work, call = self._waiting.popleft()
            try:
                work.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the future passes it to its owner
                work.set_exception(error)
        return had_work

    def drop(self) -> None:
        """Discard all work, as if the process had died."""
        while self._waiting:
            self._waiting.popleft()[0].cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait or self._at_once():
            self.run()
        else:
            self.drop()


class _Work(Future[Any]):
    def __init__(self, queue: WorkQueue) -> None:
        super().__init__()
        self._queue = queue

    def result(self, timeout: float | None = None) -> Any:
        if not self.done():
            self._queue.run()
        return super().result(timeout)


class HarnessEdge:
    """The edge of a harness: its clock jumps to the next epoch, and it has no threads."""

    def __init__(self, now: float, printed: list[str]) -> None:
        self._now = now
        self._printed = printed
        #: While one is set, the storage, the enumerators or the slots do not do their work.
        self.storage_is_stuck = False
        self.enumerators_are_stuck = False
        self.savepoints_are_stuck = False
        self.storage = WorkQueue()
        # Savepoints that slots write. Each step writes a file.
        self._writing: deque[Iterator[None]] = deque()
        self._enumerators: list[WorkQueue] = []
        # Counts the waits since the last epoch, to detect a job that waits forever.
        self._waits = 0

    def now(self) -> float:
        return self._now

    def pass_time(self, seconds: float) -> None:
        self._now += seconds

    def wait(self, changed: Condition, seconds: float | None) -> None:
        """Do the waiting work. If there is none, let time pass."""
        self._waits += 1
        if self._waits > _MOST_EPOCHS:
            raise JobExecutionError(
                f"the job has waited {_MOST_EPOCHS} times without running an epoch"
            )
        if self.work():
            return
        if seconds is None and self.storage.run():
            return
        if seconds is None:
            raise JobExecutionError(
                "the job waits for an enumerator, but enumerators_are_stuck is set on the harness"
            )
        self._now += seconds

    def work(self) -> bool:
        """Do all waiting work. Returns False if there is none."""
        worked = not self.storage_is_stuck and self.storage.run()
        for queue in self._enumerators if not self.enumerators_are_stuck else ():
            worked |= queue.run()
        if not self.savepoints_are_stuck:
            self._write_savepoints()
        return worked

    def spawn(self, work: Iterator[None]) -> Join:
        """Let a slot write a savepoint: at once, or when savepoints are no longer stuck."""
        self._writing.append(work)
        if not self.savepoints_are_stuck:
            self._write_savepoints()
        return lambda _: None

    def step(self) -> bool:
        """Write one file of a savepoint. Returns False if there is none left."""
        while self._writing:
            work = self._writing.popleft()
            try:
                next(work)
            except StopIteration:
                continue
            self._writing.append(work)
            return True
        return False

    def _write_savepoints(self) -> None:
        while self.step():
            pass

    def epoch_begins(self) -> None:
        self._waits = 0

    def io_thread(self, name: str) -> WorkQueue:
        if name in ("firesteel-checkpoints", "firesteel-savepoints"):
            return self.storage
        self._enumerators.append(WorkQueue(lambda: not self.enumerators_are_stuck))
        return self._enumerators[-1]

    def print_lines(self, lines: list[str]) -> None:
        self._printed += lines


KeyedStates = dict[str, dict[str, dict[Any, Any]]]
"""Maps operator (uid or name) -> state -> key, or (key, namespace) -> value."""


def keyed_states(master: JobMaster, program: JobProgram, store: SegmentStore) -> KeyedStates:
    """Merge the keyed state of all subtasks. Names that are not unique get the operator's id."""
    names = Counter(node.uid or node.name for node, _ in master.operator_handles())
    key_types = key_types_of(program.levels.job_graph)
    states: KeyedStates = {}
    for node, handle in master.operator_handles():
        name = node.uid or node.name
        if names[name] > node.parallelism:
            name = f"{name} ({node.operator_id})"
        if node.id not in key_types:
            continue
        backend = create_keyed_state(
            program.state_backend, key_types[node.id], node.max_parallelism
        )
        try:
            restore_from_handle(backend, handle, store)
            tables = backend.snapshot()
        finally:
            backend.close()
        for state, values in tables.items():
            if values:
                states.setdefault(name, {}).setdefault(state, {}).update(values)
    return states


_MOST_EPOCHS = 100_000

# Directories of requested checkpoints and savepoints. They outlive the harness, until the process
# ends.
_DIRECTORIES_OF_SNAPSHOTS: set[tempfile.TemporaryDirectory[str]] = set()


@public_evolving
class JobHarness:
    """Runs a whole job in this process, without Spark. Not in PyFlink.

    The job master, slots, checkpoints and recovery are the real ones. Processing time starts at
    ``now`` and jumps to the time at which the next epoch is due.

    Args:
        program: A function of an environment that builds the job. The harness collects the stream,
            or the tuple of streams, that it returns.
        parallelism: The parallelism of the environment.
        records_per_epoch: The records that each source may read per epoch, or a list of such
            numbers that are used in turn.
        seed: The seed of random choices, such as the order of tasks.
        batch_bytes: The size of a batch of shuffled rows.
        inline_threshold: The size in bytes from which state is kept in files.
        configuration: The configuration of the environment.
        checkpoint_every: The epochs between two checkpoints. 0 takes them only when ``checkpoint``
            is called, and None turns them off. They are written to the configured directory, or to
            a temporary one.
        storage: The storage of checkpoints. Its file system may have faults.
        now: The processing time at the start, in seconds.

    >>> from firesteel.testing import JobHarness
    >>> def program(env):
    ...     words = env.from_collection(["to", "be", "or", "not", "to", "be"])
    ...     return words.key_by(lambda word: word).fold(0, lambda count, _: count + 1)
    >>> harness = JobHarness(program, parallelism=2, records_per_epoch=2)
    >>> harness.run()
    >>> sorted(harness.collected)
    [1, 1, 1, 1, 2, 2]
    """

    def __init__(
        self,
        program: Program | CompiledJob,
        *,
        parallelism: int = 1,
        records_per_epoch: int | Iterable[int] = 1000,
        seed: int = 0,
        batch_bytes: int = 1 << 20,
        inline_threshold: int = 64 * 1024,
        configuration: Configuration | None = None,
        checkpoint_every: int | None = None,
        storage: Storage | None = None,
        now: float = 0.0,
    ) -> None:
        budgets = (
            [records_per_epoch] if isinstance(records_per_epoch, int) else list(records_per_epoch)
        )
        self._arguments: dict[str, Any] = {
            "program": program,
            "parallelism": parallelism,
            "records_per_epoch": budgets,
            "seed": seed,
            "batch_bytes": batch_bytes,
            "inline_threshold": inline_threshold,
            "configuration": configuration,
            "checkpoint_every": checkpoint_every,
            "storage": storage,
        }
        self._directory = tempfile.TemporaryDirectory(
            prefix="harness-", dir=scratch_of_process("testing").path
        )
        self._predecessor: JobHarness | None = None
        self._random = Random(seed)
        self._collected: list[CollectedRecords] = []
        self._final_state: KeyedStates | None = None
        #: The lines that print() wrote.
        self.printed: list[str] = []
        self._edge = HarnessEdge(now, self.printed)
        self._job = program if isinstance(program, CompiledJob) else self._compile(program)
        self._graph = self._job.stream_graph
        self._configuration = Configuration(self._job.settings.configuration)
        self._configuration.set_integer(options.STATE_INLINE_THRESHOLD.key, inline_threshold)
        self._store: SegmentStore | None = None
        self._runner = self._make_runner(partial(ScriptedRate, records=budgets))

    # Making the job

    def _compile(self, program: Program) -> CompiledJob:
        arguments = self._arguments
        configuration = Configuration(arguments["configuration"])
        if arguments["checkpoint_every"] is not None:
            storage: Storage | None = arguments["storage"]
            own = f"{self._directory.name}/checkpoints"
            configuration = with_checkpoints(configuration, storage.location if storage else own)
        job, self._collected = compile_program(program, arguments["parallelism"], configuration)
        return job

    def _make_runner(self, make_rate: Callable[[], RateControl]) -> JobRunner:
        job_id, storage = uuid.uuid4().hex, self._arguments["storage"]
        return JobRunner(
            job_id,
            self._graph,
            self._job.levels,
            replace(self._job.settings, configuration=self._configuration),
            self._make_executor,
            self._edge,
            make_rate=make_rate,
            storage=None if storage is None else CheckpointDirectory(storage, job_id),
        )

    def _make_executor(
        self, job_id: str, graph: StreamGraph, levels: Levels, settings: JobSettings
    ) -> HarnessExecutor:
        self._executor = HarnessExecutor(
            Placement(
                segment_directory=f"{self._directory.name}/segments",
                cached_files={file.name: qualify(file.path) for file in settings.cached_files},
            ),
            self._make_slots,
        )
        return self._executor

    def _make_slots(self, program: JobProgram) -> HarnessSlots:
        self._program = program
        if self._store is None:
            self._store = self._open_store(program)
        is_live = self._configuration.get(options.EXECUTION) == "real-time" and not program.batch
        slots = HarnessLiveSlots if is_live else HarnessSlots
        return slots(
            program,
            self._random,
            self._arguments["batch_bytes"],
            self.now_millis,
            self._store,
            pass_time=self._edge.pass_time,
            before_close=self._keep_final_state,
            spawn=self._edge.spawn,
        )

    def _open_store(self, program: JobProgram) -> SegmentStore:
        """Open one store for all slots, so that its faults apply to their files too.

        The slots of a real job open their own stores.
        """
        storage: Storage | None = self._arguments["storage"]
        if storage is None:
            return program.open_segment_store()
        shared = CheckpointDirectory(storage, program.job_id).shared
        return StorageSegmentStore(shared, program.inline_threshold)

    # Running

    @property
    def master(self) -> JobMaster:
        """The job master.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 3))
        >>> harness.master.failure is None
        True
        """
        return self._runner.master

    @property
    def status(self) -> JobStatus:
        """The status of the job.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 3))
        >>> harness.run()
        >>> harness.status
        <JobStatus.FINISHED: 6>
        """
        return self._runner.status

    @property
    def epoch(self) -> int:
        """The last epoch that ran.

        >>> harness = JobHarness(lambda env: env.from_collection([1, 2, 3]), records_per_epoch=1)
        >>> harness.run_epoch(), harness.run_epoch()
        (True, True)
        >>> harness.epoch
        2
        """
        return self._executor.slots.epoch

    @property
    def storage_is_stuck(self) -> bool:
        """True while checkpoint storage does not do its work. A test sets it.

        >>> harness = JobHarness(
        ...     lambda env: env.from_collection([1, 2, 3]), records_per_epoch=1, checkpoint_every=0
        ... )
        >>> harness.storage_is_stuck = True
        >>> checkpoint = harness.request_checkpoint()
        >>> harness.run_epoch(), checkpoint.done()
        (True, False)
        >>> harness.storage_is_stuck = False
        >>> harness.run_epoch(), checkpoint.done()
        (True, True)
        """
        return self._edge.storage_is_stuck

    @storage_is_stuck.setter
    def storage_is_stuck(self, stuck: bool) -> None:
        self._edge.storage_is_stuck = stuck

    @property
    def enumerators_are_stuck(self) -> bool:
        """True while the enumerators of sources do not answer. A test sets it.

        >>> harness = JobHarness(lambda env: env.from_collection([1, 2, 3]))
        >>> harness.enumerators_are_stuck = True
        >>> harness.run_epoch(), harness.collected
        (True, [])
        >>> harness.enumerators_are_stuck = False
        >>> harness.run()
        >>> harness.collected
        [1, 2, 3]
        """
        return self._edge.enumerators_are_stuck

    @enumerators_are_stuck.setter
    def enumerators_are_stuck(self, stuck: bool) -> None:
        self._edge.enumerators_are_stuck = stuck

    @property
    def savepoints_are_stuck(self) -> bool:
        """True while the slots do not write the files of savepoints. A test sets it.

        >>> harness = JobHarness(
        ...     lambda env: env.from_collection([1, 1, 1]).key_by(lambda n: n).reduce(max),
        ...     records_per_epoch=1,
        ... )
        >>> harness.savepoints_are_stuck = True
        >>> savepoint = harness.request_savepoint()
        >>> harness.run_epoch(), savepoint.done()
        (True, False)
        >>> harness.savepoints_are_stuck = False
        >>> harness.run_epoch(), savepoint.done()
        (True, True)
        """
        return self._edge.savepoints_are_stuck

    @savepoints_are_stuck.setter
    def savepoints_are_stuck(self, stuck: bool) -> None:
        self._edge.savepoints_are_stuck = stuck

    def write_savepoint_file(self) -> bool:
        """Let a slot write one file, while ``savepoints_are_stuck``. Returns False if none is left.

        >>> harness = JobHarness(
        ...     lambda env: env.from_collection([1, 1, 1]).key_by(lambda n: n).reduce(max),
        ...     records_per_epoch=1,
        ... )
        >>> harness.savepoints_are_stuck = True
        >>> savepoint = harness.request_savepoint()
        >>> harness.run_epoch(), harness.write_savepoint_file(), harness.write_savepoint_file()
        (True, True, False)
        """
        return self._edge.step()

    def run(self, faults: Mapping[int, Faults] | None = None) -> None:
        """Run the job to its end.

        Args:
            faults: Faults by epoch, from 1, and by place.

        Raises:
            FiresteelError: The job failed.
        """
        for _ in range(_MOST_EPOCHS):
            if self.status.is_terminal_state():
                break
            self.run_epoch((faults or {}).get(self.epoch + 1))
        else:
            raise JobExecutionError(
                f"the job has not ended after {_MOST_EPOCHS} epochs. If its sources are unbounded, "
                "call run_epoch() as often as needed, then cancel() or stop()."
            )
        if self._runner.failure is not None:
            raise self._runner.failure

    def run_epoch(self, faults: Faults | None = None) -> bool:
        """Run an epoch. A failed job restarts if its restart strategy allows it.

        Args:
            faults: Faults of this epoch, by place.

        Returns:
            False if the job has ended.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 4), records_per_epoch=2)
        >>> harness.run_epoch(), harness.collected
        (True, [1, 2])
        """
        if self.status.is_terminal_state():
            return False
        every = self._arguments["checkpoint_every"]
        if every and (self.epoch + 1) % every == 0:
            self.request_checkpoint()
        self._executor.slots.faults = faults or {}
        self._edge.work()
        self._edge.epoch_begins()
        self._runner.run_epoch()
        self._after_epoch()
        return not self.status.is_terminal_state()

    def _keep_final_state(self) -> None:
        """Read the keyed state before the files of the ended job are deleted."""
        if self.status.is_terminal_state():
            self._final_state = self.keyed_state()

    def _after_epoch(self) -> None:
        self._executor.slots.let_zombies_work()
        self._edge.work()
        self._runner.hand_out()

    # Events

    def checkpoint(self) -> str:
        """Take a checkpoint with the next epoch, and return its directory.

        Raises:
            FiresteelError: The checkpoint failed.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(
        ...     lambda env: env.from_sequence(1, 9), records_per_epoch=2, checkpoint_every=0
        ... )
        >>> harness.checkpoint()
        '.../chk-1'
        """
        return self._answered(self.request_checkpoint())

    def request_checkpoint(self) -> Future[str]:
        """Request a checkpoint and return a future with its directory.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(
        ...     lambda env: env.from_sequence(1, 9), records_per_epoch=2, checkpoint_every=0
        ... )
        >>> checkpoint = harness.request_checkpoint()
        >>> checkpoint.done(), harness.run_epoch(), checkpoint.done()
        (False, True, True)
        """
        return self._request(SnapshotType.CHECKPOINT)

    def savepoint(self, directory: str | None = None, *, native: bool = False) -> str:
        """Take a savepoint, and return its directory. The job continues.

        Args:
            directory: The parent directory. The default is a temporary one.
            native: True takes it in the format of the state backend.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 9), records_per_epoch=2)
        >>> harness.savepoint("savepoints")
        '.../savepoints/savepoint-...'
        """
        return self._answered(self.request_savepoint(directory, native=native))

    def stop(
        self, directory: str | None = None, *, drain: bool = False, native: bool = False
    ) -> str:
        """Stop the job with a savepoint, and return its directory.

        Args:
            directory: The parent directory. The default is a temporary one.
            drain: True fires all windows and timers first.
            native: True takes the savepoint in the format of the state backend.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 6), records_per_epoch=2)
        >>> savepoint = harness.stop()
        >>> harness.collected
        [1, 2]
        >>> resumed = harness.resume(savepoint)
        >>> resumed.run()
        >>> resumed.collected
        [3, 4, 5, 6]
        """
        mode = StopMode.DRAIN if drain else StopMode.SUSPEND
        location = self._answered(self.request_savepoint(directory, mode, native=native))
        self.run()
        return location

    def request_savepoint(
        self,
        directory: str | None = None,
        stop: StopMode | None = None,
        *,
        native: bool = False,
    ) -> Future[str]:
        """Request a savepoint and return a future with its directory.

        Args:
            directory: The parent directory. The default is a temporary one.
            stop: The way to stop the job with the savepoint, or None to let it continue.
            native: True requests it in the format of the state backend.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 9), records_per_epoch=2)
        >>> savepoint = harness.request_savepoint()
        >>> savepoint.done(), harness.run_epoch(), savepoint.done()
        (False, True, True)
        """
        return self._request(
            SnapshotType.SAVEPOINT, directory or f"{self._directory.name}/savepoints", stop, native
        )

    def rescale(self, parallelism: int) -> None:
        """Change the parallelism of the running job, as far as its operators allow it.

        The job takes a checkpoint and starts from it, as ``firesteel rescale`` lets it do.

        Args:
            parallelism: The new parallelism of all operators that can have it.

        >>> from firesteel.testing import JobHarness
        >>> def program(env):
        ...     return env.from_sequence(1, 6).key_by(lambda number: number % 2).sum()
        >>> harness = JobHarness(program, parallelism=1, records_per_epoch=2)
        >>> harness.rescale(3)
        >>> harness.run()
        >>> sorted(harness.collected)
        [1, 2, 4, 6, 9, 12]
        """
        _DIRECTORIES_OF_SNAPSHOTS.add(self._directory)
        if self.status is JobStatus.CREATED:
            self.run_epoch()
        self._answered(
            self._runner.rescale(
                lambda levels: rescale(levels, uniform_parallelism(levels.job_graph, parallelism))
            )
        )

    def cancel(self) -> None:
        """Cancel the job. The next epoch closes the slots.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 9), records_per_epoch=2)
        >>> harness.cancel()
        >>> harness.run_epoch(), harness.status.name
        (False, 'CANCELED')
        """
        self._runner.cancel()

    def crash(self) -> None:
        """Lose all processes with slots. The job fails and restarts.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(
        ...     lambda env: env.from_sequence(1, 4), records_per_epoch=2, checkpoint_every=1
        ... )
        >>> harness.run_epoch()
        True
        >>> harness.crash()
        >>> harness.run()
        >>> harness.collected
        [1, 2, 3, 4]
        """
        self.master.fail(JobExecutionError("the test called crash() of the harness"))
        self.master.abandon()
        self._edge.work()
        self._runner.run_epoch()
        self._after_epoch()

    def kill(self) -> None:
        """Lose the driver and everything except files. ``resume`` starts a new driver.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(
        ...     lambda env: env.from_sequence(1, 4), records_per_epoch=2, checkpoint_every=1
        ... )
        >>> harness.run_epoch()
        True
        >>> harness.kill()
        >>> resumed = harness.resume()
        >>> resumed.run()
        >>> resumed.collected
        [3, 4]
        """
        self.storage_is_stuck = True
        self._edge.storage.drop()

    def resume(self, path: str | None = None, **changes: Any) -> JobHarness:
        """Submit the job again, and return its harness.

        Args:
            path: The savepoint or checkpoint to restore. The default is the newest checkpoint.
            **changes: New arguments of the harness, such as ``program`` or ``parallelism``.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 4), records_per_epoch=2)
        >>> resumed = harness.resume(harness.stop(), parallelism=2)
        >>> resumed.run()
        >>> sorted(resumed.collected)
        [3, 4]
        """
        configuration = Configuration(self._configuration)
        arguments = {**self._arguments, "now": self._edge.now(), **changes}
        configuration.add_all(arguments["configuration"] or Configuration())
        root = self._configuration.get(CHECKPOINT_DIR)
        if path is None and root is None:
            raise InvalidProgramError(
                "the harness has no directory of checkpoints to resume from: pass the path of a "
                "savepoint or checkpoint to resume()"
            )
        configuration.set_string(RECOVERY_PATH.key, path or str(root))
        program = arguments.pop("program")
        resumed = JobHarness(program, **{**arguments, "configuration": configuration})
        # The directory of this harness must exist as long as the resumed one.
        resumed._predecessor = self
        return resumed

    def _request(
        self,
        kind: SnapshotType,
        directory: str | None = None,
        stop: StopMode | None = None,
        native: bool = False,
    ) -> Future[str]:
        _DIRECTORIES_OF_SNAPSHOTS.add(self._directory)

        def request(request_id: str) -> SnapshotRequest:
            target = None
            if directory is not None:
                target = savepoint_directory(directory, self._program.job_id, request_id)
            return SnapshotRequest(request_id, kind, target, stop, native)

        return self._runner.request_snapshot(request)

    def _answered(self, answer: Future[str]) -> str:
        while not answer.done() and self.run_epoch():
            pass
        return answer.result(timeout=0)

    # Results

    def let_pass(self, seconds: float) -> None:
        """Let processing time pass.

        >>> harness = JobHarness(lambda env: env.from_collection([1]))
        >>> harness.let_pass(2.5)
        >>> harness.now_millis()
        2500
        """
        self._edge.pass_time(seconds)

    def now_millis(self) -> int:
        """Return the processing time in milliseconds.

        >>> from firesteel.testing import JobHarness
        >>> JobHarness(lambda env: env.from_sequence(1, 3), now=2.5).now_millis()
        2500
        """
        return round(self._edge.now() * 1000)

    @property
    def collected(self) -> list[Any]:
        """The records of the stream that the program returned."""
        if len(self._collected) != 1:
            raise InvalidProgramError(
                f"the program returned {len(self._collected)} streams; use collected_by_stream"
            )
        return self._collected[0].records

    @property
    def collected_by_stream(self) -> list[list[Any]]:
        """The records of each stream that the program returned.

        >>> from firesteel.testing import JobHarness
        >>> def program(env):
        ...     numbers = env.from_sequence(1, 4)
        ...     return numbers.filter(lambda number: number % 2 == 0), numbers
        >>> harness = JobHarness(program)
        >>> harness.run()
        >>> harness.collected_by_stream
        [[2, 4], [1, 2, 3, 4]]
        """
        return [stream.records for stream in self._collected]

    def keyed_state(self) -> KeyedStates:
        """Return the keyed state after the last epoch, by operator, state and key.

        >>> from firesteel.testing import JobHarness
        >>> def program(env):
        ...     words = env.from_collection(["be", "not", "be"])
        ...     return words.key_by(len).reduce(lambda first, second: first + second).uid("joined")
        >>> harness = JobHarness(program)
        >>> harness.run()
        >>> harness.keyed_state()
        {'joined': {'reduce': {2: 'bebe', 3: 'not'}}}
        """
        if self._final_state is not None:
            return self._final_state
        assert self._store is not None
        return keyed_states(self.master, self._program, self._store)

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the user's functions, with the names of ``JobClient.get_metrics``.

        >>> from firesteel.testing import JobHarness
        >>> class Count(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.records = runtime_context.get_metrics_group().counter("records")
        ...     def map(self, value):
        ...         self.records.inc()
        ...         return value
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 3).map(Count()).name("count"))
        >>> harness.run()
        >>> harness.metrics()
        {'count.records': {'kind': 'counter', 'count': 3}}
        """
        return self.master.metrics.user_metrics()

    def places(self) -> list[Place]:
        """Return the (level, slot) pairs of the job, at which faults can be injected.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(lambda env: env.from_sequence(1, 3), parallelism=2)
        >>> harness.places()
        [(0, 0), (0, 1)]
        """
        return self._executor.slots.places()

    def checkpoint_directory(self) -> Path:
        """Return the directory with the checkpoints of this job.

        >>> from firesteel.testing import JobHarness
        >>> harness = JobHarness(
        ...     lambda env: env.from_sequence(1, 9), records_per_epoch=2, checkpoint_every=0
        ... )
        >>> checkpoint = harness.checkpoint()
        >>> (harness.checkpoint_directory() / "chk-1").exists()
        True
        """
        return Path(self._configuration.get(CHECKPOINT_DIR) or "", self._program.job_id)

    def files(self) -> list[Path]:
        """Return the files with state.

        >>> from firesteel.testing import JobHarness
        >>> JobHarness(lambda env: env.from_sequence(1, 3)).files()
        []
        """
        return sorted(Path(self._program.segment_directory or "").glob("*"))
