"""The driver process of the soak: submits the job and controls it by order of the supervisor.

An order is a line of JSON on standard input, and its answer is a line of JSON on standard output.
Run with ``python -m tools.soak.driver``.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import Any

from pyspark import SparkContext

from firesteel.checkpoint.rules.failure_reason import StopWithSavepointStoppingError
from firesteel.common import Configuration, JobClient
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import SinkFunction
from firesteel.errors import FiresteelError
from tools.soak.workload import Place, build

_ANSWER_SECONDS = 600.0
_SPARK = {"spark.driver.memory": "768m", "taskmanager.numberOfTaskSlots": "4"}


class _Nowhere(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        pass


class Driver:
    """Runs one job after the other, all of them in one Spark session."""

    def __init__(self) -> None:
        self._client: JobClient | None = None

    def start_spark(self) -> dict[str, Any]:
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(_SPARK))
        env.from_collection([1]).map(lambda number: number).add_sink(_Nowhere())
        env.execute("start")
        return {}

    def submit(
        self, place: str, start: float, seconds: int, parallelism: int, settings: dict[str, str]
    ) -> dict[str, Any]:
        configuration = Configuration.from_dict({**_SPARK, **settings})
        env = build(configuration, Place.at(place), start, seconds)
        env.set_parallelism(parallelism)
        self._client = env.execute_async("soak")
        return {"job": str(self._client.get_job_id())}

    def status(self) -> dict[str, Any]:
        client = self._running()
        counts = client.get_checkpoints()
        newest = counts["latest"]["completed"] or {}
        return {
            "status": client.get_job_status().result().name,
            "epochs": client.get_overview()["epochs"],
            "completed": counts["counts"]["completed"],
            "checkpoint_ms": newest.get("end_to_end_duration"),
        }

    def memory(self) -> dict[str, Any]:
        """Collect garbage in both processes, and return the figures of the JVM."""
        gc.collect()
        context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public name
        if context is None:
            return {}
        jvm: Any = context._jvm  # noqa: SLF001
        jvm.java.lang.System.gc()
        factory = jvm.java.lang.management.ManagementFactory
        memory, classes = factory.getMemoryMXBean(), factory.getClassLoadingMXBean()
        return {
            "heap": memory.getHeapMemoryUsage().getUsed(),
            "outside_heap": memory.getNonHeapMemoryUsage().getUsed(),
            "classes": classes.getLoadedClassCount(),
            "arrow": jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator().getAllocatedMemory(),
        }

    def savepoint(self, directory: str) -> dict[str, Any]:
        path = self._running().trigger_savepoint(directory)
        return {"savepoint": path.result(_ANSWER_SECONDS)}

    def stop(self, directory: str) -> dict[str, Any]:
        """Stop with a savepoint, which may be complete although the job failed later."""
        client = self._running()
        try:
            path = client.stop_with_savepoint(False, directory).result(_ANSWER_SECONDS)
        except StopWithSavepointStoppingError as error:
            return {"savepoint": error.savepoint, "error": str(error)}
        return {"savepoint": path}

    def cancel(self) -> dict[str, Any]:
        self._running().cancel().result(_ANSWER_SECONDS)
        return {}

    def _running(self) -> JobClient:
        assert self._client is not None
        return self._client


def main() -> None:
    driver = Driver()
    # Only answers go to standard output. Everything else goes where errors go.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        order = json.loads(line)
        name = order.pop("order")
        try:
            answer = getattr(driver, name)(**order)
        except (FiresteelError, OSError, TimeoutError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps({"at": time.time(), **answer}) + "\n")
    os._exit(0)


if __name__ == "__main__":
    main()
