"""Settings of groups of masters for tests."""

from __future__ import annotations

import uuid
from pathlib import Path

from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.leader.settings import LeaderSettings

KEY = b"a key of the test"


def file_settings(directory: Path, duration: float = 5.0) -> LeaderSettings:
    """A group in a directory. A busy machine renews the lease in time all the same."""
    return LeaderSettings(
        "filesystem",
        "group",
        str(directory / "storage" / "group"),
        KEY,
        lease_duration=duration,
        lease_renewal=duration / 10,
    )


def zookeeper_settings(quorum: str, directory: Path, session: float = 6.0) -> LeaderSettings:
    """A new group in ZooKeeper."""
    group = f"group-{uuid.uuid4().hex}"
    return LeaderSettings(
        "zookeeper",
        group,
        str(directory / "storage" / group),
        KEY,
        quorum=quorum,
        session_timeout=session,
        connection_timeout=20.0,
    )


def s3_settings(options: FileSystemOptions, duration: float = 5.0) -> LeaderSettings:
    """A new group in a bucket."""
    group = f"group-{uuid.uuid4().hex}"
    return LeaderSettings(
        "filesystem",
        group,
        f"s3://checkpoints/{group}",
        KEY,
        lease_duration=duration,
        lease_renewal=duration / 10,
        file_systems=options,
    )
