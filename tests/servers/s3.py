"""An S3 server on this machine (moto), in its own process.

Moto checks the condition of a write before it writes, and a different request may come in between.
So this server handles one request at a time.
"""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyarrow import fs

from firesteel.filesystems.file_systems import FileSystemOptions
from tests.servers.ports import free_ports

_START_SECONDS = 60


def _wait_until_it_answers(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert server.poll() is None, "the S3 server has ended"
            assert time.monotonic() < deadline, "the S3 server does not answer"
            time.sleep(0.05)
        else:
            return


@contextmanager
def s3_server() -> Iterator[FileSystemOptions]:
    """Run a server with a bucket ``checkpoints``, and yield the settings to reach it."""
    [port] = free_ports(1)
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until_it_answers(server, port)
        options = FileSystemOptions(
            s3_access_key="test",
            s3_secret_key="secret",
            s3_endpoint=f"http://127.0.0.1:{port}",
            s3_region="us-east-1",
        )
        fs.S3FileSystem(
            access_key="test",
            secret_key="secret",
            endpoint_override=options.s3_endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
        ).create_dir("checkpoints")
        yield options
    finally:
        server.terminate()
        server.wait(timeout=30)


def one_at_a_time(application: Callable[..., Iterable[bytes]]) -> Callable[..., list[bytes]]:
    """Return a WSGI application that reads a request, and then handles it alone."""
    lock = threading.Lock()

    def handle(environment: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        length = environment.get("CONTENT_LENGTH")
        if length:
            # A frozen client must not keep the lock.
            environment["wsgi.input"] = io.BytesIO(environment["wsgi.input"].read(int(length)))
        with lock:
            return list(application(environment, start_response))

    return handle


def main(port: int) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    application = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", port, application, threaded=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
