"""The attempts of a job, one after the other: how each begins, and what follows when it has failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from threading import Condition

from firesteel.checkpoint.decisions import Decision
from firesteel.checkpoint.snapshot_writer import SnapshotWriter
from firesteel.common.job_status import JobStatus
from firesteel.common.typeinfo import TypeInformation
from firesteel.graph.key_types import key_types_of
from firesteel.graph.operator_specs import SourceSpec
from firesteel.master.abandoned import Abandoned, with_abandoned
from firesteel.master.checkpoint_executor import CheckpointExecutor
from firesteel.master.collected_output import CollectedOutput
from firesteel.master.job_master import JobMaster
from firesteel.master.job_recovery import JobRecovery
from firesteel.master.rate_control import RateControl
from firesteel.master.restart_strategies import RestartDecision
from firesteel.master.source_coordinator import SourceCoordinator
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.backend_factory import create_keyed_state
from firesteel.state.changelog import Segment
from firesteel.task.program import JobProgram

_log = logging.getLogger("firesteel")


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
