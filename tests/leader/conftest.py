"""Groups of masters for tests: in a directory, in S3, and in a real ensemble of ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.leader.settings import LeaderSettings
from tests.leader.groups import file_settings, s3_settings, zookeeper_settings


@pytest.fixture(params=["filesystem", "s3", "zookeeper"])
def group_settings(request: pytest.FixtureRequest, tmp_path: Path) -> LeaderSettings:
    """The settings of a new group, of each type."""
    if request.param == "filesystem":
        return file_settings(tmp_path)
    if request.param == "s3":
        return s3_settings(request.getfixturevalue("s3"))
    return zookeeper_settings(request.getfixturevalue("ensemble").quorum, tmp_path)
