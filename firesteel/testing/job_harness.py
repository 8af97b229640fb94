"""A whole job in one process, without Spark: the real job master drives the real slots.

With checkpoints the real coordinator, storage and recovery are at work, too; only their thread is
missing: what is to be written is written between two epochs.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.savepoints.savepoint import savepoint_directory
from firesteel.checkpoint.storage.checkpoint_directory import CheckpointDirectory
from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import Storage
from firesteel.common.configuration import Configuration
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.job_status import JobStatus
from firesteel.config import options
from firesteel.config.checkpoint_options import (
    CHECKPOINT_DIR,
    CHECKPOINT_STORAGE,
    CHECKPOINTING_INTERVAL,
    RECOVERY_PATH,
)
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.data_stream.stream_base import StreamBase, collect_sink
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.stream_execution_environment.environment import compiled_job
from firesteel.datastream.stream_execution_environment.job_compiler import CompiledJob
from firesteel.errors import InvalidProgramError, JobExecutionError, UserFunctionError
from firesteel.filesystems.file_systems import qualify
from firesteel.filesystems.settings import file_system_options
from firesteel.graph.job_graph import key_types_of
from firesteel.master.driver_commit import commit_prepared
from firesteel.master.epoch_rows import hand_out
from firesteel.master.job_attempts import JobAttempts, JobRecovery
from firesteel.master.job_master import JobMaster
from firesteel.master.job_status import explained
from firesteel.master.rate_control import RateControl
from firesteel.protocol.messages import ReadBudget
from firesteel.protocol.program import JobProgram
from firesteel.state.backend_factory import create_keyed_state, settings_of
from firesteel.state.changelog import SegmentStore
from firesteel.task.state.restoring import restore_from_handle
from firesteel.testing.harness_slots import Faults, HarnessSlots, Place

Program = Callable[[StreamExecutionEnvironment], Any]
"""Builds a job; what it returns (a stream, or a tuple of streams) is collected."""


@dataclass(slots=True)
class CollectedRecords:
    """The driver object of a collected stream."""

    records: list[Any] = field(default_factory=list)

    def add(self, records: list[Any]) -> None:
        self.records += records


@dataclass(slots=True)
class ScriptedRate(RateControl):
    """Says how many records each epoch may read, whatever it takes."""

    target_seconds: float = 0.0
    records: Iterable[int] = (1000,)
    _remaining: Any = None

    def budget(self) -> ReadBudget:
        if self._remaining is None:
            self._remaining = cycle(self.records)
        return ReadBudget(next(self._remaining), float("inf"))

    def epoch_took(self, seconds: float, records_of_fullest_slot: int) -> None:
        """A script does not learn."""


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
    return compiled_job(environment, "harness", *sinks), collected


def with_checkpoints(configuration: Configuration, root: str) -> Configuration:
    """Checkpoints are on, but none is taken unless the harness asks for it."""
    configuration = Configuration(configuration)
    if not configuration.contains(CHECKPOINTING_INTERVAL):
        configuration.set_string(CHECKPOINTING_INTERVAL.key, "36500 d")
    if not configuration.contains(CHECKPOINT_STORAGE) and not configuration.contains(
        CHECKPOINT_DIR
    ):
        configuration.set_string(CHECKPOINT_DIR.key, root)
    return configuration


class BetweenEpochs(Executor):
    """What is submitted waits for ``run``, or for somebody who wants to know how it ended."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[_Work, Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        work = _Work(self)
        self._waiting.append((work, lambda: fn(*args, **kwargs)))
        return work

    def run(self) -> None:
        while self._waiting:
            work, call = self._waiting.popleft()
            try:
                work.set_result(call())
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever asks
                work.set_exception(error)

    def drop(self) -> None:
        """The process is gone before it came to it."""
        self._waiting.clear()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.run()


class _Work(Future[Any]):
    def __init__(self, executor: BetweenEpochs) -> None:
        super().__init__()
        self._executor = executor

    def result(self, timeout: float | None = None) -> Any:
        self._executor.run()
        return super().result(timeout)


KeyedStates = dict[str, dict[str, dict[Any, Any]]]
"""Operator (its uid, or its name) -> state -> key, or (key, namespace) -> value."""


def keyed_states(master: JobMaster, program: JobProgram, store: SegmentStore) -> KeyedStates:
    """Of all subtasks together. An operator whose name is not unique is called by its id, too."""
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
_EPOCH_SECONDS = 0.001
# Sooner than this is now.
_NOW_SECONDS = 1e-6

# A checkpoint or savepoint that was asked for outlives its harness, until the process ends.
_DIRECTORIES_OF_SNAPSHOTS: set[tempfile.TemporaryDirectory[str]] = set()


class JobHarness:
    """Runs the job that ``program(environment)`` builds.

    Streams that ``program`` returns (one, or a tuple of them) are collected. ``records_per_epoch``
    is what each source may read in an epoch, or a list of such numbers, taken in turn.

    >>> def program(env):
    ...     words = env.from_collection(["to", "be", "or", "not", "to", "be"])
    ...     return words.key_by(lambda word: word).fold(0, lambda count, _: count + 1)
    >>> harness = JobHarness(program, parallelism=2, records_per_epoch=2)
    >>> harness.run()
    >>> sorted(harness.collected)
    [1, 1, 1, 1, 2, 2]

    ``checkpoint_every`` is a number of epochs; 0 takes checkpoints only when ``checkpoint`` is
    called. They go to where the configuration says, else to a temporary directory. ``storage`` is
    a directory whose file system may be a faulty one. ``now`` is the processing time in seconds.
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
        self._directory = tempfile.TemporaryDirectory(prefix="firesteel-harness-")
        self._predecessor: JobHarness | None = None
        self._random = Random(seed)
        self._rate = partial(ScriptedRate, records=budgets)
        self._now = now
        self._canceled = False
        self._collected: list[CollectedRecords] = []
        self._final_state: KeyedStates | None = None
        self.epoch = 0
        #: The lines that print() wrote.
        self.printed: list[str] = []
        #: While it is set, checkpoint storage does not get to what it is asked for.
        self.storage_is_stuck = False
        self._job = program if isinstance(program, CompiledJob) else self._compile(program)
        self._graph = self._job.stream_graph
        self._configuration = self._job.settings.configuration
        self._batch = self._job.settings.runtime_mode is RuntimeExecutionMode.BATCH
        self._storage_thread = BetweenEpochs()
        self._prepare(uuid.uuid4().hex)
        self._begin_attempt()

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

    def _prepare(self, job_id: str) -> None:
        settings, storage = self._job.settings, self._arguments["storage"]
        recovery = JobRecovery(
            job_id,
            settings.job_name,
            self._configuration,
            self._job.levels,
            storage=None if storage is None else CheckpointDirectory(storage, job_id),
            clock=self._clock,
        )
        threshold = self._arguments["inline_threshold"]
        shared = recovery.storage.shared
        if recovery.is_periodic:
            segments = None if shared is None else shared.location
        else:
            segments = f"{self._directory.name}/segments"
        self._program = JobProgram(
            job_id=job_id,
            job_name=settings.job_name,
            attempt=0,
            levels=recovery.levels,
            job_parameters=self._configuration.get(options.GLOBAL_JOB_PARAMETERS),
            segment_directory=segments,
            inline_threshold=threshold,
            batch=self._batch,
            cached_files={file.name: qualify(file.path) for file in settings.cached_files},
            checkpointed=recovery.is_periodic and not self._batch,
            exactly_once=recovery.settings.mode is CheckpointingMode.EXACTLY_ONCE,
            state_backend=settings_of(self._configuration),
            auto_watermark_interval=ExecutionConfig(
                self._configuration
            ).get_auto_watermark_interval(),
            file_systems=file_system_options(self._configuration),
        )
        # Slots of a real job open their stores themselves; these must meet the same faults.
        faulty = None if storage is None else StorageSegmentStore(shared, threshold)
        self._store = faulty or self._program.open_segment_store()
        self._attempts = JobAttempts(
            recovery, self._program, threading.Condition(), self._storage_thread, self._clock
        )

    def _begin_attempt(self) -> None:
        program = self._attempts.begin(self._rate())
        self._slots = HarnessSlots(
            program, self._random, self._arguments["batch_bytes"], self.now_millis, self._store
        )

    # Running

    @property
    def master(self) -> JobMaster:
        return self._attempts.master

    @property
    def status(self) -> JobStatus:
        return self.master.status

    def run(self, faults: Mapping[int, Faults] | None = None) -> None:
        """Run to the end; ``faults`` by epoch (from 1). A failed job raises its error."""
        for _ in range(_MOST_EPOCHS):
            if self.status.is_terminal_state():
                break
            self.run_epoch((faults or {}).get(self.epoch + 1))
        else:
            raise JobExecutionError(f"the job has not ended after {_MOST_EPOCHS} epochs")
        if self.master.failure is not None:
            raise self.master.failure

    def run_epoch(self, faults: Faults | None = None) -> bool:
        """Run one epoch, if the job is not over; whether it goes on after that.

        A job that fails starts over, if its restart strategy says so.
        """
        if self._batch:
            self._run_batch(faults or {})
            return False
        if not self._wait_until_due():
            return False
        plan = self.master.plan_epoch(self._now)
        self.epoch = plan.epoch
        rows = self._slots.run_epoch(plan, faults or {}, last=False)
        if not rows.failures:
            collect = partial(self._attempts.collected.add, self.epoch)
            rows.deliver(self._graph, self.printed.extend, collect)
        self._now += _EPOCH_SECONDS
        self.master.epoch_ended(rows.acks, rows.failures, self._now)
        self._slots.let_zombies_work()
        self._after_epoch()
        return not self.status.is_terminal_state()

    def _wait_until_due(self) -> bool:
        """Let time pass until an epoch is due; False if none will be."""
        every = self._arguments["checkpoint_every"]
        if every and (self.epoch + 1) % every == 0 and not self.status.is_terminal_state():
            self.request_checkpoint()
        for _ in range(_MOST_EPOCHS):
            try:
                delay = self.master.delay(self._now)
            except UserFunctionError as error:
                # Of an enumerator.
                self.master.fail(error)
                continue
            self._let_storage_work()
            if delay is None or delay < _NOW_SECONDS:
                return delay is not None
            self._now += delay
        raise JobExecutionError("the job waits for something that does not happen")

    def _let_pass(self, seconds: float) -> None:
        self._now += seconds

    def _let_storage_work(self) -> None:
        self._attempts.executor.carry_out(self.master.checkpoints.take_for_edge())
        if not self.storage_is_stuck:
            self._storage_thread.run()

    def _after_epoch(self) -> None:
        self._let_storage_work()
        if self.status.is_terminal_state():
            self._after_attempt()
        hand_out(self._graph, self._attempts.collected.take())

    def _after_attempt(self) -> None:
        if self.status is JobStatus.FAILED and not self._canceled:
            decision = self._attempts.failed()
            if decision.restart:
                self._now += decision.delay
                self._begin_attempt()
                return
        self._final_state = self.keyed_state()
        self._attempts.end(self.status)
        self._attempts.close()

    def _run_batch(self, faults: Faults) -> None:
        plan = self.master.plan_batch(self._let_pass)
        self.epoch = plan.epoch
        rows = self._slots.run_epoch(plan, faults, last=True)
        if not rows.failures:
            rows.deliver(
                self._graph,
                self.printed.extend,
                lambda node, some: hand_out(self._graph, [(node, some)]),
            )
        commit = partial(commit_prepared, self._graph, self._program.job_id)
        try:
            self.master.batch_ended(rows.acks, rows.failures, commit)
        except Exception as error:  # noqa: BLE001 - a committer of the user's may raise anything
            self.master.fail(explained(error, self._program.job_id, self._program.job_name))
            self.master.abandon()

    # What happens to it

    def checkpoint(self) -> str:
        """Take a checkpoint with the next epoch; its directory. Raises what it failed of."""
        return self._answered(self.request_checkpoint())

    def request_checkpoint(self) -> Future[str]:
        """Ask for a checkpoint without waiting for it."""
        return self._request(SnapshotType.CHECKPOINT)

    def savepoint(self, directory: str | None = None) -> str:
        """Take a savepoint; the job goes on."""
        return self._answered(self.request_savepoint(directory))

    def stop(self, directory: str | None = None, *, drain: bool = False) -> str:
        """Stop the job with a savepoint."""
        mode = StopMode.DRAIN if drain else StopMode.SUSPEND
        location = self._answered(self.request_savepoint(directory, mode))
        self.run()
        return location

    def request_savepoint(
        self, directory: str | None = None, stop: StopMode | None = None
    ) -> Future[str]:
        """Ask for a savepoint without waiting for it."""
        return self._request(
            SnapshotType.SAVEPOINT, directory or f"{self._directory.name}/savepoints", stop
        )

    def cancel(self) -> None:
        """Ask for the end; the next epoch closes the slots."""
        self._canceled = True
        self.master.cancel()

    def crash(self) -> None:
        """All processes with slots are gone at once: the job fails, and starts over."""
        self.master.fail(JobExecutionError("the test has crashed the job"))
        self.master.abandon()
        self._after_epoch()

    def kill(self) -> None:
        """The driver is gone, and everything with it but what lies in files. See ``resume``."""
        self.storage_is_stuck = True
        self._storage_thread.drop()

    def resume(self, path: str | None = None, **changes: Any) -> JobHarness:
        """The job, submitted again; from a savepoint, or from its newest checkpoint.

        ``changes`` are arguments as for a new harness: ``program``, ``parallelism`` and so on.
        """
        configuration = Configuration(self._configuration)
        arguments = {**self._arguments, "now": self._now, **changes}
        configuration.add_all(arguments["configuration"] or Configuration())
        root = self._configuration.get(CHECKPOINT_DIR)
        if path is None and root is None:
            raise InvalidProgramError("the harness keeps its checkpoints in memory: name a path")
        configuration.set_string(RECOVERY_PATH.key, path or str(root))
        program = arguments.pop("program")
        resumed = JobHarness(program, **{**arguments, "configuration": configuration})
        # Its directory goes with it.
        resumed._predecessor = self
        return resumed

    def _request(
        self, kind: SnapshotType, directory: str | None = None, stop: StopMode | None = None
    ) -> Future[str]:
        _DIRECTORIES_OF_SNAPSHOTS.add(self._directory)

        def request(request_id: str) -> SnapshotRequest:
            target = None
            if directory is not None:
                target = savepoint_directory(directory, self._program.job_id, request_id)
            return SnapshotRequest(request_id, kind, target, stop)

        return self._attempts.executor.request(request)

    def _answered(self, answer: Future[str]) -> str:
        while not answer.done() and self.run_epoch():
            pass
        return answer.result(timeout=0)

    # What came out

    def now_millis(self) -> int:
        """Processing time: it jumps from epoch to epoch, to the time the next one is due."""
        return round(self._now * 1000)

    def _clock(self) -> float:
        return self._now

    @property
    def collected(self) -> list[Any]:
        """The records of the one stream that the program returned."""
        if len(self._collected) != 1:
            raise InvalidProgramError(
                f"the program returned {len(self._collected)} streams; use collected_by_stream"
            )
        return self._collected[0].records

    @property
    def collected_by_stream(self) -> list[list[Any]]:
        """The records of each stream that the program returned."""
        return [stream.records for stream in self._collected]

    def keyed_state(self) -> KeyedStates:
        """The keyed state of all operators as of the last epoch, by operator, state and key."""
        if self._final_state is not None:
            return self._final_state
        return keyed_states(self.master, self._program, self._store)

    def metrics(self) -> dict[str, Any]:
        """The user's metrics, merged over all subtasks, as ``JobClient.get_metrics`` names them."""
        return self.master.metrics.user_metrics()

    def places(self) -> list[Place]:
        """Every (level, slot) of the job: where faults can be injected."""
        return self._slots.places()

    def checkpoint_directory(self) -> Path:
        """Where the checkpoints of this job are, and of no other."""
        return Path(self._configuration.get(CHECKPOINT_DIR) or "", self._program.job_id)

    def files(self) -> list[Path]:
        """The state segments that are kept in files."""
        return sorted(Path(self._program.segment_directory or "").glob("*"))
