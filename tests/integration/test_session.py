"""The Spark session that Firesteel starts."""

from __future__ import annotations

import os
import socket
import sys

from firesteel.datastream import StreamExecutionEnvironment


def describe_worker(_: int) -> list[tuple[int, bool]]:
    """In a worker of Spark: the number of its TCP connections, and if Firesteel was loaded early."""
    connections = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            connection = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        with connection:
            connections += connection.family in (socket.AF_INET, socket.AF_INET6)
    return [(connections, "firesteel.spark.live_task" in sys.modules)]


def test_spark_reaches_its_workers_without_tcp_and_forks_them_with_firesteel_loaded(
    env: StreamExecutionEnvironment,
) -> None:
    numbers = env.get_spark_session().sparkContext.parallelize([0], 1)
    assert numbers.flatMap(describe_worker).collect() == [(0, True)]
