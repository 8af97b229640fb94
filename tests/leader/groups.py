"""Settings of groups of masters for tests."""

from __future__ import annotations

import uuid
from pathlib import Path

from firesteel.leader.settings import LeaderSettings

KEY = b"a key of the test"


def file_settings(directory: Path, duration: float = 1.0) -> LeaderSettings:
    """A group in a directory."""
    return LeaderSettings(
        "filesystem",
        "group",
        str(directory / "storage" / "group"),
        KEY,
        lease_duration=duration,
        lease_renewal=duration / 5,
    )


def zookeeper_settings(quorum: str, directory: Path) -> LeaderSettings:
    """A new group in ZooKeeper."""
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
