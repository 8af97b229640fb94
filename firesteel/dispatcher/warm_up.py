"""The process that warms Spark up: runs a small job, so that the first job of a user starts fast.

A new JVM has neither loaded nor compiled the classes of streaming queries. That takes longer than
everything else when a standby takes over a job.
"""

from __future__ import annotations

import os
import sys

from firesteel.common.configuration import Configuration
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.spark.application import attach

_RECORDS = 1000


def main(arguments: list[str]) -> None:
    """Run the job. The argument is the name of the Python workers."""
    [workers] = arguments
    os.environ["PYSPARK_PYTHON"] = sys.executable
    attach(workers)
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(1)
    numbers = env.from_sequence(1, _RECORDS).key_by(lambda number: number % 2)
    numbers.filter(lambda _: False).print()
    env.execute("warm-up")


if __name__ == "__main__":
    main(sys.argv[1:])
