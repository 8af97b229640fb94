"""The daemon that forks Spark's Python workers: PySpark's, with TCP sockets that send at once.

The JVM and a worker exchange several small messages per task. TCP delays a small message until the
previous one is acknowledged, and delays acknowledgments by up to 40 ms. This took half the time of
a small epoch.
"""

from __future__ import annotations

import socket

from pyspark import daemon

_run_task = daemon.worker


def run_task(sock: socket.socket, authenticated: bool) -> int:
    """Set the socket options, then run PySpark's worker. PySpark calls this once per task."""
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_QUICKACK"):
            # Linux delays acknowledgments again after each answer, so this is set per task.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    return _run_task(sock, authenticated)


if __name__ == "__main__":
    daemon.worker = run_task
    daemon.manager()
