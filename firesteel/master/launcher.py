"""Launches jobs on Spark."""

from __future__ import annotations

from firesteel.common.job_id import JobID
from firesteel.graph.levels import Levels
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.edge import ThreadedEdge
from firesteel.master.job_runner import JobRunner
from firesteel.master.running_jobs import RunningJob


def launch(
    stream_graph: StreamGraph,
    levels: Levels,
    settings: JobSettings,
    job_id: JobID | None = None,
) -> RunningJob:
    """Start a job on Spark, in a thread of its own. Without an id it gets a new one."""
    # The only way from here to Spark.
    from firesteel.spark.executor import SparkExecutor

    job_id = job_id or JobID.generate()
    # Made here, not in the thread: a program that cannot run must fail where it is submitted.
    runner = JobRunner(str(job_id), stream_graph, levels, settings, SparkExecutor, ThreadedEdge())
    return RunningJob(job_id, settings, runner)
