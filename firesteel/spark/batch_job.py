"""A batch job: the same plan as one ordinary Spark job of a single epoch."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from firesteel.common.job_status import JobStatus
from firesteel.errors import JobExecutionError
from firesteel.graph.operator_specs import DataFrameSinkSpec, DataFrameSourceSpec
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.driver_commit import commit_prepared
from firesteel.master.epoch_rows import EpochRows, print_lines
from firesteel.master.job_master import EpochPlan, JobMaster
from firesteel.master.job_status import explained
from firesteel.protocol.program import JobProgram
from firesteel.spark.clock import clock_options
from firesteel.spark.dataframe_bridge import decode_dataframe, spark_schema, without_frames
from firesteel.spark.epoch_server import EpochServer
from firesteel.spark.errors import SPARK_ERRORS, failure_of
from firesteel.spark.plan import build_plan
from firesteel.spark.slot_task import SlotTask
from firesteel.usercode.failures import called


class BatchJob:
    def __init__(
        self,
        session: SparkSession,
        program: JobProgram,
        graph: StreamGraph,
        master: JobMaster,
        task: SlotTask,
    ) -> None:
        self._session = session
        self._program = program
        self._graph = graph
        self._master = master
        self._task = task
        self._plan: EpochPlan | None = None
        self._group = f"firesteel-{program.job_id}"

    def next_epoch(self, after: int) -> int:
        return after

    def plan_of(self, epoch: int) -> EpochPlan:
        assert self._plan is not None
        return self._plan

    def cancel(self) -> None:
        self._master.cancel()
        self._session.sparkContext.cancelJobGroup(self._group)

    def give_up(self) -> None:
        """Nothing to do: Spark ends the tasks of a canceled job by force."""

    def run(self) -> None:
        server = EpochServer(self._program.job_id, self)
        context = self._session.sparkContext
        context.setJobGroup(self._group, self._program.job_name, interruptOnCancel=True)
        try:
            if self._master.status is JobStatus.CREATED:
                self._plan = self._master.plan_batch()
            if self._master.status is JobStatus.RUNNING:
                self._run(server)
            else:
                # Canceled before it had begun.
                self._master.abandon()
        except SPARK_ERRORS as error:
            if self._master.status is not JobStatus.CANCELLING:
                self._master.fail(
                    JobExecutionError(
                        failure_of(self._program.job_name, error),
                        job_name=self._program.job_name,
                    )
                )
            self._master.abandon()
        except Exception as error:
            # The driver's part, which no restart repeats: some of it may be visible already.
            self._master.fail(explained(error, self._program.job_id, self._program.job_name))
            self._master.abandon()
            raise
        finally:
            server.close()

    def _run(self, server: EpochServer) -> None:
        nodes = self._graph.nodes.values()
        objects = self._graph.driver_objects
        frames = {n.id: objects[n.id] for n in nodes if isinstance(n.spec, DataFrameSourceSpec)}
        frame_sinks = [node for node in nodes if isinstance(node.spec, DataFrameSinkSpec)]
        frame = build_plan(
            self._session,
            self._program.levels,
            self._task,
            clock_options(self._task, server.address, server.token),
            frames,
            streaming=False,
        )
        if frame_sinks:
            frame = frame.persist()
        try:
            # One job for all partitions; an iterator would run them one after the other.
            own = without_frames(frame) if frame_sinks else frame
            rows = EpochRows.sort(own.collect())
            if not rows.failures:
                rows.deliver(
                    self._graph, print_lines, lambda node, records: objects[node].add(records)
                )
                for node in frame_sinks:
                    spec: Any = node.spec
                    part = decode_dataframe(frame, node.id, spark_schema(spec.value_type))
                    called(node.name, objects[node.id], part, 1)
            commit = partial(commit_prepared, self._graph, self._program.job_id)
            self._master.batch_ended(rows.acks, rows.failures, commit)
        finally:
            if frame_sinks:
                frame.unpersist()
