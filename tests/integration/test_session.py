"""The Spark session that Firesteel starts."""

from __future__ import annotations

import os
import socket

from firesteel.datastream import StreamExecutionEnvironment


def delaying_connections(_: int) -> list[int]:
    """In a worker of Spark: whether its connections hold small messages back, 0 or 1 each."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            connection = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        with connection:
            if connection.family == socket.AF_INET:
                delays = not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                found.append(int(delays))
    return found


def test_messages_between_spark_and_its_python_workers_do_not_wait_for_each_other(
    env: StreamExecutionEnvironment,
) -> None:
    numbers = env.get_spark_session().sparkContext.parallelize([0], 1)
    connections = numbers.flatMap(delaying_connections).collect()
    assert connections
    assert not any(connections)
