"""The daemon that forks Spark's Python workers: PySpark's, with output that leaves at once.

It saves time, and nothing depends on it: executors of a cluster use PySpark's own daemon.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
from typing import Any

from pyspark import daemon

_run_task = daemon.worker
_PRELOADED = (
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "firesteel.datastream",
    "firesteel.spark.live_task",
    "firesteel.task.operator_factory",
)


def run_task(sock: socket.socket, authenticated: bool) -> int:
    """Prepare the worker, then run PySpark's loop. PySpark calls this once per task."""
    if os.environ.pop("SPARK_PIPELINED_UDF", None):
        # PySpark would read ahead in a thread of its own. Live slots have one already. The other
        # half of the setting stays: what a task yields is sent at once.
        _flush_every_batch()
    try:
        return _run_task(sock, authenticated)
    except (BrokenPipeError, ConnectionResetError):
        # Spark has ended the task, and with it the connection. The worker cannot be used again.
        return 1


def _flush_every_batch() -> None:
    from pyspark.sql.pandas import serializers

    write = serializers.ArrowStreamSerializer.dump_stream

    def dump_stream(self: Any, iterator: Any, stream: Any) -> None:
        self._flush_per_batch = True
        write(self, iterator, stream)

    serializers.ArrowStreamSerializer.dump_stream = dump_stream  # type: ignore[method-assign]


def preload() -> None:
    """Import before the first fork what every worker needs. It takes a worker a second of its own."""
    for name in _PRELOADED:
        importlib.import_module(name)
    # The pages of imported modules stay shared, because the collector never touches them.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    daemon.worker = run_task
    preload()
    daemon.manager()
