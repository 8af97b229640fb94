"""Settings of a group of masters, and the way to its services."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.config import high_availability_options as options
from firesteel.config import rest_options
from firesteel.errors import ConfigurationError
from firesteel.filesystems.file_systems import (
    FileSystemOptions,
    is_s3,
    is_uri,
    qualify,
    without_password,
)
from firesteel.filesystems.home import home_directory
from firesteel.filesystems.settings import file_system_options
from firesteel.leader.documents import Documents
from firesteel.leader.file_leases import LeaseDirectory
from firesteel.leader.job_ledger import JobLedger
from firesteel.leader.leases import Leases, LeaseServices
from firesteel.leader.services import HighAvailability

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """Facts about a group. Processes of a master pass them on.

    Attributes:
        type: zookeeper or filesystem.
        group: The name of the group of masters.
        directory: The directory of the group, below high-availability.storageDir.
        key: The key of signatures.
    """

    type: str
    group: str
    directory: str
    key: bytes = field(repr=False)
    lease_duration: float = 8.0
    lease_renewal: float = 2.0
    quorum: str = ""
    root: str = "/firesteel"
    session_timeout: float = 60.0
    connection_timeout: float = 15.0
    tolerate_suspended: bool = False
    file_systems: FileSystemOptions = field(default_factory=FileSystemOptions)

    def open(self) -> HighAvailability:
        """Connect to the services of the group."""
        if self.type == "zookeeper":
            from firesteel.leader.zookeeper import ZooKeeper

            return ZooKeeper(
                self.quorum,
                f"{self.root}/{self.group}",
                self.directory,
                self.file_systems,
                session_seconds=self.session_timeout,
                call_seconds=self.connection_timeout,
                tolerates_suspension=self.tolerate_suspended,
            )
        return LeaseServices(self._leases(), self.lease_duration, self.lease_renewal)

    def _leases(self) -> Leases:
        if is_s3(self.directory):
            from firesteel.leader.object_leases import ObjectLeases

            return ObjectLeases(self.directory, self.file_systems)
        return LeaseDirectory(Path(self.directory))

    def documents(self, services: HighAvailability, term: int) -> Documents:
        return Documents(services.store(term), self.group, self.key)

    def ledger(self, services: HighAvailability, term: int, job_id: str) -> JobLedger:
        return JobLedger(self.documents(services, term), services.fence(term), job_id)


def leader_settings(configuration: Configuration) -> LeaderSettings | None:
    """Read the settings. Returns None if there is one master only.

    Raises:
        ConfigurationError: A setting is missing, or does not fit.
    """
    kind = configuration.get(options.HA_TYPE)
    if kind == "none":
        return None
    group = configuration.get(options.HA_CLUSTER_ID).strip("/")
    if not _NAME.fullmatch(group):
        raise ConfigurationError(
            f"{options.HA_CLUSTER_ID.key}: expected letters, digits, '.', '_' and '-', got "
            f"{group!r}.",
            key=options.HA_CLUSTER_ID.key,
        )
    directory = configuration.get(options.HA_STORAGE_DIR)
    if directory is None:
        raise ConfigurationError(
            f"{options.HA_TYPE.key} is {kind}, which needs {options.HA_STORAGE_DIR.key}: a "
            "directory that all masters and tasks share.",
            key=options.HA_STORAGE_DIR.key,
        )
    directory = qualify(directory)
    settings = LeaderSettings(
        kind,
        group,
        f"{directory.rstrip('/')}/{group}",
        _key(configuration, group),
        lease_duration=configuration.get(options.HA_LEASE_DURATION).total_seconds(),
        lease_renewal=configuration.get(options.HA_LEASE_RENEWAL).total_seconds(),
        root="/" + configuration.get(options.ZOOKEEPER_ROOT).strip("/"),
        session_timeout=configuration.get(options.ZOOKEEPER_SESSION_TIMEOUT).total_seconds(),
        connection_timeout=configuration.get(options.ZOOKEEPER_CONNECTION_TIMEOUT).total_seconds(),
        tolerate_suspended=configuration.get(options.ZOOKEEPER_TOLERATE_SUSPENDED),
        file_systems=file_system_options(configuration),
    )
    if kind == "zookeeper":
        quorum = configuration.get(options.ZOOKEEPER_QUORUM)
        if not quorum:
            raise ConfigurationError(
                f"{options.HA_TYPE.key} is zookeeper, which needs {options.ZOOKEEPER_QUORUM.key}: "
                "host:port of its servers, with commas.",
                key=options.ZOOKEEPER_QUORUM.key,
            )
        return replace(settings, quorum=quorum)
    _check_leases(settings)
    return settings


def _check_leases(settings: LeaderSettings) -> None:
    if is_uri(settings.directory) and not is_s3(settings.directory):
        raise ConfigurationError(
            f"{options.HA_TYPE.key} is filesystem, which needs a local or mounted directory, or "
            f"s3://, but {options.HA_STORAGE_DIR.key} is {without_password(settings.directory)}: "
            "other object stores have no conditional writes here. Use zookeeper with this directory.",
            key=options.HA_STORAGE_DIR.key,
        )
    if not 0 < settings.lease_renewal <= settings.lease_duration / 2:
        raise ConfigurationError(
            f"{options.HA_LEASE_RENEWAL.key} must be at most half of "
            f"{options.HA_LEASE_DURATION.key}, got {settings.lease_renewal:g} s and "
            f"{settings.lease_duration:g} s.",
            key=options.HA_LEASE_RENEWAL.key,
        )


def _key(configuration: Configuration, group: str) -> bytes:
    """Return the key of signatures.

    It comes from the token of REST, which all masters have. Without one, all masters are processes
    of one user on one machine, and share a file that only this user can read.
    """
    token = configuration.get(rest_options.REST_TOKEN)
    if token:
        return hashlib.sha256(f"firesteel masters {group} {token}".encode()).digest()
    path = home_directory() / "masters" / f"{group}.key"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(32))
    try:
        # The first master wins. The file appears as a whole.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_bytes()


def settings_to_json(settings: LeaderSettings, term: int) -> dict[str, Any]:
    """Return the settings with a term as JSON, for the process of a job master."""
    return {**asdict(settings), "key": settings.key.hex(), "term": term}


def settings_from_json(document: dict[str, Any]) -> tuple[LeaderSettings, int]:
    rest = {key: value for key, value in document.items() if key not in ("key", "term")}
    rest["file_systems"] = FileSystemOptions(**rest["file_systems"])
    return LeaderSettings(key=bytes.fromhex(document["key"]), **rest), int(document["term"])
