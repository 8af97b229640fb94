"""A streaming job: one Structured Streaming query, driven epoch by epoch by the job master."""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from firesteel.common.job_status import JobStatus
from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.graph.operator_specs import DataFrameSinkSpec, DataFrameSourceSpec
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.epoch_rows import EpochRows, hand_out, print_lines
from firesteel.master.job_attempts import JobAttempts
from firesteel.master.job_master import EpochPlan
from firesteel.master.job_status import explained
from firesteel.protocol.program import JobProgram
from firesteel.spark.clock import ONLY_EPOCH, clock_options
from firesteel.spark.dataframe_bridge import decode_dataframe, spark_schema, without_frames
from firesteel.spark.epoch_server import EpochServer
from firesteel.spark.errors import SPARK_ERRORS, failure_of, reason_of
from firesteel.spark.job_files import JobFiles
from firesteel.spark.plan import build_plan
from firesteel.spark.slot_task import SlotTask
from firesteel.usercode.failures import called

_log = logging.getLogger("firesteel")

_STOP_SECONDS = 10.0
# Spark writes two files for each micro-batch and waits for them, a third of what a small epoch takes.
# Nobody reads them: a query is never resumed, and what a job has confirmed is in its own checkpoints.
# Queries with state of Spark's own, which a DataFrame may bring along, cannot do without.
_PROGRESS_IN_MEMORY = {
    "asyncProgressTrackingEnabled": "true",
    # In a hundred years: only the first micro-batch is written.
    "asyncProgressTrackingCheckpointIntervalMs": str(100 * 365 * 24 * 3600 * 1000),
    # Spark allows it for sinks that it knows; foreachBatch runs in the driver before the batch ends.
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}
# Rows are buffers, too few to be worth a loop that is generated, compiled and optimized for them.
_WITHOUT_GENERATED_CODE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class StreamingJob:
    """Answers the clock (next_epoch, plan_of) and takes what foreachBatch brings."""

    def __init__(
        self,
        session: SparkSession,
        program: JobProgram,
        graph: StreamGraph,
        attempts: JobAttempts,
        files: JobFiles,
        task: SlotTask,
        changed: threading.Condition,
        cancellation_timeout: float = 0.0,
    ) -> None:
        """A canceled job's epoch may take ``cancellation_timeout`` seconds to end; 0: any time."""
        self._session = session
        self._program = program
        self._graph = graph
        self._master = attempts.master
        self._collected = attempts.collected
        self._checkpoints = attempts.executor
        self._files = files
        self._task = task
        self._changed = changed
        self._cancellation_timeout = cancellation_timeout
        self._give_up_at = math.inf
        self._plan: EpochPlan | None = None
        self._plan_open = False
        self._stopping = False
        self._stopped = False
        self._frames = {
            node.id: graph.driver_objects[node.id]
            for node in graph.nodes.values()
            if isinstance(node.spec, DataFrameSourceSpec)
        }
        self._frame_sinks = [
            node for node in graph.nodes.values() if isinstance(node.spec, DataFrameSinkSpec)
        ]

    def run(self) -> None:
        """Run until the job master says that the job is over."""
        if not self._frames and not self._frame_sinks:
            for key, value in _WITHOUT_GENERATED_CODE.items():
                self._session.conf.set(key, value)
        server = EpochServer(self._program.job_id, self)
        try:
            query = self._rows(server, streaming=True).writeStream.foreachBatch(self._query_brings)
            query.option("checkpointLocation", self._files.spark_checkpoint(self._program.attempt))
            if not self._frames:
                query.options(**_PROGRESS_IN_MEMORY)
            running = query.start()
            try:
                broke_off = self._wait(running)
            finally:
                self._stop(running)
            if broke_off:
                self._close_by_force(running, server)
        finally:
            server.close()

    def cancel(self) -> None:
        with self._changed:
            self._master.cancel()
            if self._cancellation_timeout and self._give_up_at == math.inf:
                self._give_up_at = time.monotonic() + self._cancellation_timeout
            self._changed.notify_all()

    def give_up(self) -> None:
        """Without the lock: a signal handler calls it."""
        self._give_up_at = 0.0

    def _rows(self, server: EpochServer, *, streaming: bool) -> DataFrame:
        return build_plan(
            self._session,
            self._program.levels,
            self._task,
            clock_options(self._task, server.address, server.token),
            self._frames if streaming else {},
            streaming=streaming,
        )

    def _wait(self, query: StreamingQuery) -> bool:
        """Until the job is over; True if its query ended before it, or is to be waited for no more."""
        with self._changed:
            while not self._master.status.is_terminal_state():
                if time.monotonic() >= self._give_up_at:
                    return True
                if not self._changed.wait(timeout=0.25) and not query.isActive:
                    return True
        return False

    def _close_by_force(self, query: StreamingQuery, server: EpochServer) -> None:
        """Close the slots with an epoch of its own, as an ordinary Spark job."""
        if self._master.status is not JobStatus.CANCELLING:
            self._master.fail(
                JobExecutionError(
                    _reason(self._program.job_name, query),
                    job_id=self._program.job_id,
                    job_name=self._program.job_name,
                )
            )
        self._plan = self._master.plan_epoch(time.monotonic()).by_force()
        try:
            self._epoch_arrived(self._rows(server, streaming=False))
        except SPARK_ERRORS as error:
            reason = reason_of(error)
            _log.warning("the slots of %s could not be closed: %s", self._program.job_name, reason)
        self._master.abandon()

    def _stop(self, query: StreamingQuery) -> None:
        """The query waits in the clock between two epochs, so nothing is interrupted.

        Unless an epoch was waited for in vain: then its tasks are killed.
        """
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        try:
            query.stop()
        except SPARK_ERRORS as error:
            _log.warning("stopping the Spark query of %s: %s", self._program.job_name, error)
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    # The clock's questions

    def next_epoch(self, after: int) -> int:
        with self._changed:
            while not self._stopping:
                if self._plan is not None and self._plan_open:
                    if self._plan.epoch > after:
                        # Spark asks again for an epoch that it has not begun.
                        return self._plan.epoch
                    self._changed.wait(timeout=1.0)
                    continue
                delay = self._next_delay()
                if delay is None:
                    self._changed.wait(timeout=1.0)
                elif delay > 0:
                    self._changed.wait(timeout=delay)
                else:
                    self._plan = self._master.plan_epoch(time.monotonic())
                    self._plan_open = True
                    return self._plan.epoch
            # While the query is being stopped Spark may ask on. No answer keeps it waiting, so that
            # it does not begin a batch of whatever a DataFrame source has; stopping breaks the wait.
            self._changed.wait_for(lambda: self._stopped, timeout=_STOP_SECONDS)
        return after

    def _next_delay(self) -> float | None:
        try:
            return self._master.delay(time.monotonic())
        except Exception as error:  # noqa: BLE001 - discovering splits runs code of connectors
            self._fail(error)
            return self._master.delay(time.monotonic())
        finally:
            self._checkpoints.carry_out(self._master.checkpoints.take_for_edge())

    def plan_of(self, epoch: int) -> EpochPlan:
        with self._changed:
            if self._plan is None or epoch not in (ONLY_EPOCH, self._plan.epoch):
                raise JobExecutionError(f"Spark asked for epoch {epoch}, which is not planned")
            return self._plan

    # The end of an epoch

    def _query_brings(self, frame: DataFrame, _: int) -> None:
        try:
            self._epoch_arrived(frame)
        except SPARK_ERRORS:
            # Who stops a query in the middle of an epoch wants to hear nothing more of it.
            if not self._stopping:
                raise

    def _epoch_arrived(self, frame: DataFrame) -> None:
        if self._frame_sinks:
            frame = frame.persist()
        try:
            rows = EpochRows.sort(
                without_frames(frame).collect() if self._frame_sinks else frame.collect()
            )
            self._take(frame, rows)
        finally:
            if self._frame_sinks:
                frame.unpersist()

    def _take(self, frame: DataFrame, rows: EpochRows) -> None:
        try:
            if not rows.failures:
                self._deliver(frame, rows)
        except Exception as error:  # noqa: BLE001 - a sink in the driver runs the user's code
            self._fail(error)
        with self._changed:
            try:
                self._master.epoch_ended(rows.acks, rows.failures, time.monotonic())
            except FiresteelError as error:
                self._fail(error)
            self._checkpoints.carry_out(self._master.checkpoints.take_for_edge())
            self._plan_open = False
            self._changed.notify_all()

    def _deliver(self, frame: DataFrame, rows: EpochRows) -> None:
        assert self._plan is not None
        epoch = self._plan.epoch
        rows.deliver(self._graph, print_lines, self._collect)
        with self._changed:
            collected = self._collected.take()
        # Outside of the lock: it waits for a reader who is slow.
        hand_out(self._graph, collected)
        for node in self._frame_sinks if not self._plan.closing else ():
            write = self._graph.driver_objects[node.id]
            spec: Any = node.spec
            part = decode_dataframe(frame, node.id, spark_schema(spec.value_type))
            called(node.name, write, part, epoch)

    def _collect(self, node: int, records: list[Any]) -> None:
        assert self._plan is not None
        with self._changed:
            self._collected.add(self._plan.epoch, node, records)

    def _fail(self, error: Exception) -> None:
        self._master.fail(explained(error, self._program.job_id, self._program.job_name))


def _reason(job_name: str, query: StreamingQuery) -> str:
    exception = query.exception()
    if exception is None:
        return f"Job '{job_name}' failed: its Spark query was stopped by somebody else"
    return failure_of(job_name, exception)
