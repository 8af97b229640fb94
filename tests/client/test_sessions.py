from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from firesteel.client.rest_client import RestClient, UnreachableError, url_of
from firesteel.client.sessions import KnownSession, known_sessions, remember, session_at
from firesteel.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTEEL_HOME", str(tmp_path))


def session(port: int, pid: int | None = None) -> KnownSession:
    return KnownSession(
        f"http://localhost:{port}", pid or os.getpid(), "secret", 0, socket.gethostname()
    )


def test_only_the_user_can_read_the_token() -> None:
    path = remember(session(1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_session_is_found_by_any_name_of_this_machine() -> None:
    remember(session(4711))
    for name in ("localhost", "127.0.0.1", socket.gethostname()):
        found = session_at(f"http://{name}:4711")
        assert found is not None
        assert found.token == "secret"
    assert session_at("http://localhost:4712") is None


def test_a_session_that_was_killed_is_forgotten() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    path = remember(session(1, pid=process.pid))
    assert known_sessions() == []
    assert not path.exists()


@pytest.mark.parametrize("address", ["localhost", "localhost:x", "ftp://host:1", ":8081", ""])
def test_an_address_has_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        url_of(address)


def test_addresses_are_urls_or_pairs() -> None:
    assert url_of("host:8081") == "http://host:8081"
    assert url_of("https://host:8081/") == "https://host:8081"


def test_an_address_without_a_server_says_how_to_start_one() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UnreachableError, match="firesteel session start"):
        RestClient(f"http://127.0.0.1:{port}").get("/overview")
