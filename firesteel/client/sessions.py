"""Sessions that this user has started on this machine: files with their address and token."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from firesteel.filesystems.home import home_directory
from firesteel.processes import is_alive


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session. ``token`` lets its owner submit jobs. ``started`` is in epoch milliseconds."""

    url: str
    process_id: int
    token: str
    started: int
    host: str
    log: str | None = None

    @property
    def is_alive(self) -> bool:
        return self.host != socket.gethostname() or is_alive(self.process_id)


def remember(session: KnownSession) -> Path:
    """Write the file of a session, for this user only."""
    directory = sessions_directory()
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    path = directory / f"{session.host}-{session.process_id}.json"
    unfinished = path.with_suffix(".new")
    descriptor = os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(session), file)
    unfinished.rename(path)
    return path


def known_sessions() -> list[KnownSession]:
    """Return the sessions that run, the newest first. Files of others are removed."""
    found = []
    for path in sessions_directory().glob("*.json"):
        try:
            session = KnownSession(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if session.is_alive:
            found.append(session)
        else:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda session: session.started, reverse=True)


def session_at(url: str) -> KnownSession | None:
    """Return the session of this user with an address. Names of the own machine are the same."""
    wanted = _authority(url)
    return next((one for one in known_sessions() if _authority(one.url) == wanted), None)


def sessions_directory() -> Path:
    return home_directory() / "sessions"


def _authority(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    name = (parts.hostname or "").lower()
    own = {"localhost", "127.0.0.1", "::1", socket.gethostname().lower()}
    return "localhost" if name in own else name, parts.port
