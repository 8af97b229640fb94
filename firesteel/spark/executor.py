"""The Spark executor: runs the attempts of one job on a Spark session."""

from __future__ import annotations

from contextlib import ExitStack

from firesteel.config import options
from firesteel.errors import InsufficientSlotsError
from firesteel.graph.levels import Levels
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.protocol.execution import Execution, Placement
from firesteel.protocol.program import JobProgram
from firesteel.spark.application import spark_has_ended
from firesteel.spark.batch_execution import BatchExecution
from firesteel.spark.execution_choice import choose_live, has_dataframe_sources, may_be_live
from firesteel.spark.job_files import JobFiles
from firesteel.spark.live_execution import LiveExecution
from firesteel.spark.micro_batch_execution import MicroBatchExecution
from firesteel.spark.session import (
    acquire_session,
    forget_slots,
    host_settings,
    is_local,
    live_slots,
    occupy_live_slots,
    release_session,
    task_attempts,
)
from firesteel.spark.shipping import ship, stage_resources
from firesteel.spark.slot_task import SlotTask

_IN_WORKER = "in-worker"


class SparkExecutor:
    """Holds a session and the private directory of the job until it is closed."""

    def __init__(
        self, job_id: str, graph: StreamGraph, levels: Levels, settings: JobSettings
    ) -> None:
        self._graph = graph
        self._settings = settings
        with ExitStack() as held:
            self.session = acquire_session(
                levels.required_slots,
                settings.configuration,
                may_restart=not has_dataframe_sources(graph),
                live_slots=levels.required_live_slots if may_be_live(graph, settings) else None,
            )
            held.callback(release_session)
            self._is_live = choose_live(self.session, graph, levels, settings)
            # The task slots that the job counts as its own.
            self._occupied = 0
            if self._is_live:
                self._occupy(levels.required_live_slots)
                held.callback(self._occupy, 0)
            held.callback(forget_slots, job_id)
            self._files = JobFiles(job_id, settings.configuration)
            held.callback(self._files.remove)
            self._held = held.pop_all()

    def _occupy(self, slots: int) -> None:
        occupy_live_slots(slots - self._occupied)
        self._occupied = slots

    def reserve(self, graph: StreamGraph, levels: Levels) -> None:
        required = levels.required_live_slots if self._is_live else levels.required_slots
        available = live_slots(self.session) + self._occupied
        if required > available:
            raise InsufficientSlotsError(required, available)
        if self._is_live:
            self._occupy(required)
        self._graph = graph

    def has_ended(self) -> bool:
        return spark_has_ended()

    def place(self) -> Placement:
        """Ship the files of the job to the tasks. ``start`` ships the program."""
        context, root = self.session.sparkContext, self._files.root
        local = is_local(self.session)
        ship(context, self._settings, root, local=local)
        return Placement(
            segment_directory=str(self._files.segments) if local else None,
            resources=stage_resources(context, self._settings, root, local=local),
        )

    def start(self, program: JobProgram) -> Execution:
        task = self._slot_task(program)
        if program.batch:
            return BatchExecution(self.session, program, self._graph, task)
        if self._is_live:
            return LiveExecution(
                self.session,
                program,
                task,
                self._files,
                max_records=self._settings.configuration.get(options.EPOCH_MAX_RECORDS),
                task_attempts=task_attempts(self.session),
                local=is_local(self.session),
            )
        return MicroBatchExecution(self.session, program, self._graph, task, self._files)

    def _slot_task(self, program: JobProgram) -> SlotTask:
        configuration = self._settings.configuration
        program_file, is_new = self._files.write_program(program)
        if is_new and not is_local(self.session):
            self.session.sparkContext.addFile(program_file)
        in_worker = program.batch or configuration.get(options.SLOT_HOST) == _IN_WORKER
        idle_timeout = configuration.get(options.SLOT_HOST_IDLE_TIMEOUT).total_seconds()
        return SlotTask(
            program_file,
            None
            if in_worker
            else host_settings(
                self.session,
                idle_timeout,
                # A process has one working directory, and archives change it.
                only_job=program.job_id if self._settings.python_archives else None,
            ),
            batch=program.batch,
            max_attempts=task_attempts(self.session),
        )

    def close(self) -> None:
        self._held.close()
