"""An attempt of a streaming job in real time: one query of Spark's Real-time Mode, without end.

All levels run at the same time for as long as the attempt, and rows stream between them through
Spark's pipelined shuffle. Each task connects to the driver (``live_connections.py``): controls go
out and acks come back there, so an epoch is not a Spark job. It is a round of messages.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from queue import Empty
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.processes import release_memory
from firesteel.protocol.execution import (
    EpochBrokenOffError,
    EpochPlan,
    EpochRows,
    Execution,
    ExecutionFailedError,
)
from firesteel.protocol.live_round import LiveRound, LiveRounds, retried
from firesteel.protocol.messages import UNLIMITED, EndEpoch, ReadBudget, SlotAck, decode
from firesteel.protocol.program import JobProgram
from firesteel.protocol.reports import SlotReport
from firesteel.protocol.rows import LIVE_SPARK_SCHEMA, BufferRow
from firesteel.spark.arrow_map import map_in_arrow
from firesteel.spark.errors import SPARK_ERRORS, failure_of, loss_of
from firesteel.spark.job_files import JobFiles
from firesteel.spark.live_connections import LOST, Connections
from firesteel.spark.live_task import LiveLevel
from firesteel.spark.session import driver_host
from firesteel.spark.slot_task import SlotTask

_log = logging.getLogger("firesteel")

# An epoch without events lasts this long. It costs the driver some milliseconds.
_EPOCH_SECONDS = 1.0
_LONGEST_EPOCH_SECONDS = 10.0
# Epochs after one without any record last this long, so that an idle job costs next to nothing.
_QUIET_EPOCH_SECONDS = 4.0
# The end of an epoch takes at most about this share of the time of the slots.
_SHARE_OF_ENDS = 0.05
# Epochs that slots ask for are not shorter than this.
_SHORTEST_EPOCH_SECONDS = 0.01
_POLL_SECONDS = 0.5
# Spark ends a query whose task died within this time.
_QUERY_END_SECONDS = 10.0
_FORCE_SECONDS = 5.0
# Every row is a batch of its own on its way to Python, and nothing waits for a full buffer.
_SETTINGS = {
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "256",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_FOREVER = "36500 days"
# The thread that reads the rows of a task would ask the driver for the next one every 10 ms, which
# costs some percent of a core. The last row puts it to sleep instead, until the task ends.
_LAST_ROW = -1
_SLEEP_AFTER_START = (
    f"if(value = {_LAST_ROW}, java_method('java.lang.Thread', 'sleep', {2**62}L), '') AS start"
)


class _QueryIsGoneError(Exception):
    """A task died, and Spark has ended the query. ``rows`` had arrived in the running epoch."""

    rows = EpochRows()


class LiveExecution(Execution):
    """Runs the epochs of an attempt in slots that live as long as it.

    max_records: the most records that a source reads per epoch, or None.
    task_attempts: the most tries of an epoch in which a process dies.
    local: driver and tasks run on one machine.
    """

    def __init__(
        self,
        session: SparkSession,
        program: JobProgram,
        task: SlotTask,
        files: JobFiles,
        *,
        max_records: int | None,
        task_attempts: int,
        local: bool,
    ) -> None:
        self._session = session
        self._program = program
        self._task = task
        self._files = files
        # Slots take as much as they can process: back pressure takes the place of rate control.
        self._budget = ReadBudget(max_records or UNLIMITED, math.inf)
        self._task_attempts = task_attempts
        self._places = frozenset(
            (level, slot)
            for level, slots in enumerate(program.levels.slots)
            for slot in range(slots)
        )
        self._query: StreamingQuery | None = None
        host = None if local else driver_host(session)
        self._connections = Connections(program.job_id, host)
        self._rounds = LiveRounds(self._places)
        self._epoch_seconds = _EPOCH_SECONDS
        self._is_quiet = False
        self._broken_off_at = math.inf
        # The same epoch may be tried again, if its predecessor is a consistent state of all slots.
        self._may_retry = program.epochs_are_exact

    # The interface

    def run_epoch(self, plan: EpochPlan) -> EpochRows:
        if plan.by_force:
            return self._close_by_force(plan)
        void: list[SlotAck] = []
        losses: list[FiresteelError] = []
        for attempt in range(1, self._task_attempts + 1):
            try:
                if self._query is None:
                    self._start()
                return replace(self._run(plan), void=void, losses=losses)
            except _QueryIsGoneError as gone:
                void += gone.rows.acks
                reason, is_accident = self._end_query()
                may_retry = is_accident and self._may_retry and attempt < self._task_attempts
                if plan.closing or not may_retry:
                    raise ExecutionFailedError(reason, void) from gone
                loss = loss_of(self._job_name, str(reason))
                _log.warning("%s", loss)
                losses.append(JobExecutionError(loss, job_name=self._job_name))
                plan = retried(plan, gone.rows.acks, self._program.transactional_nodes)
        raise AssertionError("unreachable")

    def hasten(self) -> None:
        self._connections.wake_up()

    def break_off(self, seconds: float) -> None:
        """Limit the time of the running epoch. Takes no lock, because a signal handler calls it."""
        self._broken_off_at = min(self._broken_off_at, time.monotonic() + seconds)
        self._connections.wake_up()

    def close(self) -> None:
        self._stop_query()
        self._connections.close()
        self._files.remove_spark_checkpoint(self._program.attempt)
        release_memory()

    def watch(self, take_report: Callable[[SlotReport], None]) -> None:
        self._connections.take_report = take_report

    def ask(self, level: int, slot: int, what: str, arguments: Mapping[str, Any]) -> Future[Any]:
        return self._connections.ask((level, slot), what, arguments)

    @property
    def _job_name(self) -> str:
        return self._program.job_name

    # An epoch

    def _run(self, plan: EpochPlan) -> EpochRows:
        began = time.monotonic()
        running = self._rounds.begin(plan, self._budget)
        end_at = began
        if not plan.ends_at_once:
            longest = max(self._epoch_seconds, _QUIET_EPOCH_SECONDS if self._is_quiet else 0.0)
            end_at += min(longest, math.inf if plan.due_in is None else plan.due_in)
        for place, control in running.controls:
            self._connections.send(place, control)
        while not running.is_over:
            if running.end_is_wanted:
                end_at = min(end_at, began + _SHORTEST_EPOCH_SECONDS)
            left = end_at - time.monotonic()
            if not plan.closing and not running.is_ended and left <= 0.0:
                running.is_ended = True
                for place in self._places:
                    self._connections.send(place, EndEpoch(plan.epoch))
            is_waiting = plan.closing or running.is_ended
            try:
                if self._take_message(running, _POLL_SECONDS if is_waiting else left):
                    end_at = began
            except _QueryIsGoneError as gone:
                gone.rows = running.rows
                raise
        self._is_quiet = running.was_quiet
        return running.rows

    def _take_message(self, running: LiveRound, seconds: float) -> bool:
        """Wait for a message and take it. Return True if something is due in the driver."""
        try:
            place, message = self._connections.messages.get(timeout=min(seconds, _POLL_SECONDS))
        except Empty:
            if time.monotonic() >= self._broken_off_at:
                raise EpochBrokenOffError(
                    f"epoch {running.plan.epoch} takes too long to be canceled"
                ) from None
            if self._query is not None and not self._query.isActive:
                raise _QueryIsGoneError from None
            return False
        if place is None:
            return True
        if message is LOST:
            raise _QueryIsGoneError
        ack = running.take(place, BufferRow._make(decode(message)))
        if ack is not None:
            self._lengthen_epochs(ack.end_seconds)
        return False

    def _lengthen_epochs(self, end_seconds: float) -> None:
        """Let large state end an epoch less often. Small state makes epochs short again."""
        fitting = min(end_seconds / _SHARE_OF_ENDS, _LONGEST_EPOCH_SECONDS)
        self._epoch_seconds = max(_EPOCH_SECONDS, fitting, 0.9 * self._epoch_seconds)

    # The query

    def _start(self) -> None:
        session, levels = self._session, self._program.levels
        for key, value in _SETTINGS.items():
            session.conf.set(key, value)
        stream, frame = _starting_rows(session, levels.slots[0])
        driver = self._connections.open()
        for level, slots in enumerate(levels.slots):
            if level:
                frame = frame.repartitionById(slots, "target")
            loop = LiveLevel(level, self._task, driver)
            frame = map_in_arrow(frame, loop, LIVE_SPARK_SCHEMA)
        # A query that was lost has left files. Nothing of them is used again.
        self._files.remove_spark_checkpoint(self._program.attempt)
        self._query = (
            frame.writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", self._files.spark_checkpoint(self._program.attempt))
            .option("asyncProgressTrackingEnabled", "false")
            .trigger(realTime=_FOREVER)  # type: ignore[call-overload]  # its stub is older
            .start()
        )
        _start_tasks(session, stream, levels.slots[0])
        self._rounds = LiveRounds(self._places)
        while not self._connections.wait_for(len(self._places), 0.25):
            if not self._query.isActive:
                raise _QueryIsGoneError
            if time.monotonic() >= self._broken_off_at:
                raise EpochBrokenOffError("the job was canceled while its tasks started")

    def _end_query(self) -> tuple[JobExecutionError, bool]:
        """Return the reason for the end of the query, and True if it was an accident.

        It may take a moment until Spark knows.
        """
        query = self._query
        assert query is not None
        until = time.monotonic() + _QUERY_END_SECONDS
        while query.isActive and time.monotonic() < until:
            time.sleep(0.005)
        name, exception = self._job_name, query.exception()
        is_accident = exception is not None or query.isActive
        if exception is not None:
            message = failure_of(name, exception)
        elif query.isActive:
            message = f"Job '{name}' failed: the connection to one of its slots was lost"
        else:
            message = f"Job '{name}' failed: its Spark query was stopped from outside"
        self._stop_query()
        reason = JobExecutionError(message, job_id=self._program.job_id, job_name=name)
        return reason, is_accident

    def _stop_query(self) -> None:
        query, self._query = self._query, None
        # Slots that find their connection closed come to an end by themselves.
        self._connections.hang_up()
        if query is None:
            return
        try:
            query.stop()
        except SPARK_ERRORS as error:
            _log.warning("stopping the Spark query of %s: %s", self._job_name, error)

    def _close_by_force(self, plan: EpochPlan) -> EpochRows:
        """Interrupt the slots, and close them. Slots that died with their process are closed."""
        self._broken_off_at = math.inf
        if self._query is None:
            if not any(control.committables for control in plan.controls):
                return EpochRows()
            # Sinks have to commit the committables of a completed checkpoint.
            self._start()
        running = self._rounds.begin(plan)
        try:
            for place, control in running.controls:
                self._connections.send(place, control)
            until = time.monotonic() + _FORCE_SECONDS
            while not running.is_over and time.monotonic() < until:
                self._take_message(running, _POLL_SECONDS)
        except _QueryIsGoneError:
            # A function did not return, so its process has ended. Nothing is left to be closed.
            self._end_query()
        return running.rows


def _starting_rows(session: SparkSession, slots: int) -> tuple[Any, DataFrame]:
    """Return a stream of Spark's own with one partition per slot of level 0, to start its tasks."""
    jvm: Any = session._jvm  # noqa: SLF001 - no public way
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    module = getattr(getattr(sources, "LowLatencyMemoryStream$"), "MODULE$")
    stream = module.apply(
        session._jsparkSession,  # noqa: SLF001 - no public way
        slots,
        jvm.org.apache.spark.sql.Encoders.INT(),
    )
    frame = DataFrame(stream.toDF(), session)
    try:
        return stream, frame.selectExpr(_SLEEP_AFTER_START)
    except AnalysisException as error:
        # An administrator may forbid the function (spark.sql.reflect.allowList).
        _log.debug("tasks of level 0 look for rows all the time: %s", error)
        return stream, frame


def _start_tasks(session: SparkSession, stream: Any, slots: int) -> None:
    """Give each task of level 0 a row. The second one makes Spark hand on the first."""
    jvm: Any = session._jvm  # noqa: SLF001 - no public way
    for slot in range(slots):
        rows = jvm.java.util.ArrayList()
        rows.add(slot)
        rows.add(_LAST_ROW)
        stream.addData(slot, jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows))
