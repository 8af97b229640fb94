"""Groups of masters for tests: in a directory, and in a real ensemble of ZooKeeper."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.leader.settings import LeaderSettings
from tests.servers.zookeeper import Ensemble, running_ensemble

KEY = b"a key of the test"


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with running_ensemble(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def file_settings(tmp_path: Path) -> LeaderSettings:
    return LeaderSettings(
        "filesystem",
        "group",
        str(tmp_path / "storage" / "group"),
        KEY,
        lease_duration=1.0,
        lease_renewal=0.2,
    )


@pytest.fixture(params=["filesystem", "zookeeper"])
def group_settings(
    request: pytest.FixtureRequest, tmp_path: Path, file_settings: LeaderSettings
) -> LeaderSettings:
    """The settings of a new group, of each type."""
    if request.param == "filesystem":
        return file_settings
    return zookeeper_settings(request.getfixturevalue("ensemble").quorum, tmp_path)


def zookeeper_settings(quorum: str, directory: Path) -> LeaderSettings:
    group = f"group-{uuid.uuid4().hex}"
    return LeaderSettings(
        "zookeeper",
        group,
        str(directory / "storage" / group),
        KEY,
        quorum=quorum,
        session_timeout=2.0,
        connection_timeout=20.0,
    )
