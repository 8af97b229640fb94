"""An attempt of a batch job: one epoch, run as one ordinary Spark job."""

from __future__ import annotations

from pyspark.sql import SparkSession

from firesteel.errors import JobExecutionError
from firesteel.graph.stream_graph import StreamGraph
from firesteel.protocol.execution import (
    EpochBrokenOffError,
    EpochPlan,
    EpochRows,
    Execution,
    ExecutionFailedError,
)
from firesteel.protocol.program import JobProgram
from firesteel.spark.clock import clock_options
from firesteel.spark.epoch_frames import EpochFrames
from firesteel.spark.epoch_server import EpochServer
from firesteel.spark.errors import SPARK_ERRORS, failure_of
from firesteel.spark.plan import build_plan
from firesteel.spark.session import driver_host, is_local
from firesteel.spark.slot_task import SlotTask


class BatchExecution(Execution):
    """Serves its one plan to the clock's batch reader."""

    def __init__(
        self, session: SparkSession, program: JobProgram, graph: StreamGraph, task: SlotTask
    ) -> None:
        self._session = session
        self._program = program
        self._task = task
        self._frames = EpochFrames(graph)
        self._group = f"firesteel-{program.job_id}"
        self._plan: EpochPlan | None = None
        self._is_broken_off = False

    def run_epoch(self, plan: EpochPlan) -> EpochRows:
        self._plan = plan
        host = None if is_local(self._session) else driver_host(self._session)
        server = EpochServer(self._program.job_id, self, host)
        context = self._session.sparkContext
        context.setJobGroup(self._group, self._program.job_name, interruptOnCancel=True)
        try:
            if self._is_broken_off:
                raise EpochBrokenOffError("the batch was canceled before it began")
            frame = build_plan(
                self._session,
                self._program.levels,
                self._task,
                clock_options(self._task, server.address, server.token),
                self._frames.sources,
                streaming=False,
            )
            return self._frames.collect(frame, plan, write=True)
        except SPARK_ERRORS as error:
            if self._is_broken_off:
                raise EpochBrokenOffError("the batch was canceled") from error
            reason = JobExecutionError(
                failure_of(self._program.job_name, error), job_name=self._program.job_name
            )
            raise ExecutionFailedError(reason) from error
        finally:
            server.close()

    def break_off(self, seconds: float) -> None:
        """Cancel the Spark job at once. The output of an unfinished batch is never used."""
        was_broken_off, self._is_broken_off = self._is_broken_off, True
        if self._plan is not None and not was_broken_off:
            self._session.sparkContext.cancelJobGroup(self._group)

    def close(self) -> None:
        """Do nothing: ``run_epoch`` has released everything."""

    # Called by the epoch server

    def next_epoch(self, after: int) -> int:
        return after

    def plan_of(self, epoch: int) -> EpochPlan:
        assert self._plan is not None
        return self._plan
