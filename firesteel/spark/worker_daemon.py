"""What Spark starts to fork its Python workers: PySpark's daemon, over connections that do not wait.

The JVM and a worker exchange several small messages for each task. TCP holds a small one back until the one before it
is acknowledged, and acknowledges up to 40 ms late: half of what a small epoch took.
"""

from __future__ import annotations

import socket

from pyspark import daemon

_run_task = daemon.worker


def run_task(sock: socket.socket, authenticated: bool) -> int:
    """PySpark calls this for each task of a worker."""
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_QUICKACK"):
            # Linux goes back to late acknowledgements as soon as the worker has answered.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    return _run_task(sock, authenticated)


if __name__ == "__main__":
    daemon.worker = run_task
    daemon.manager()
