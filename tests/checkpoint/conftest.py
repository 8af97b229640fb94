"""Storages to test on: a local directory, and an object store that a real S3 server offers."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.filesystems.file_systems import FileSystemOptions

_START_SECONDS = 60


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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


@pytest.fixture(scope="session")
def s3() -> Iterator[FileSystemOptions]:
    """How to reach a server of our own, with a bucket ``checkpoints``."""
    port = _free_port()
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


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty storage; each test runs on both kinds."""
    if request.param == "local":
        return open_storage(str(tmp_path / "checkpoints"))
    options = request.getfixturevalue("s3")
    return open_storage(f"s3://checkpoints/{uuid.uuid4().hex}", options)


@pytest.fixture
def local(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "checkpoints"))
