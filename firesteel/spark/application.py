"""The running Spark application: its executors and slots, and gateways for further drivers.

Several driver processes can share one application. The process that has started Spark opens a
gateway for each other driver. That driver attaches to the running application instead of starting
one. Its Python workers are its own, so that no module and no crash of one driver reaches a different
one.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
# Spark keeps one daemon and its workers per environment of a task.
WORKERS_VARIABLE = "FIRESTEEL_WORKERS"


class Gateway:
    """An entry into the JVM for one other process. Callbacks to that process use it, too."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session._jvm  # noqa: SLF001 - no public way
        server = jvm.org.apache.spark.api.python.Py4JServer(session.sparkContext._jsc.sc().conf())  # noqa: SLF001 - no public way
        server.start()
        self._server = server
        self._environment = {_PORT: str(server.getListeningPort()), _SECRET: str(server.secret())}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the other process needs in order to attach."""
        return dict(self._environment)

    def close(self) -> None:
        """Close the entry, once the other process has ended."""
        try:
            self._server.shutdown()
        except (Py4JError, OSError):
            # The JVM has ended.
            return


def attach(workers: str) -> None:
    """Make the running application that of this process. ``workers`` names its Python workers."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]  # PySpark's has no types
    # Children of this process start their own Spark, if any.
    for name in (_PORT, _SECRET):
        os.environ.pop(name, None)
    jvm: Any = gateway.jvm
    java_context = jvm.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    conf = SparkConf(_jconf=java_context.getConf())
    context = SparkContext(gateway=gateway, jsc=java_context, conf=conf)
    # Not as an argument: PySpark would write it into the configuration that all drivers share.
    context.environment[WORKERS_VARIABLE] = workers
    SparkSession(context)


def when_spark_ends(call: Callable[[], None]) -> None:
    """Call a function in a thread when the JVM that this process has started ends by itself."""
    jvm = _own_jvm()
    if jvm is None:
        return

    def wait() -> None:
        jvm.wait()
        call()

    threading.Thread(target=wait, name="firesteel-jvm", daemon=True).start()


def spark_has_ended() -> bool:
    """Return True if this process has a Spark application that does not answer any more."""
    jvm = _own_jvm()
    if jvm is not None:
        return jvm.poll() is not None
    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public name
    if context is None or context._jsc is None:  # noqa: SLF001 - no public way
        return False
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001 - no public way
    except (Py4JError, OSError):
        return True


def _own_jvm() -> subprocess.Popen[bytes] | None:
    """Return the JVM of this process, or None if there is none or a different one has started it."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no public name
    found: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    return found


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    """An executor. ``memory`` is in bytes, ``since`` is in epoch milliseconds."""

    id: str
    host: str
    port: int
    slots: int
    memory: int
    since: int


def executors() -> list[ExecutorInfo]:
    """Return the executors that are alive, or an empty list if this process has no Spark yet."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public name
    if context is None or context._jsc is None:  # noqa: SLF001 - no public way
        return []
    try:
        found = context._jsc.sc().statusStore().executorList(True)  # noqa: SLF001 - no public way
        return [_read(found.apply(number)) for number in range(found.size())]
    except (Py4JError, OSError):
        # Spark is being stopped.
        return []


def _read(summary: Any) -> ExecutorInfo:
    host, _, port = str(summary.hostPort()).rpartition(":")
    return ExecutorInfo(
        id=str(summary.id()),
        host=host,
        port=int(port) if port.isdigit() else 0,
        slots=int(summary.maxTasks()) or int(summary.totalCores()),
        memory=int(summary.maxMemory()),
        since=int(summary.addTime().getTime()),
    )
