"""Recorded program of an environment: compiles it to a job, and launches the job."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from firesteel.common.configuration import Configuration
from firesteel.common.job_client import JobControl
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.typeinfo import TypeInformation
from firesteel.config import options, rest_options
from firesteel.datastream.data_stream.cache import CacheWriting, StreamCache
from firesteel.datastream.data_stream.collected import CloseableIterator, CollectBuffer
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.stream_execution_environment.job_compiler import (
    CompiledJob,
    compile_job,
    warn_of_sinks_that_never_commit,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph.transformations import Origin, Transformation

_REMOTE = "remote"

# For commands that run a program in this process. They are called with each job, before it starts and
# after.
before_launch: list[Callable[[CompiledJob], None]] = []
after_launch: list[Callable[[JobControl], None]] = []
# Called with the result of a job that ``execute`` has waited for, in the thread that waits.
after_end: list[Callable[[JobExecutionResult], None]] = []


class Program:
    """The settings of an environment, and the operators added to it since its last job."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._transformations: list[Transformation] = []
        self._caches: weakref.WeakSet[StreamCache] = weakref.WeakSet()

    def add_operator(self, transformation: Transformation) -> None:
        self._transformations.append(transformation)

    def add_cache(
        self, origins: tuple[Origin, ...], value_type: TypeInformation, parallelism: int | None
    ) -> StreamCache:
        """Return a cache, which the next job that computes ``origins`` writes."""
        root = self.configuration.get_optional(options.WORKING_DIR)
        cache = StreamCache(origins, value_type, parallelism, root)
        self._caches.add(cache)
        return cache

    def clear(self) -> None:
        """Drop the operators that no job has run."""
        self._transformations.clear()

    def compile(
        self, parallelism: int, job_name: str | None = None, *more: Transformation
    ) -> CompiledJob:
        """Return the job of the program so far.

        Args:
            parallelism: The parallelism of operators that set none.
            job_name: The name of the job. None takes the default.
            more: Sinks of this job alone.
        """
        transformations = [*self._transformations, *more]
        caches = [cache for cache in self._caches if cache.is_computed_by(transformations)]
        job = compile_job(
            [*transformations, *(cache.writing() for cache in caches)],
            self.configuration,
            parallelism,
            job_name,
        )
        if caches and job.settings.runtime_mode is not RuntimeExecutionMode.BATCH:
            raise InvalidProgramError(
                "cache() works only in batch jobs, as in Flink. If all sources are bounded, call "
                "env.set_runtime_mode(RuntimeExecutionMode.BATCH)."
            )
        return job

    @property
    def is_remote(self) -> bool:
        """True if jobs of the program run in a session."""
        return self.configuration.get_optional(options.TARGET) == _REMOTE

    @property
    def is_detached(self) -> bool:
        """True if ``execute`` does not wait for the job."""
        return self.is_remote and not self.configuration.get(options.ATTACHED)

    def launch(self, job: CompiledJob) -> JobControl:
        """Start a job. The program drops the operators that were compiled, even if the job fails."""
        self.clear()
        for call in before_launch:
            call(job)
        warn_of_sinks_that_never_commit(job)
        running = self._start(job)
        for watching in job.stream_graph.driver_objects.values():
            if isinstance(watching, CollectBuffer):
                _end_with_the_job(watching, running)
            elif isinstance(watching, CacheWriting):
                watching.cache.written_by(running.result(), watching.source)
        for told in after_launch:
            told(running)
        return running

    def note_end(self, result: JobExecutionResult) -> None:
        """Note that ``execute`` has waited for a job, which has ended without an error."""
        for told in after_end:
            told(result)

    def _start(self, job: CompiledJob) -> JobControl:
        if self.is_remote:
            from firesteel.client.remote_job import submit

            return submit(job.stream_graph, job.levels, job.settings)
        if self.configuration.get(rest_options.REST_ENABLED):
            from firesteel.rest.server import serve_program

            serve_program(self.configuration)
        from firesteel.master.launcher import launch_of_program

        return launch_of_program(job.stream_graph, job.levels, job.settings)

    def launch_and_collect(self, job: CompiledJob, buffer: CollectBuffer) -> CloseableIterator:
        """Start a job with a sink that fills ``buffer``, and return an iterator over its records."""
        running = self.launch(job)

        def close() -> None:
            buffer.close()
            if not running.result().done():
                running.cancel_and_wait()

        return CloseableIterator(iter(buffer), close)


def _end_with_the_job(buffer: CollectBuffer, running: JobControl) -> None:
    """End a buffer with its job, so that its reader gets the error of a job that failed."""

    def wait() -> None:
        buffer.end(running.result().exception())

    threading.Thread(target=wait, name="firesteel-collect", daemon=True).start()
