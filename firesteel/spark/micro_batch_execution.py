"""An attempt of a streaming job in micro-batches: a Structured Streaming query.

Spark pulls: its thread asks the clock for the next epoch and waits there. ``run_epoch`` gives the
clock a plan and waits for the rows that foreachBatch brings.
"""

from __future__ import annotations

import logging
import math
import threading
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from firesteel.errors import JobExecutionError
from firesteel.graph.stream_graph import StreamGraph
from firesteel.processes import release_memory
from firesteel.protocol.execution import (
    EpochBrokenOffError,
    EpochPlan,
    EpochRows,
    Execution,
    ExecutionFailedError,
)
from firesteel.protocol.program import JobProgram
from firesteel.spark.clock import ONLY_EPOCH, clock_options
from firesteel.spark.epoch_frames import EpochFrames
from firesteel.spark.epoch_server import EpochServer
from firesteel.spark.errors import SPARK_ERRORS, failure_of, reason_of
from firesteel.spark.job_files import JobFiles
from firesteel.spark.plan import build_plan
from firesteel.spark.session import driver_host, is_local
from firesteel.spark.slot_task import SlotTask

_log = logging.getLogger("firesteel")

_STOP_SECONDS = 10.0
# The running epoch is checked on this often.
_POLL_SECONDS = 0.25
# Spark writes two files per micro-batch and waits for them, a third of the time of a small epoch.
# Firesteel never reads them: it resumes no query, and confirmed state is in the job's checkpoints.
# A DataFrame may bring stateful operators of Spark along, and such a query needs the files.
_PROGRESS_IN_MEMORY = {
    "asyncProgressTrackingEnabled": "true",
    # A hundred years, so that Spark writes the first micro-batch only.
    "asyncProgressTrackingCheckpointIntervalMs": str(100 * 365 * 24 * 3600 * 1000),
    # Spark allows this for some sinks only. It is safe here: foreachBatch ends before the batch.
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}
# Rows are buffers. They are too few to be worth a loop that is generated, compiled and optimized.
_WITHOUT_GENERATED_CODE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class MicroBatchExecution(Execution):
    """Answers the clock (next_epoch, plan_of) and takes the rows that foreachBatch brings."""

    def __init__(
        self,
        session: SparkSession,
        program: JobProgram,
        graph: StreamGraph,
        task: SlotTask,
        files: JobFiles,
    ) -> None:
        self._session = session
        self._program = program
        self._task = task
        self._files = files
        self._frames = EpochFrames(graph)
        self._changed = threading.Condition()
        self._server: EpochServer | None = None
        self._query: StreamingQuery | None = None
        self._plan: EpochPlan | None = None
        self._rows: EpochRows | None = None
        self._broken_off_at = math.inf
        self._stopping = False
        self._stopped = False

    def run_epoch(self, plan: EpochPlan) -> EpochRows:
        if plan.by_force:
            return self._run_by_force(plan)
        query = self._query or self._start()
        with self._changed:
            self._plan, self._rows = plan, None
            self._changed.notify_all()
            while (rows := self._arrived()) is None:
                if time.monotonic() >= self._broken_off_at:
                    raise EpochBrokenOffError(f"epoch {plan.epoch} was canceled, but did not end")
                if not self._changed.wait(_POLL_SECONDS) and not query.isActive:
                    raise ExecutionFailedError(self._failure(query))
            return rows

    def _arrived(self) -> EpochRows | None:
        """Return the rows of the running epoch, which the query's thread brings."""
        return self._rows

    def break_off(self, seconds: float) -> None:
        """Limit the time of the running epoch. Takes no lock, because a signal handler calls it."""
        self._broken_off_at = min(self._broken_off_at, time.monotonic() + seconds)

    def close(self) -> None:
        self._stop()
        if self._server is not None:
            self._server.close()
        self._files.remove_spark_checkpoint(self._program.attempt)
        release_memory()

    # The query

    def _start(self) -> StreamingQuery:
        if not self._frames.are_used:
            for key, value in _WITHOUT_GENERATED_CODE.items():
                self._session.conf.set(key, value)
        self._server = self._serve()
        rows = self._build(self._server, streaming=True)
        query = rows.writeStream.foreachBatch(self._query_brings)
        query.option("checkpointLocation", self._files.spark_checkpoint(self._program.attempt))
        if not self._frames.sources:
            query.options(**_PROGRESS_IN_MEMORY)
        self._query = query.start()
        return self._query

    def _serve(self) -> EpochServer:
        host = None if is_local(self._session) else driver_host(self._session)
        return EpochServer(self._program.job_id, self, host)

    def _build(self, server: EpochServer, *, streaming: bool) -> DataFrame:
        return build_plan(
            self._session,
            self._program.levels,
            self._task,
            clock_options(self._task, server.address, server.token),
            self._frames.sources if streaming else {},
            streaming=streaming,
        )

    def _run_by_force(self, plan: EpochPlan) -> EpochRows:
        """Stop the query, then run the epoch as an ordinary Spark job."""
        self._stop()
        server = self._server = self._server or self._serve()
        with self._changed:
            self._plan = plan
        try:
            return self._frames.collect(self._build(server, streaming=False), plan, write=False)
        except SPARK_ERRORS as error:
            reason = JobExecutionError(reason_of(error), job_name=self._program.job_name)
            raise ExecutionFailedError(reason) from error

    def _stop(self) -> None:
        """Stop the query. It waits in the clock between two epochs, so nothing is interrupted.

        If the running epoch has been broken off, its tasks are killed.
        """
        if self._query is None or self._stopped:
            return
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        try:
            self._query.stop()
        except SPARK_ERRORS as error:
            _log.warning("stopping the Spark query of %s: %s", self._program.job_name, error)
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _failure(self, query: StreamingQuery) -> JobExecutionError:
        name, exception = self._program.job_name, query.exception()
        if exception is None:
            message = f"Job '{name}' failed: its Spark query was stopped from outside"
        else:
            message = failure_of(name, exception)
        return JobExecutionError(message, job_id=self._program.job_id, job_name=name)

    # Called by the epoch server

    def next_epoch(self, after: int) -> int:
        with self._changed:
            while not self._stopping:
                # Spark asks again for an epoch that it has not begun.
                if self._plan is not None and self._plan.epoch > after:
                    return self._plan.epoch
                self._changed.wait(timeout=1.0)
            # Spark may ask again while the query is being stopped. Without an answer it does not
            # begin a batch of the records that a DataFrame source has. Stopping breaks the wait.
            self._changed.wait_for(lambda: self._stopped, timeout=_STOP_SECONDS)
        return after

    def plan_of(self, epoch: int) -> EpochPlan:
        with self._changed:
            if self._plan is None or epoch not in (ONLY_EPOCH, self._plan.epoch):
                raise JobExecutionError(f"Spark asked for epoch {epoch}, which is not planned")
            return self._plan

    def _query_brings(self, frame: DataFrame, _: int) -> None:
        with self._changed:
            plan = self._plan
        assert plan is not None
        try:
            rows = self._frames.collect(frame, plan, write=not plan.closing)
        except SPARK_ERRORS:
            # Errors of an epoch that is broken off do not matter.
            if not self._stopping:
                raise
            return
        with self._changed:
            self._rows = rows
            self._changed.notify_all()
