"""The daemon that forks Spark's Python workers: PySpark's, with output that leaves at once.

It saves time, and nothing depends on it: in a session of the user, PySpark's own daemon runs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
import zipimport
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any

from pyspark import daemon

from firesteel.processes import is_alive
from firesteel.spark.application import WORKERS_VARIABLE

_run_task = daemon.worker
# Arrow writes a batch in a dozen pieces. Smaller batches leave in one.
_BATCH_BYTES = 1 << 16
_WATCH_SECONDS = 2.0
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
        # PySpark would read ahead in a thread of its own, which live slots do not need. The other
        # half of the setting stays: the rows that a task yields are sent at once.
        _open_streams()
    try:
        return _run_task(sock, authenticated)
    except (BrokenPipeError, ConnectionResetError):
        # Spark has ended the task, and with it the connection. The worker cannot be used again.
        return 1


def _open_streams() -> None:
    """Let live slots read the stream from Spark themselves, and write each batch in one piece."""
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    from firesteel.spark.live_inbox import SparkInput

    load = ArrowStreamSerializer.load_stream
    dump = ArrowStreamSerializer.dump_stream

    def load_stream(self: Any, stream: Any) -> Any:
        SparkInput.offer(stream)
        # Reads nothing before its first use.
        return load(self, stream)

    def dump_stream(self: Any, iterator: Any, stream: Any) -> None:
        self._flush_per_batch = True
        stream.flush()
        # PySpark writes to the stream afterwards, so the buffer must not close it, not even when
        # Spark has ended the task and the rest of the buffer cannot be written.
        buffered = BufferedWriter(FileIO(stream.fileno(), "w", closefd=False), _BATCH_BYTES)
        try:
            dump(self, iterator, buffered)
        finally:
            buffered.flush()

    ArrowStreamSerializer.load_stream = load_stream  # type: ignore[method-assign]
    ArrowStreamSerializer.dump_stream = dump_stream  # type: ignore[method-assign]


def preload() -> None:
    """Import the modules that every worker needs, before the first fork. It takes a second."""
    for name in _PRELOADED:
        importlib.import_module(name)
    _forget_archives()
    # The pages of imported modules stay shared, because the collector never touches them.
    gc.collect()
    gc.freeze()


def _forget_archives() -> None:
    """Drop the finders of modules in archives, such as that of PySpark. Imports find them again.

    Each worker tells all finders that files may have changed. Each finder of an archive, one per
    package in it, would then read the directory of the whole archive: 0.2 s in all.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]


def watch_driver() -> None:
    """End this daemon with the driver that it belongs to, if it belongs to one alone.

    Spark would keep it as long as the application, which has other drivers.
    """
    name = os.environ.get(WORKERS_VARIABLE)
    if name is None:
        return
    driver: int | None = None

    def look(*_: object) -> None:
        nonlocal driver
        if driver is None:
            # The file is written when the driver has started.
            with contextlib.suppress(OSError, ValueError):
                driver = int(Path(name).read_text())
        elif not is_alive(driver):
            # PySpark's loop ends the workers on its way out.
            sys.exit(0)

    # A timer, not a thread: forks of a process with threads may hang. Workers do not inherit it.
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _WATCH_SECONDS, _WATCH_SECONDS)


def prepare() -> None:
    """Make PySpark's daemon that of Firesteel."""
    preload()
    daemon.worker = run_task
    watch_driver()


if __name__ == "__main__":
    prepare()
    daemon.manager()
