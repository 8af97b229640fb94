"""What outlives the attempts of a job: its checkpoints, and the decision to start over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firesteel.checkpoint.checkpoint_directory import JobCheckpointStorage, job_checkpoint_storage
from firesteel.checkpoint.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.coordinator import CheckpointCoordinator
from firesteel.checkpoint.decisions import Decision
from firesteel.checkpoint.discovery import find_checkpoint
from firesteel.checkpoint.errors import CorruptFileError
from firesteel.checkpoint.metadata import CheckpointMetadata
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.restore import (
    RestorePlan,
    plan_restore,
    restore_targets,
    with_stored_max_parallelism,
)
from firesteel.checkpoint.settings import checkpoint_settings, file_system_options
from firesteel.checkpoint.storage import open_storage
from firesteel.checkpoint.tasks import operators_of
from firesteel.checkpoint.verification import verify
from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options
from firesteel.errors import FiresteelError, UserFunctionError
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.levels import Levels
from firesteel.master.checkpoint_acks import restored_handles
from firesteel.master.restart_strategies import RestartDecision, restart_strategy
from firesteel.master.starting_point import StartingPoint
from firesteel.state.changelog import CorruptSegmentError
from firesteel.state.declarations import IncompatibleStateError

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
