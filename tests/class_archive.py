"""An archive of the classes that Spark loads. With it, the JVMs of tests start in half the time.

``make test`` creates it once per environment: ``python -m tests.class_archive``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
ARCHIVE = Path(sys.prefix, "spark-classes.jsa")

# Tests start many short-lived JVMs on few cores. The optimizing compiler would pay off too late.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# A JVM that cannot use the archive says so on standard output, which belongs to programs.
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"

# Loads the classes of both ways to execute. The JVM writes the archive when it ends.
_PROGRAM = """
from pyspark import SparkContext

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.spark.session import stop_own_session

for execution in ("real-time", "micro-batch"):
    configuration = Configuration.from_dict({"firesteel.execution": execution})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    numbers = env.from_collection([1, 2, 3]).key_by(lambda number: number % 2)
    assert len(list(numbers.reduce(lambda a, b: a + b).execute_and_collect())) == 3
stop_own_session()
jvm = SparkContext._gateway.proc
jvm.stdin.close()
jvm.wait()
"""


def spark_options() -> str:
    """Return the options of the JVMs that run Spark's driver."""
    if not ARCHIVE.exists():
        return QUICK_START
    return f"{QUICK_START} {_SILENT} -XX:SharedArchiveFile={ARCHIVE}"


def create() -> None:
    """Run a small program, and write the classes that it has loaded."""
    unfinished = ARCHIVE.with_suffix(".new")
    options = f"{QUICK_START} {_SILENT} -XX:ArchiveClassesAtExit={unfinished}"
    subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "SPARK_SUBMIT_OPTS": options},
        check=True,
        timeout=600,
    )
    unfinished.rename(ARCHIVE)


if __name__ == "__main__":
    create()
