"""The job runner: takes a job through its attempts to its end.

It gives the plans of the job master to an executor, carries the master's decisions out at the edge,
and asks the restart strategy when an attempt has failed. Every job has one, on Spark and in tests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.decisions import Decision
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.snapshot_writer import SnapshotWriter
from firesteel.checkpoint.storage.checkpoint_directory import JobCheckpointStorage
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.job_status import JobStatus
from firesteel.config import options, rest_options
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.errors import (
    FiresteelError,
    InvalidProgramError,
    JobExecutionError,
    LeadershipLostError,
    UserFunctionError,
)
from firesteel.filesystems.settings import file_system_options
from firesteel.graph.levels import Levels
from firesteel.graph.rescaling import rescaled_stream_graph
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.leader.job_ledger import JobLedger
from firesteel.master.checkpoint_executor import CheckpointExecutor
from firesteel.master.committables import Abandoned, with_abandoned
from firesteel.master.decisions import (
    AskPending,
    CommitPositions,
    CommitPrepared,
    DiscoverSplits,
)
from firesteel.master.driver_output import CollectedOutput, collectors_of, sort_output
from firesteel.master.edge import Edge, log_failure
from firesteel.master.global_committer import commit_prepared, recover_sinks
from firesteel.master.job_description import FailureRecord, record_failure
from firesteel.master.job_master import Event, JobMaster, Raised, StartingPoint
from firesteel.master.job_recovery import JobRecovery
from firesteel.master.job_status import JobState
from firesteel.master.led_checkpoints import LedCheckpoints
from firesteel.master.rate_control import RateControl, rate_control
from firesteel.master.source_coordinator import (
    SourceCoordinator,
    enumerator_state,
)
from firesteel.master.split_enumerators import SplitEnumerators
from firesteel.protocol.error_json import encode_error
from firesteel.protocol.execution import (
    EpochBrokenOffError,
    EpochPlan,
    EpochRows,
    Execution,
    ExecutionFailedError,
    Executor,
    Placement,
)
from firesteel.protocol.program import JobProgram, first_attempt
from firesteel.protocol.reports import SlotReport
from firesteel.state.backend_factory import check_installed, settings_of

_log = logging.getLogger("firesteel")

MakeExecutor = Callable[[str, StreamGraph, Levels, JobSettings], Executor]
"""Takes the id of the job, its graph with driver objects, its levels and its settings."""

# An epoch that is due within this time is due now.
_NOW_SECONDS = 1e-6
# Limits for the enumerators and the sinks of a job that is being submitted. The thread that submits
# a job cannot cancel it. Sinks may have many transactions to abort.
_FIRST_ENUMERATORS_SECONDS = 120.0
_FIRST_SINKS_SECONDS = 600.0


class _EdgeFailedError(Exception):
    """An enumerator could not be created, or a sink could not recover."""

    def __init__(self, reason: FiresteelError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class JobRunner:
    """Runs one job, epoch by epoch.

    The first attempt is prepared here, so that a job that cannot run fails where it is submitted.
    ``run`` and ``run_epoch`` belong to one thread; everything else may be called from any thread.
    """

    def __init__(
        self,
        job_id: str,
        graph: StreamGraph,
        levels: Levels,
        settings: JobSettings,
        make_executor: MakeExecutor,
        edge: Edge,
        *,
        make_rate: Callable[[], RateControl] | None = None,
        storage: JobCheckpointStorage | None = None,
        ledger: JobLedger | None = None,
    ) -> None:
        """``make_rate`` and ``storage`` override the settings of the job.

        ``ledger`` has the entries of a job with several masters.
        """
        configuration = settings.configuration
        self._job_id = job_id
        self._job_name = settings.job_name
        self._graph = graph
        self._edge = edge
        self._make_rate = make_rate or (
            lambda: rate_control(configuration, settings.buffer_timeout)
        )
        timeout = configuration.get(options.CANCELLATION_TIMEOUT).total_seconds()
        self._cancellation_seconds = timeout or float("inf")
        # Guards everything below, and is notified of every change.
        self._changed = threading.Condition()
        offset = time.time() - edge.now()
        self._state = JobState(lambda: edge.now() + offset)
        self._failures: deque[FailureRecord] = deque(
            maxlen=configuration.get(rest_options.WEB_EXCEPTION_HISTORY)
        )
        self._ledger = ledger
        self._first_attempt = 0 if ledger is None else first_attempt(ledger.begin_run())
        self._attempt = self._first_attempt
        self.restarts = 0
        self._attempt_held = ExitStack()
        self._abandoned: Abandoned = {}
        self._failure: FiresteelError | None = None
        self._to_commit: CommitPrepared | None = None
        # The levels that the job is about to get, while it is being rescaled.
        self._new_levels: Levels | None = None
        self._is_closed = False
        self._restart_at = 0.0
        self.master: JobMaster
        self._execution: Execution
        self._enumerators: SplitEnumerators
        self.recovery = JobRecovery(
            job_id,
            settings.job_name,
            configuration,
            levels,
            storage=storage,
            clock=edge.now,
            ledger=ledger,
        )
        with ExitStack() as held:
            self._executor = make_executor(job_id, graph, self.recovery.levels, settings)
            held.callback(self._executor.close)
            self.program = make_program(job_id, settings, self.recovery, self._executor.place())
            self.collected = CollectedOutput(wait=self.program.checkpointed)
            self._collectors = collectors_of(graph)
            self._led: LedCheckpoints | None = None
            if ledger is not None:
                self.program = replace(self.program, fence=ledger.fence)
                self._led = LedCheckpoints(ledger, self.collected, self._collectors, self._changed)
            self._checkpoints = CheckpointExecutor(
                SnapshotWriter(self.recovery.storage, self.program.file_systems, self._led),
                edge.io_thread("firesteel-checkpoints"),
                edge.io_thread("firesteel-savepoints"),
                self._post,
            )
            held.callback(self._checkpoints.close)
            held.callback(self._attempt_held.close)
            try:
                self._begin_attempt()
            except _EdgeFailedError as error:
                raise error.reason from error.__cause__
            # Held until the job is over.
            self._held = held.pop_all()

    # Attempts

    def _begin_attempt(self) -> bool:
        """Prepare the next attempt. Return False if the job was canceled meanwhile.

        It starts from the newest checkpoint, if there is one.
        """
        program = replace(self.program, attempt=self._attempt)
        start, decisions = self.recovery.starting_point(self._edge.now())
        start = replace(start, handles=with_abandoned(start.handles, self._abandoned))
        sources = self._create_sources(program, start)
        if sources is None or not self._recover_sinks(start):
            return False
        self.collected.go_back()
        master = JobMaster(
            program,
            sources,
            self._make_rate(),
            self.recovery.coordinator,
            start,
            self.collected,
            self._state,
        )
        with self._changed:
            self.master = master
            self._decide(decisions)
        # Unused files of the previous attempt are deleted before a task writes new ones.
        if not self._wait_for([self._checkpoints.settled()]):
            return False
        execution = self._executor.start(program)
        self._attempt_held.callback(execution.close)
        execution.watch(self._take_report)
        with self._changed:
            if self._state.status is JobStatus.CANCELLING:
                return False
            self._execution = execution
            if self._state.status is JobStatus.RESTARTING:
                self._state.change(JobStatus.CREATED)
        return True

    def _create_sources(
        self, program: JobProgram, start: StartingPoint
    ) -> dict[int, SourceCoordinator] | None:
        """Create the enumerators at the edge. Return None if the job is canceled first."""
        nodes = program.levels.job_graph.nodes
        enumerators = self._enumerators = SplitEnumerators(
            nodes.values(),
            program.job_name,
            self._edge.io_thread,
            lambda event: self._post(event, program.attempt),
        )
        self._attempt_held.callback(enumerators.close)
        states = {node: enumerator_state(kept) for node, kept in start.enumerators.items()}
        created = enumerators.create(states)
        limit = _FIRST_ENUMERATORS_SECONDS if self._is_first_attempt else None
        in_time = self._wait_for(created.values(), limit)
        unread = [one for one in created.values() if not one.done() or one.exception() is not None]
        failed = next((one for one in unread if one.done()), None)
        for future in unread:
            if future is not failed or not in_time:
                future.add_done_callback(log_failure)
        if not in_time:
            return None
        if unread and failed is None:
            raise JobExecutionError(
                f"{len(unread)} of {len(created)} sources have not created their enumerators "
                f"within {limit:g} s. Check that the systems they read are reachable",
                job_id=self._job_id,
                job_name=self._job_name,
            )
        try:
            if failed is not None:
                failed.result()
            return {
                node: SourceCoordinator(
                    node,
                    enumerators.source(node),
                    nodes[node].parallelism,
                    report.result(),
                    start.enumerators.get(node),
                    start.splits.get(node, ()),
                )
                for node, report in created.items()
            }
        except Exception as error:
            raise _EdgeFailedError(self._explained(error)) from error

    def _recover_sinks(self, start: StartingPoint) -> bool:
        """Let sinks commit and abort, at the edge. Return False if the job is canceled first."""
        self._check_leadership()
        recovering = recover_sinks(
            self._graph, start.committables, self._edge.io_thread, self._check_leadership
        )
        limit = _FIRST_SINKS_SECONDS if self._is_first_attempt else None
        in_time = self._wait_for(recovering.values(), limit)
        late = [node for node, future in recovering.items() if not future.done()]
        ended = [future for node, future in recovering.items() if node not in late]
        failed = next((one for one in ended if one.exception() is not None), None)
        for future in recovering.values():
            if future is not failed or not in_time:
                future.add_done_callback(log_failure)
        if not in_time:
            return False
        try:
            if failed is not None:
                failed.result()
        except Exception as error:
            raise _EdgeFailedError(self._explained(error)) from error
        if late:
            names = ", ".join(f"'{self._graph.nodes[node].name}'" for node in late)
            raise JobExecutionError(
                f"{names}: recover() of the sink has not returned within {limit:g} s. Check that "
                "the system it writes to is reachable",
                job_id=self._job_id,
                job_name=self._job_name,
            )
        return True

    @property
    def _is_first_attempt(self) -> bool:
        return self._attempt == self._first_attempt

    def _wait_for(self, futures: Collection[Future[Any]], seconds: float | None = None) -> bool:
        """Wait for work at the edge, at most for ``seconds``. Return False if canceled first."""
        for future in futures:
            future.add_done_callback(lambda _: self._notify())
        deadline = None if seconds is None else self._edge.now() + seconds
        with self._changed:
            while not all(future.done() for future in futures):
                if self._state.status is JobStatus.CANCELLING:
                    return False
                left = None if deadline is None else deadline - self._edge.now()
                if left is not None and left <= 0:
                    break
                self._edge.wait(self._changed, left)
        return True

    def run(self) -> None:
        """Run until the job is over. If it fails, ``failure`` has the error; nothing is raised."""
        while self.run_epoch():
            pass

    def run_epoch(self) -> bool:
        """Run the next epoch and all that follows from it. Return False if the job is over."""
        if self._is_closed:
            return False
        try:
            self._run_epoch()
            if self.master.is_over:
                self._attempt_ended()
            self.hand_out()
        except Exception as error:
            failure = self._fail_finally(error)
            if failure is error:
                raise
            raise failure from error
        except BaseException as error:
            self._fail_finally(error)
            raise
        return not self._is_closed

    def _run_epoch(self) -> None:
        plan = self._next_plan()
        if plan is None:
            return
        if plan.closing and self.recovery.coordinator.stopped_with is not None:
            # A checkpoint before the savepoint must not be found once a sink commits the savepoint.
            self._wait_for([self._checkpoints.settled()])
        try:
            rows = self._execution.run_epoch(plan)
        except (ExecutionFailedError, EpochBrokenOffError) as error:
            self._close_by_force(error)
        else:
            self._take(plan, rows)

    def _next_plan(self) -> EpochPlan | None:
        """Wait until an epoch is due and plan it. Return None if the attempt is over."""
        with self._changed:
            self.master.start()
            while True:
                delay = self.master.delay(self._edge.now())
                if self._carry_out():
                    # The edge may have answered at once.
                    continue
                if delay is None:
                    return None
                if delay < _NOW_SECONDS:
                    return self.master.plan_epoch(self._edge.now())
                self._edge.wait(self._changed, delay)

    def _take(self, plan: EpochPlan, rows: EpochRows) -> None:
        """An epoch has ended: deliver its output, then tell the job master."""
        error = rows.error
        if not rows.failures:
            lines, records = sort_output(rows.outputs, self._graph)
            try:
                if lines:
                    self._edge.print_lines(lines)
            except Exception as caught:  # noqa: BLE001 - it fails the job
                error = error or caught
            with self._changed:
                for node, some in records:
                    self.collected.add(plan.epoch, node, some)
        if error is not None and self.program.batch:
            # No restart repeats the driver's part of a batch: some of it may be visible already.
            raise error
        with self._changed:
            for loss in rows.losses:
                # The attempt goes on, so no restart shows that a process was lost.
                now = int(self._edge.now() * 1000)
                self._failures.append(record_failure(loss, now, restarted=True))
            if error is not None:
                self.master.fail(self._explained(error))
            try:
                self.master.epoch_ended(rows.acks, rows.failures, self._edge.now(), rows.void)
            except FiresteelError as refused:
                self.master.fail(refused)
            for one in rows.failures:
                if one.error is not self.master.failure:
                    _log.error("%s failed in a further slot: %s", self._job_name, one.error)
            self._carry_out()
            to_commit, self._to_commit = self._to_commit, None
            self._changed.notify_all()
        if to_commit is not None:
            self._check_leadership()
            commit_prepared(self._graph, self._job_id, to_commit.committables)
            with self._changed:
                self.master.prepared_committed()

    def hand_out(self) -> None:
        """Give confirmed records to their collectors. That may wait for a slow reader."""
        with self._changed:
            due = self.collected.take()
        if self._led is not None:
            self._led.publish()
        for node, records in due:
            self._collectors[node].add(records)

    def _close_by_force(self, error: ExecutionFailedError | EpochBrokenOffError) -> None:
        """No epoch can run in the usual way any more: close the slots by force."""
        with self._changed:
            if isinstance(error, ExecutionFailedError):
                self.master.epoch_lost(error.reason, error.void)
            else:
                self._state.cancel()
            plan = None if self.program.batch else self.master.plan_epoch(self._edge.now())
        if plan is not None:
            try:
                self._take(plan, self._execution.run_epoch(plan.forced()))
            except (ExecutionFailedError, EpochBrokenOffError) as failed:
                _log.warning("the slots of %s could not be closed: %s", self._job_name, failed)
        with self._changed:
            self.master.abandon()

    def _attempt_ended(self) -> None:
        """Restart a failed job if its strategy says so, else end the job."""
        failure = self.master.failure
        self._close_attempt()
        while self._is_rescaled() or (failure is not None and self._may_restart(failure)):
            self._wait_for_restart()
            try:
                if self._status_is(JobStatus.RESTARTING):
                    self._take_new_levels()
                    if self._begin_attempt():
                        return
            except _EdgeFailedError as error:
                # A later attempt may succeed, so the restart strategy decides.
                failure = self._begin_failed(error.reason)
            except Exception as error:  # noqa: BLE001 - storage may be away, and raise anything
                failure = self._begin_failed(self._explained(error))
            self._close_attempt()
        with self._changed:
            if self._state.status is JobStatus.CANCELLING:
                self._state.canceled()
        if failure is not None:
            self._failure = self.recovery.coordinator.final_failure(failure)
        self._end()

    def _is_rescaled(self) -> bool:
        """Return True if the attempt has ended in order to start with a different parallelism."""
        return self._status_is(JobStatus.RESTARTING) and self.recovery.coordinator.is_rescaling

    def _take_new_levels(self) -> None:
        """Give the next attempt its new parallelism, if the checkpoint for it is complete."""
        with self._changed:
            if not self.recovery.coordinator.is_rescaling:
                return
            assert self._new_levels is not None
            levels, self._new_levels = self._new_levels, None
            _log.info("%s restarts with %d slots", self._job_name, sum(levels.slots))
            self._graph = rescaled_stream_graph(self._graph, levels)
            self.program = replace(self.program, levels=levels)
            self._decide(self.recovery.rescale(levels))

    def _begin_failed(self, reason: FiresteelError) -> FiresteelError:
        """An attempt could not begin, which is a failure like any other. Return it."""
        with self._changed:
            self._state.fail()
        return reason

    def _close_attempt(self) -> None:
        """No event of the attempt counts from here on."""
        with self._changed:
            self._attempt += 1
        self._attempt_held.close()

    def _may_restart(self, failure: FiresteelError) -> bool:
        """Ask the restart strategy. Return False if the job does not start again."""
        with self._changed:
            if self._state.status is not JobStatus.FAILING:
                return False
            now = self._edge.now()
            decision = self.recovery.failed(failure, now)
            self._record(failure, restarted=decision.restart)
            if not decision.restart:
                self._state.change(JobStatus.FAILED)
                return False
            _log.warning(
                "%s failed and restarts in %.1f s (%s): %s",
                self._job_name,
                decision.delay,
                decision.reason,
                failure,
            )
            self._state.change(JobStatus.RESTARTING)
            self.restarts += 1
            self._restart_at = now + decision.delay
            self._decide(self.recovery.coordinator.job_failed(now))
            self._abandoned = self.master.checkpoints.abandoned()
        return True

    def _record(self, failure: FiresteelError, *, restarted: bool) -> None:
        timestamp = int(self._state.timestamps[JobStatus.FAILING] * 1000)
        self._failures.append(record_failure(failure, timestamp, restarted=restarted))

    def _wait_for_restart(self) -> None:
        with self._changed:
            while self._status_is(JobStatus.RESTARTING):
                left = self._restart_at - self._edge.now()
                if left <= 0.0:
                    return
                self._edge.wait(self._changed, left)

    def _status_is(self, status: JobStatus) -> bool:
        """Other threads may change the status at any time."""
        return self._state.status is status

    def _check_leadership(self) -> None:
        """Raise LeadershipLostError if a different master runs the job now."""
        if self._ledger is not None:
            self._ledger.check()

    def _enter_end(self) -> JobStatus:
        """Note that the job is over, so that no later master starts it again.

        Returns the status by which checkpoints stay or go. If the end could not be noted, the next
        master continues the job, so they stay.
        """
        status = self._state.status
        if self._ledger is None or not status.is_globally_terminal_state():
            return status
        if isinstance(self._failure, LeadershipLostError):
            return JobStatus.SUSPENDED
        if status is JobStatus.FAILED and self._executor.has_ended():
            _log.warning("%s is left to the next master, because Spark has ended", self._job_name)
            return JobStatus.SUSPENDED
        try:
            error = None if self._failure is None else encode_error(self._failure)
            self._ledger.end(status.name, error)
        except (FiresteelError, OSError) as lost:
            _log.warning("the end of %s could not be noted: %s", self._job_name, lost)
            return JobStatus.SUSPENDED
        return status

    def _end(self) -> None:
        """There is no further attempt. Checkpoints stay or go, as the job's settings say."""
        try:
            as_status = self._enter_end()
            with self._changed:
                status = self._state.status
                if self._failure is not None and status is not JobStatus.FAILED:
                    _log.warning(
                        "%s was canceled after it had failed: %s", self._job_name, self._failure
                    )
                if status is JobStatus.FINISHED and not self.master.checkpoints.stopped:
                    self.collected.confirm_all()
                self._decide(
                    self.recovery.coordinator.shutdown(as_status, self._edge.now(), self._failure)
                )
            self.hand_out()
        finally:
            self._is_closed = True
            self._held.close()

    def _fail_finally(self, error: BaseException) -> FiresteelError:
        """End the job with an error that no restart repairs, such as a bug of Firesteel."""
        failure = self.recovery.coordinator.final_failure(self._explained(error))
        self._failure = failure
        with self._changed:
            self._state.fail()
            if self._status_is(JobStatus.FAILING):
                self._record(failure, restarted=False)
                self._state.change(JobStatus.FAILED)
            elif self._status_is(JobStatus.CANCELLING):
                self._state.canceled()
        if not self._is_closed:
            try:
                self._close_attempt()
                self._end()
            except Exception:  # noqa: BLE001 - the first error counts
                _log.exception("%s failed, and its cleanup failed too", self._job_name)
        return failure

    def _explained(self, error: BaseException) -> FiresteelError:
        return explained(error, self._job_id, self._job_name)

    # Events and decisions

    def _post(self, event: Event, attempt: int | None = None) -> None:
        """Tell the job master a result of the edge. Results for an old attempt are dropped.

        Results without an ``attempt`` belong to the job as a whole.
        """
        with self._changed:
            if attempt is not None and attempt != self._attempt:
                if isinstance(event, Raised):
                    self._log_late(event.error)
                return
            try:
                event(self.master, self._edge.now())
                self._carry_out()
            except BaseException as error:  # noqa: BLE001 - no error vanishes in a thread
                self._fail(error)
            self._changed.notify_all()
        self._execution.hasten()

    def _fail(self, error: BaseException) -> None:
        """Fail the attempt, or log the error of a job that ends anyway."""
        if self._state.is_over or self.master.is_over:
            self._log_late(error)
        else:
            self.master.fail(self._explained(error))

    def _take_report(self, report: SlotReport) -> None:
        """Take the report of a slot. Reports of an old attempt are dropped."""
        with self._changed:
            if report.attempt == self._attempt:
                self.master.metrics.take_report(report)

    def _log_late(self, error: BaseException) -> None:
        name = self._job_name
        _log.error("error after the end of an attempt of %s: %s", name, error, exc_info=error)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _decide(self, decisions: list[Decision]) -> None:
        """Carry out decisions that the coordinator makes about the job as a whole."""
        self.master.checkpoints.handle(decisions)
        self._carry_out()

    def _carry_out(self) -> bool:
        """Carry out the master's decisions. Return False if there are none. Call it with the lock."""
        decisions = self.master.take_decisions()
        for decision in decisions:
            match decision:
                case DiscoverSplits() | AskPending() | CommitPositions():
                    self._enumerators.carry_out(decision)
                case CommitPrepared():
                    # Without the lock, by the thread that has it now.
                    self._to_commit = decision
                case _:
                    self._checkpoints.carry_out(decision)
        return bool(decisions)

    # Requests

    @property
    def status(self) -> JobStatus:
        return self._state.status

    def timestamps(self) -> dict[str, int]:
        """Return the time of the last change to each status, in epoch milliseconds.

        INITIALIZING, Flink's first status, has the time of the submission.
        """
        with self._changed:
            times = {status.name: at for status, at in self._state.timestamps.items()}
            times["INITIALIZING"] = self._state.began_at
        return {name: int(at * 1000) for name, at in times.items()}

    def failures(self) -> list[FailureRecord]:
        """Return the failures of attempts, the newest first."""
        with self._changed:
            return list(reversed(self._failures))

    @property
    def failure(self) -> FiresteelError | None:
        """The error that a failed job ended with."""
        return self._failure if self._state.status is JobStatus.FAILED else None

    def cancel(self, to: JobStatus = JobStatus.CANCELED) -> None:
        """End the job as CANCELED or SUSPENDED; a suspended job keeps its checkpoints.

        The running epoch may end, for as long as the cancellation timeout allows.
        """
        with self._changed:
            if not self._state.cancel(to):
                return
            self._changed.notify_all()
        self._execution.hasten()
        self._execution.break_off(self._cancellation_seconds)
        for collector in self._collectors.values():
            collector.release()

    def give_up(self) -> None:
        """Wait for the running epoch no longer. Takes no lock: signal handlers call it."""
        self._execution.break_off(0.0)

    def request_snapshot(self, make: Callable[[str], SnapshotRequest]) -> Future[str]:
        """Ask for a savepoint or checkpoint. The future has its location."""
        answer: Future[str] = Future()
        with self._changed:
            if self._state.is_over:
                answer.set_exception(JobExecutionError("the job is not running"))
                return answer
            self.master.request_snapshot(make(self._checkpoints.expect(answer)))
            self._carry_out()
            self._changed.notify_all()
        self._execution.hasten()
        return answer

    def rescale(self, change: Callable[[Levels], Levels]) -> Future[str]:
        """Stop the sources, take a checkpoint, and start from it with different levels.

        Args:
            change: Makes the new levels from those of the running attempt.

        Returns:
            The location of the checkpoint, once the job has its new parallelism.

        Raises:
            InvalidProgramError: The job cannot be rescaled in this way.
            InsufficientSlotsError: There are too few slots.
        """
        with self._changed:
            if self._new_levels is not None:
                raise JobExecutionError(f"{self._job_name} is being rescaled already")
            if self.program.batch:
                raise InvalidProgramError("A batch job cannot be rescaled while it runs.")
            if self._state.status is not JobStatus.RUNNING:
                raise JobExecutionError(
                    f"{self._job_name} can be rescaled while it runs, and it is "
                    f"{self._state.status.name}"
                )
            before = self.recovery.levels
            levels = change(before)
            self._executor.reserve(rescaled_stream_graph(self._graph, levels), levels)
            self._new_levels = levels
            self._restart_at = self._edge.now()
        answer = self.request_snapshot(
            lambda request_id: SnapshotRequest(
                request_id, SnapshotType.CHECKPOINT, stop=StopMode.RESCALE
            )
        )
        answer.add_done_callback(lambda done: self._after_rescale(done, before))
        return answer

    def _after_rescale(self, done: Future[str], before: Levels) -> None:
        if done.exception() is None:
            return
        with self._changed:
            if self._state.is_over:
                return
            self._new_levels = None
            self._executor.reserve(rescaled_stream_graph(self._graph, before), before)

    def overview(self) -> dict[str, Any]:
        """Return, as JSON, the work and the place of every subtask so far."""
        with self._changed:
            return self.master.overview()

    def ask_slot(
        self, level: int, slot: int, what: str, arguments: Mapping[str, Any]
    ) -> Future[Any]:
        """Ask the process of a slot for stacks, threads or its log."""
        return self._execution.ask(level, slot, what, arguments)

    def checkpoint_overview(self) -> dict[str, Any]:
        with self._changed:
            return self.recovery.coordinator.stats.overview()

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        with self._changed:
            stats = self.recovery.coordinator.stats.find(checkpoint_id)
            return None if stats is None else stats.details()


def make_program(
    job_id: str, settings: JobSettings, recovery: JobRecovery, placement: Placement
) -> JobProgram:
    """Return the program of a job for its slots, without the number of an attempt."""
    configuration = settings.configuration
    batch = settings.runtime_mode is RuntimeExecutionMode.BATCH
    state_backend = settings_of(configuration)
    check_installed(state_backend)
    segment_directory = placement.segment_directory
    if recovery.is_periodic:
        # Large state goes to the checkpoints, so that they only have to refer to it.
        shared = recovery.storage.shared
        segment_directory = None if shared is None else shared.location
    return JobProgram(
        job_id=job_id,
        job_name=settings.job_name,
        attempt=0,
        levels=recovery.levels,
        job_parameters=configuration.get(options.GLOBAL_JOB_PARAMETERS),
        segment_directory=segment_directory,
        inline_threshold=configuration.get(options.STATE_INLINE_THRESHOLD),
        batch=batch,
        auto_watermark_interval=ExecutionConfig(configuration).get_auto_watermark_interval(),
        state_backend=state_backend,
        resources=placement.resources,
        cached_files=placement.cached_files,
        checkpointed=recovery.is_periodic and not batch,
        exactly_once=recovery.settings.mode is CheckpointingMode.EXACTLY_ONCE,
        # Records of loops travel with controls, which no barrier overtakes.
        unaligned=recovery.settings.unaligned
        and recovery.is_periodic
        and not batch
        and not recovery.levels.job_graph.feedback_edges,
        aligned_seconds=recovery.settings.aligned_timeout,
        in_flight_seconds=configuration.get(options.DEBLOAT_TARGET).total_seconds()
        if configuration.get(options.DEBLOAT_ENABLED)
        else None,
        file_systems=file_system_options(configuration),
    )


def explained(error: BaseException, job_id: str, job_name: str) -> FiresteelError:
    """Return an error of Firesteel's with the name of the job; other errors become its cause."""
    if isinstance(error, UserFunctionError):
        error.job = error.job or job_name
    if isinstance(error, FiresteelError):
        return error
    wrapped = JobExecutionError(
        f"{type(error).__name__}: {error}", job_id=job_id, job_name=job_name
    )
    wrapped.__cause__ = error
    return wrapped
