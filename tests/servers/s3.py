"""An S3 server on this machine (moto), in its own process."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

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
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
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
