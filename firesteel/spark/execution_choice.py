"""The choice between the two ways in which a streaming job runs: real-time and micro-batch."""

from __future__ import annotations

import logging
from typing import Any

from pyspark.sql import SparkSession

from firesteel.config import options
from firesteel.errors import ConfigurationError
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import DataFrameSinkSpec, DataFrameSourceSpec
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.spark.session import LIVE_SETTINGS, is_local, live_slots

_log = logging.getLogger("firesteel")

_REAL_TIME, _MICRO_BATCH = "real-time", "micro-batch"


def has_dataframe_sources(graph: StreamGraph) -> bool:
    """Return True if the job reads DataFrames. Their session must not be restarted."""
    return any(isinstance(node.spec, DataFrameSourceSpec) for node in graph.nodes.values())


def may_be_live(graph: StreamGraph, settings: JobSettings) -> bool:
    """Return False if the program or its settings exclude real-time execution."""
    if settings.is_batch:
        return False
    wanted = settings.configuration.get(options.EXECUTION)
    if wanted == _MICRO_BATCH:
        return False
    return wanted == _REAL_TIME or _program_obstacle(graph) is None


def choose_live(
    session: SparkSession, graph: StreamGraph, levels: Levels, settings: JobSettings
) -> bool:
    """Return True for real-time, False for micro-batch.

    Raises ConfigurationError if the user asks for real-time and it is impossible.
    """
    if not may_be_live(graph, settings):
        return False
    obstacle = _program_obstacle(graph) or _session_obstacle(session, levels)
    if obstacle is None:
        return True
    if settings.configuration.get(options.EXECUTION) == _REAL_TIME:
        raise ConfigurationError(
            f"{options.EXECUTION.key} is {_REAL_TIME}, but {obstacle}. Or set it to {_MICRO_BATCH}.",
            key=options.EXECUTION.key,
        )
    _log.info("%s runs in micro-batches, because %s", settings.job_name, obstacle)
    return False


def _program_obstacle(graph: StreamGraph) -> str | None:
    for node in graph.nodes.values():
        if isinstance(node.spec, DataFrameSourceSpec | DataFrameSinkSpec):
            return (
                f"'{node.name}' is a DataFrame, which Spark's Real-time Mode does not read or write "
                "in Python. Use a source or sink of Firesteel's instead"
            )
    return None


def _session_obstacle(session: SparkSession, levels: Levels) -> str | None:
    conf = session.sparkContext.getConf()
    if not _has_real_time_mode(session):
        return f"Spark {session.version} has no Real-time Mode that Firesteel knows. Use Spark 4.3"
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return (
            "Spark may take executors away from tasks that never end. Set "
            "spark.dynamicAllocation.enabled to false"
        )
    missing = [f"{key}={value}" for key, value in LIVE_SETTINGS.items() if not conf.contains(key)]
    if missing:
        return "the Spark session was started without these settings: " + ", ".join(missing)
    needed, free = levels.required_live_slots, live_slots(session)
    if needed > free:
        parts = " + ".join(map(str, levels.slots))
        more = (
            f"threads (firesteel.spark.master: local[{needed}])"
            if is_local(session)
            else "cores (spark.cores.max, or executors with more of them)"
        )
        return (
            f"the job needs {needed} task slots at the same time ({parts}, for all levels "
            f"together), and {free} of Spark's are free. Lower the parallelism, or give Spark more "
            f"{more}"
        )
    return None


def _has_real_time_mode(session: SparkSession) -> bool:
    jvm: Any = session._jvm  # noqa: SLF001 - no public way
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    stream = getattr(sources, "LowLatencyMemoryStream$")
    return type(stream).__name__ == "JavaClass"
