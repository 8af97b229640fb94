"""Storages for tests: a local directory, and an object store on a real S3 server."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from firesteel.checkpoint.storage.storage import Storage, open_storage


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
