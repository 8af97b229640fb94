"""The archive of Spark's classes for the JVMs of tests, in a cache directory of their own.

``make test`` writes it once per environment: ``python -m tests.class_archive``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
CACHE = Path(sys.prefix, "cache")

# Tests start many short-lived JVMs on few cores. The optimizing compiler would pay off too late.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# Loads the classes of both ways to execute.
_PROGRAM = """
from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment

for execution in ("real-time", "micro-batch"):
    configuration = Configuration.from_dict({"firesteel.execution": execution})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    numbers = env.from_collection([1, 2, 3]).key_by(lambda number: number % 2)
    assert len(list(numbers.reduce(lambda a, b: a + b).execute_and_collect())) == 3
"""


def use() -> None:
    """Let the programs that this process starts find the archive."""
    os.environ["XDG_CACHE_HOME"] = str(CACHE)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_START)
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", QUICK_START)


def create() -> None:
    """Write the archive, unless it is there."""
    # Some tests run on versions of Python that have no PySpark.
    from firesteel.spark.class_archive import ClassArchive
    from firesteel.spark.java import find_java

    use()
    archive = ClassArchive(find_java())
    # As the first program on a machine does, so that the second one writes the archive.
    archive.java_options()
    if not archive.file.exists():
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            check=True,
            timeout=600,
        )
    assert archive.file.exists(), "this Java cannot write an archive"


if __name__ == "__main__":
    create()
