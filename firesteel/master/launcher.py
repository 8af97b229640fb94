"""Launches jobs on Spark."""

from __future__ import annotations

from firesteel.common.job_id import JobID
from firesteel.graph.levels import Levels
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.leader.job_ledger import JobLedger
from firesteel.master.edge import ThreadedEdge
from firesteel.master.job_runner import JobRunner
from firesteel.master.led_application import EndedJob, LedApplication
from firesteel.master.running_jobs import RunningJob, running_jobs


class _Application:
    """The leadership of this program, if it has one."""

    led: LedApplication | None = None
    watches_spark = False


def lead_program(application: LedApplication) -> None:
    """Let the jobs that this program starts from now on continue those of its earlier runs."""
    _Application.led = application


def program_failed() -> None:
    """The program ends with an error. If it has a leadership, its next run continues its jobs."""
    if _Application.led is not None:
        running_jobs.suspended = True


def launch_of_program(
    stream_graph: StreamGraph, levels: Levels, settings: JobSettings
) -> RunningJob | EndedJob:
    """Start the next job of this program, unless an earlier run of it has brought it to its end."""
    if _Application.led is None:
        return launch(stream_graph, levels, settings)
    job_id, ledger = _Application.led.next_job(settings.job_name)
    end = ledger.ended()
    if end is not None:
        return EndedJob(job_id, settings.job_name, end)
    job = launch(stream_graph, levels, settings, job_id, ledger)
    if not _Application.watches_spark:
        from firesteel.spark.application import when_spark_ends

        _Application.watches_spark = True
        when_spark_ends(_Application.led.spark_has_ended)
    return job


def launch(
    stream_graph: StreamGraph,
    levels: Levels,
    settings: JobSettings,
    job_id: JobID | None = None,
    ledger: JobLedger | None = None,
) -> RunningJob:
    """Start a job on Spark, in a thread of its own. Without an id it gets a new one.

    ``ledger`` has the entries of a job with several masters.
    """
    # The only way from here to Spark.
    from firesteel.spark.executor import SparkExecutor

    job_id = job_id or JobID.generate()
    # Made here, not in the thread: a program that cannot run must fail where it is submitted.
    runner = JobRunner(
        str(job_id), stream_graph, levels, settings, SparkExecutor, ThreadedEdge(), ledger=ledger
    )
    return RunningJob(job_id, settings, runner)
