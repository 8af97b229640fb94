"""The attempts of a job, one after the other: how each begins, and what follows when it has failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from threading import Condition
from typing import Any

from firesteel.checkpoint.metadata import CheckpointMetadata
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.coordinator import CheckpointCoordinator
from firesteel.checkpoint.rules.decisions import Decision
from firesteel.checkpoint.rules.restore import (
    RestorePlan,
    plan_restore,
    restore_targets,
    with_stored_max_parallelism,
)
from firesteel.checkpoint.rules.settings import checkpoint_settings
from firesteel.checkpoint.rules.tasks import operators_of
from firesteel.checkpoint.snapshot_writer import SnapshotWriter
from firesteel.checkpoint.storage.checkpoint_directory import (
    JobCheckpointStorage,
    job_checkpoint_storage,
)
from firesteel.checkpoint.storage.discovery import find_checkpoint
from firesteel.checkpoint.storage.storage import CorruptFileError, open_storage
from firesteel.checkpoint.storage.verification import verify
from firesteel.common.configuration import Configuration
from firesteel.common.job_status import JobStatus
from firesteel.common.typeinfo import TypeInformation
from firesteel.config import checkpoint_options
from firesteel.errors import FiresteelError, UserFunctionError
from firesteel.filesystems.settings import file_system_options
from firesteel.graph.job_graph import JobGraph, key_types_of
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import SourceSpec
from firesteel.master.checkpoint_executor import CheckpointExecutor
from firesteel.master.committables import Abandoned, CollectedOutput, with_abandoned
from firesteel.master.job_checkpoints import restored_handles
from firesteel.master.job_master import JobMaster, StartingPoint
from firesteel.master.rate_control import RateControl
from firesteel.master.restart_strategies import RestartDecision, restart_strategy
from firesteel.master.source_coordinator import SourceCoordinator
from firesteel.protocol.program import JobProgram
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.backend_factory import create_keyed_state
from firesteel.state.changelog import CorruptSegmentError, Segment
from firesteel.state.table_descriptions import IncompatibleStateError

_log = logging.getLogger("firesteel")


class JobRecovery:
    def __init__(
        self,
        job_id: str,
        job_name: str,
        configuration: Configuration,
        levels: Levels,
        *,
        storage: JobCheckpointStorage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Reads the checkpoint that the job is to start from, if it is told one.

        ``storage`` is what the configuration says, unless a test brings one of its own.
        """
        self.settings = checkpoint_settings(configuration)
        self.storage = storage or job_checkpoint_storage(configuration, job_id)
        self._file_systems = file_system_options(configuration)
        self._strategy = restart_strategy(configuration)
        self._suspicious = False
        self._first: CompletedCheckpoint | None = None
        self._allow_lost = configuration.get(checkpoint_options.IGNORE_UNCLAIMED_STATE)
        path = configuration.get(checkpoint_options.RECOVERY_PATH)
        if path is not None:
            found = find_checkpoint(path, self._file_systems, job_name=job_name)
            claimed = configuration.get(checkpoint_options.CLAIM_MODE) == "CLAIM"
            self._first = replace(found.checkpoint, is_owned=claimed)
            plan = self._plan(levels.job_graph, self._first)
            graph = with_stored_max_parallelism(levels.job_graph, plan)
            levels = replace(levels, job_graph=graph)
            _log.info("%s %s", found.message, plan.message)
        self.levels = levels
        now = clock()
        self.coordinator = CheckpointCoordinator(
            self.settings,
            operators_of(levels.job_graph),
            job_id,
            job_name,
            now,
            wall_clock_offset=time.time() - now,
        )

    @property
    def is_periodic(self) -> bool:
        return self.settings.interval is not None

    def starting_point(self, now: float) -> tuple[StartingPoint, list[Decision]]:
        """Of the next attempt: the newest checkpoint, or where the job was started from."""
        checkpoint = self._newest()
        if checkpoint is None:
            return StartingPoint(), []
        graph = self.levels.job_graph
        plan = self._plan(graph, checkpoint)
        decisions = self.coordinator.restored(checkpoint, now)
        return _starting_point(graph, plan, checkpoint.metadata), decisions

    def _plan(self, graph: JobGraph, checkpoint: CompletedCheckpoint) -> RestorePlan:
        return plan_restore(
            checkpoint.metadata,
            restore_targets(graph),
            allow_non_restored_state=self._allow_lost,
            same_directory=self.storage.holds(checkpoint),
        )

    def _newest(self) -> CompletedCheckpoint | None:
        checkpoints = self.coordinator.store.checkpoints or (self._first,)
        if not self._suspicious:
            return checkpoints[-1]
        self._suspicious = False
        damage: CorruptFileError | None = None
        for checkpoint in reversed(checkpoints):
            try:
                self._verify(checkpoint)
            except CorruptFileError as error:
                damage = damage or error
                continue
            if damage is not None:
                title = "its beginning" if checkpoint is None else checkpoint.title
                _log.warning("%s. The job goes back to %s", damage, title)
            return checkpoint
        assert damage is not None
        raise damage

    def _verify(self, checkpoint: CompletedCheckpoint | None) -> None:
        if checkpoint is not None and checkpoint.location is not None:
            verify(checkpoint.metadata, open_storage(checkpoint.location, self._file_systems))

    def failed(self, failure: FiresteelError, now: float) -> RestartDecision:
        """Whether to start over. If state could not be read, the next checkpoint is looked at."""
        if _asks_for_other_state(failure):
            reason = "the program asks for other state than there is, and would do so again"
            return RestartDecision(restart=False, delay=0.0, attempt=0, reason=reason)
        self._suspicious = isinstance(failure, CorruptSegmentError | CorruptFileError)
        return self._strategy.failed(now)


def _asks_for_other_state(failure: FiresteelError) -> bool:
    if isinstance(failure, UserFunctionError):
        return failure.cause == IncompatibleStateError.__name__
    return isinstance(failure, IncompatibleStateError)


def _starting_point(
    graph: JobGraph, plan: RestorePlan, metadata: CheckpointMetadata
) -> StartingPoint:
    committables: dict[tuple[int, int], dict[int, tuple[Any, ...]]] = {}
    enumerators: dict[int, Payload] = {}
    splits: dict[int, tuple[int, ...]] = {}
    for vertex in graph.vertices:
        for node_id in vertex.operators:
            operator = plan.assignments.get(graph.nodes[node_id].operator_id)
            if operator is None:
                continue
            if operator.coordinator is not None:
                enumerators[node_id] = operator.coordinator
                splits[node_id] = tuple(len(subtask.splits) for subtask in operator.subtasks)
            for index, subtask in enumerate(operator.subtasks):
                if subtask.committables:
                    prepared = tuple(payload.load() for payload in subtask.committables)
                    committables.setdefault((vertex.id, index), {})[node_id] = prepared
    handles = restored_handles(graph, plan, metadata)
    return StartingPoint(
        metadata.checkpoint_id, metadata.epoch, handles, committables, enumerators, splits
    )


class JobAttempts:
    """Each attempt has a program, sources and a job master of its own; all else outlives them.

    ``changed`` guards the job master. Tests bring a ``thread`` and a ``clock`` of their own.
    """

    def __init__(
        self,
        recovery: JobRecovery,
        program: JobProgram,
        changed: Condition,
        thread: Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recovery = recovery
        self._program = program
        self._changed = changed
        self._clock = clock
        self._sources: dict[int, SourceCoordinator] = {}
        self._begun = 0
        self._abandoned: Abandoned = {}
        writer = _snapshot_writer(recovery, program)
        self.executor = CheckpointExecutor(writer, changed, thread, clock)
        self.collected = CollectedOutput(wait=program.checkpointed)
        self.master: JobMaster

    def begin(self, rate: RateControl) -> JobProgram:
        """The next attempt: from the newest checkpoint, if there is one. ``master`` leads it."""
        program = replace(self._program, attempt=self._begun)
        self._begun += 1
        start, decisions = self._recovery.starting_point(self._clock())
        start = replace(start, handles=with_abandoned(start.handles, self._abandoned))
        self._sources = {
            node.id: SourceCoordinator(
                node.id,
                node.spec.source,
                node.parallelism,
                start.enumerators.get(node.id),
                start.splits.get(node.id, ()),
                operator=node.name,
                job=program.job_name,
            )
            for node in program.levels.job_graph.nodes.values()
            if isinstance(node.spec, SourceSpec)
        }
        self.collected.go_back()
        self.master = JobMaster(
            program, self._sources, rate, self._recovery.coordinator, start, self.collected
        )
        self.executor.serve(self.master)
        self._decide(decisions)
        # What the attempt before had written in vain is deleted before a task writes anything new.
        self.executor.settle()
        return program

    def failed(self) -> RestartDecision:
        """The attempt has failed, and its slots are closed: whether to begin another one."""
        failure = self.master.failure
        assert failure is not None
        now = self._clock()
        decision = self._recovery.failed(failure, now)
        if decision.restart:
            name = self._program.job_name
            what = f"{name} failed and starts again in {decision.delay:.1f} s ({decision.reason})"
            _log.warning("%s: %s", what, failure)
            self._decide(self._recovery.coordinator.job_failed(now))
            self._abandoned = self.master.checkpoints.abandoned()
            self._close_sources()
        return decision

    def end(self, status: JobStatus) -> None:
        """There will be no other attempt. Checkpoints stay or go, as the job's settings say."""
        if status is JobStatus.FINISHED and not self.master.checkpoints.stopped:
            self.collected.confirm_all()
        self._decide(self._recovery.coordinator.shutdown(status, self._clock()))

    def close(self) -> None:
        """Wait for what is being written, and let go of everything."""
        self._close_sources()
        self.executor.close()

    def _decide(self, decisions: Sequence[Decision]) -> None:
        with self._changed:
            self.master.checkpoints.handle(decisions)
            self.executor.carry_out(self.master.checkpoints.take_for_edge())

    def _close_sources(self) -> None:
        for source in self._sources.values():
            source.close()
        self._sources = {}


def _snapshot_writer(recovery: JobRecovery, program: JobProgram) -> SnapshotWriter:
    store = program.open_segment_store()
    graph = program.levels.job_graph
    key_types = key_types_of(graph)
    nodes = {node.operator_id: node for node in graph.nodes.values()}

    def key_type_of(operator_id: str) -> TypeInformation | None:
        return key_types.get(nodes[operator_id].id)

    def open_backend(operator_id: str, segments: Sequence[Segment]) -> KeyedStateBackend:
        backend = create_keyed_state(
            program.state_backend, key_type_of(operator_id), nodes[operator_id].max_parallelism
        )
        backend.restore(segments, store)
        return backend

    return SnapshotWriter(
        recovery.storage,
        open_backend,
        program.file_systems,
        key_type_of,
        compress=program.state_backend.compress,
    )
