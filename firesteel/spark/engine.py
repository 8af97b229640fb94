"""Runs one job on Spark, from the first file to the last."""

from __future__ import annotations

from firesteel.common.execution_config import ExecutionConfig
from firesteel.config import options
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.graph.job_settings import JobSettings
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import DataFrameSourceSpec, SourceSpec
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.job_master import JobMaster
from firesteel.master.rate_control import RateControl, target_duration
from firesteel.master.source_coordinator import SourceCoordinator
from firesteel.spark.batch_job import BatchJob
from firesteel.spark.job_files import JobFiles
from firesteel.spark.session import (
    acquire_session,
    host_settings,
    is_local,
    release_session,
    task_attempts,
)
from firesteel.spark.shipping import ship
from firesteel.spark.slot_task import SlotTask
from firesteel.spark.streaming_job import StreamingJob
from firesteel.state.backend_factory import check_installed
from firesteel.state.backend_settings import settings_of
from firesteel.task.program import JobProgram

_IN_WORKER = "in-worker"


class SparkEngine:
    """Made in the job's thread. ``run`` returns when the job is over; ``master`` knows how it ended."""

    def __init__(
        self, job_id: str, graph: StreamGraph, levels: Levels, settings: JobSettings
    ) -> None:
        configuration = settings.configuration
        self._session = acquire_session(
            levels.required_slots, configuration, may_restart=not _has_frames(graph)
        )
        try:
            self._files = JobFiles(job_id, configuration)
        except BaseException:
            release_session()
            raise
        try:
            self._prepare(job_id, graph, levels, settings)
        except BaseException:
            self._release()
            raise

    def _prepare(
        self, job_id: str, graph: StreamGraph, levels: Levels, settings: JobSettings
    ) -> None:
        configuration = settings.configuration
        context = self._session.sparkContext
        batch = settings.runtime_mode is RuntimeExecutionMode.BATCH
        shared_disk = is_local(self._session)
        state_backend = settings_of(configuration)
        check_installed(state_backend)
        program = JobProgram(
            job_id=job_id,
            job_name=settings.job_name,
            attempt=0,
            levels=levels,
            job_parameters=configuration.get(options.GLOBAL_JOB_PARAMETERS),
            segment_directory=str(self._files.segments) if shared_disk else None,
            inline_threshold=configuration.get(options.STATE_INLINE_THRESHOLD),
            batch=batch,
            auto_watermark_interval=ExecutionConfig(configuration).get_auto_watermark_interval(),
            state_backend=state_backend,
        )
        # Before the program is packed: it takes the module search path along.
        ship(context, settings, self._files.root, local=shared_disk)
        program_file = self._files.write_program(program)
        if not shared_disk:
            context.addFile(program_file)
        in_worker = batch or configuration.get(options.SLOT_HOST) == _IN_WORKER
        idle_timeout = configuration.get(options.SLOT_HOST_IDLE_TIMEOUT).total_seconds()
        task = SlotTask(
            program_file,
            None if in_worker else host_settings(self._session, idle_timeout),
            batch=batch,
            max_attempts=task_attempts(self._session),
        )
        self._sources = {
            node.id: SourceCoordinator(node.id, node.spec.source, node.parallelism)
            for node in graph.nodes.values()
            if isinstance(node.spec, SourceSpec)
        }
        target = configuration.get(options.EPOCH_TARGET_DURATION)
        rate = RateControl(
            target_seconds=target.total_seconds()
            if target is not None
            else target_duration(settings.buffer_timeout),
            max_records=configuration.get(options.EPOCH_MAX_RECORDS),
        )
        self.master = JobMaster(program, self._sources, rate)
        job_type = BatchJob if batch else StreamingJob
        self._job = job_type(self._session, program, graph, self.master, self._files, task)

    def run(self) -> None:
        try:
            self._job.run()
        finally:
            self._release()

    def cancel(self) -> None:
        self._job.cancel()

    def _release(self) -> None:
        for source in getattr(self, "_sources", {}).values():
            source.close()
        self._files.remove()
        release_session()


def _has_frames(graph: StreamGraph) -> bool:
    """DataFrames belong to a session: one that has made some must not be started over."""
    return any(isinstance(node.spec, DataFrameSourceSpec) for node in graph.nodes.values())
