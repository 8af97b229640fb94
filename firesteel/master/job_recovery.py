"""What outlives the attempts of a job: its checkpoints, and the decision to start over."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

from firesteel.checkpoint.checkpoint_directory import JobCheckpointStorage, job_checkpoint_storage
from firesteel.checkpoint.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.coordinator import CheckpointCoordinator
from firesteel.checkpoint.decisions import Decision
from firesteel.checkpoint.discovery import find_checkpoint
from firesteel.checkpoint.metadata import CheckpointMetadata
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.restore import (
    RestorePlan,
    plan_restore,
    restore_targets,
    with_stored_max_parallelism,
)
from firesteel.checkpoint.settings import checkpoint_settings, file_system_options
from firesteel.checkpoint.tasks import operators_of
from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.levels import Levels
from firesteel.master.checkpoint_acks import restored_handles
from firesteel.master.restart_strategies import RestartDecision, restart_strategy
from firesteel.master.starting_point import StartingPoint

_log = logging.getLogger("firesteel")


class JobRecovery:
    def __init__(
        self, job_id: str, job_name: str, configuration: Configuration, levels: Levels
    ) -> None:
        """Reads the checkpoint that the job is to start from, if it is told one."""
        self.settings = checkpoint_settings(configuration)
        self.storage: JobCheckpointStorage = job_checkpoint_storage(configuration, job_id)
        self._strategy = restart_strategy(configuration)
        self._first: CompletedCheckpoint | None = None
        self._allow_lost = configuration.get(checkpoint_options.IGNORE_UNCLAIMED_STATE)
        path = configuration.get(checkpoint_options.RECOVERY_PATH)
        if path is not None:
            found = find_checkpoint(path, file_system_options(configuration), job_name=job_name)
            claimed = configuration.get(checkpoint_options.CLAIM_MODE) == "CLAIM"
            self._first = replace(found.checkpoint, is_owned=claimed)
            graph = levels.job_graph
            graph = with_stored_max_parallelism(graph, self._plan(graph, self._first))
            levels = replace(levels, job_graph=graph)
            _log.info("%s", found.message)
        self.levels = levels
        now = time.monotonic()
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
        checkpoint = self.coordinator.store.latest or self._first
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

    def failed(self, now: float) -> RestartDecision:
        return self._strategy.failed(now)


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
    handles = restored_handles(graph, plan, metadata.checkpoint_id)
    return StartingPoint(
        metadata.checkpoint_id, metadata.epoch, handles, committables, enumerators, splits
    )
