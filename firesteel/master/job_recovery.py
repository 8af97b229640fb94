"""Recovery of a job: the checkpoint that an attempt starts from, and the answer to a failure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
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
from firesteel.checkpoint.storage.checkpoint_directory import (
    JobCheckpointStorage,
    job_checkpoint_storage,
)
from firesteel.checkpoint.storage.discovery import find_checkpoint
from firesteel.checkpoint.storage.metadata_file import CheckpointNotFoundError
from firesteel.checkpoint.storage.storage import CorruptFileError, StorageError, open_storage
from firesteel.checkpoint.storage.verification import verify
from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options
from firesteel.errors import (
    FiresteelError,
    JobExecutionError,
    LeadershipLostError,
    UserFunctionError,
)
from firesteel.filesystems.settings import file_system_options
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.levels import Levels
from firesteel.leader.job_ledger import JobLedger
from firesteel.master.job_checkpoints import restored_handles
from firesteel.master.job_master import StartingPoint
from firesteel.master.restart_strategies import RestartDecision, restart_strategy
from firesteel.state.changelog import CorruptSegmentError
from firesteel.state.table_descriptions import IncompatibleStateError

_log = logging.getLogger("firesteel")


class JobRecovery:
    """The checkpoints and the restart strategy of one job. It outlives the attempts.

    It reads checkpoint storage, so it belongs to the edge.
    """

    def __init__(
        self,
        job_id: str,
        job_name: str,
        configuration: Configuration,
        levels: Levels,
        *,
        storage: JobCheckpointStorage | None = None,
        clock: Callable[[], float] = time.monotonic,
        ledger: JobLedger | None = None,
    ) -> None:
        """Read the checkpoint that the configuration tells the job to start from, if any.

        ``storage`` overrides the storage in the configuration. ``ledger`` has the checkpoints of
        earlier masters of the job, which come first.
        """
        self.settings = checkpoint_settings(configuration)
        self.storage = storage or job_checkpoint_storage(configuration, job_id)
        self._file_systems = file_system_options(configuration)
        self._strategy = restart_strategy(configuration)
        self._suspicious = False
        # The checkpoints to start from, newest first. The first one is used unless it is damaged.
        self._first: tuple[CompletedCheckpoint, ...] = ()
        self._allow_lost = configuration.get(checkpoint_options.IGNORE_UNCLAIMED_STATE)
        left = [] if ledger is None else self._left_by_earlier_masters(ledger)
        path = configuration.get(checkpoint_options.RECOVERY_PATH)
        if left:
            plan = self._plan(levels.job_graph, left[0])
            graph = with_stored_max_parallelism(levels.job_graph, plan)
            levels = replace(levels, job_graph=graph)
            _log.info("Restoring from %s. %s", left[0].title, plan.message)
        elif path is not None:
            # The slots read the files, in parallel, and compare the checksums.
            found = find_checkpoint(path, self._file_systems, job_name=job_name, deep=False)
            claimed = configuration.get(checkpoint_options.CLAIM_MODE) == "CLAIM"
            self._first = tuple(
                replace(one, is_owned=claimed) for one in (found.checkpoint, *found.older)
            )
            plan = self._plan(levels.job_graph, self._first[0])
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
            first_id=1 if ledger is None else ledger.next_checkpoint_id,
            run=self._number_of_run(job_name),
        )
        for one in reversed(left[: self.settings.retained]):
            self.coordinator.store.add(one)

    def _number_of_run(self, job_name: str) -> int:
        """Return a number that no earlier run of the job has, as far as its files show."""
        restored = max((one.metadata.run for one in self._first), default=0)
        try:
            left = self.storage.latest_run(job_name)
        except StorageError as error:
            _log.warning("the number of earlier runs of %s is unknown: %s", job_name, error)
            left = 0
        return max(restored, left) + 1

    def _left_by_earlier_masters(self, ledger: JobLedger) -> list[CompletedCheckpoint]:
        """Return the checkpoints of the ledger, newest first. Damaged ones are named and skipped."""
        found = []
        for pointer in ledger.pointers():
            try:
                one = find_checkpoint(pointer.location, self._file_systems, deep=False).checkpoint
            except (CorruptFileError, CheckpointNotFoundError) as error:
                _log.error("checkpoint %d is skipped: %s", pointer.checkpoint_id, error)
                continue
            found.append(replace(one, is_owned=not one.is_savepoint))
        if not found and ledger.has_pointers():
            raise JobExecutionError(
                "The job has completed checkpoints with an earlier master, and none of them can be "
                "read. It does not start over, because its sinks would write their records once "
                "more. The log names the entries and the reasons. Start the job again with -s and "
                "the directory of a checkpoint or savepoint.",
                job_id=ledger.job_id,
            )
        return found

    def rescale(self, levels: Levels) -> list[Decision]:
        """Let the next attempt start with the given levels, from the checkpoint taken for them."""
        self.levels = levels
        return self.coordinator.rescaled(operators_of(levels.job_graph))

    @property
    def is_periodic(self) -> bool:
        return self.settings.interval is not None

    def starting_point(self, now: float) -> tuple[StartingPoint, list[Decision]]:
        """Return the start of the next attempt: the newest checkpoint, or that of the job's start."""
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
        checkpoints: Sequence[CompletedCheckpoint | None] = self.coordinator.store.checkpoints
        if not self._has_own_checkpoint():
            checkpoints = self._first[::-1] or (None,)
        if not self._suspicious:
            return checkpoints[-1]
        self._suspicious = False
        damage: CorruptFileError | None = None
        for checkpoint in reversed(checkpoints):
            try:
                self._verify(checkpoint)
            except CorruptFileError as error:
                damage = damage or error
                self._first = tuple(one for one in self._first if one is not checkpoint)
                continue
            if damage is not None:
                title = "its start" if checkpoint is None else checkpoint.title
                _log.warning("%s. The job goes back to %s", damage, title)
            return checkpoint
        assert damage is not None
        raise damage

    def _has_own_checkpoint(self) -> bool:
        return any(one not in self._first for one in self.coordinator.store.checkpoints)

    def _verify(self, checkpoint: CompletedCheckpoint | None) -> None:
        if checkpoint is not None and checkpoint.location is not None:
            verify(checkpoint.metadata, open_storage(checkpoint.location, self._file_systems))

    def failed(self, failure: FiresteelError, now: float) -> RestartDecision:
        """Decide whether to start over. Unreadable state makes the next start verify its checkpoint."""
        if _asks_for_different_state(failure):
            reason = (
                "the program's state does not fit the checkpoint, so a restart would fail again"
            )
            return RestartDecision(restart=False, delay=0.0, attempt=0, reason=reason)
        if isinstance(failure, LeadershipLostError):
            reason = "a different master leads now"
            return RestartDecision(restart=False, delay=0.0, attempt=0, reason=reason)
        self._suspicious = isinstance(failure, CorruptSegmentError | CorruptFileError)
        if self._suspicious and len(self._first) > 1 and not self._has_own_checkpoint():
            # Looking for an intact checkpoint to start from is not the business of the strategy.
            reason = "the checkpoint it was to start from is damaged"
            return RestartDecision(restart=True, delay=0.0, attempt=0, reason=reason)
        return self._strategy.failed(now)


def _asks_for_different_state(failure: FiresteelError) -> bool:
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
