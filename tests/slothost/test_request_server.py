"""The server for requests of tasks, over Unix sockets and TCP."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

from firesteel.slothost.request_server import RequestServer
from tests.waiting import wait_until

TOKEN = "secret"


def _answer(request: Any) -> Any:
    if request == "broken":
        raise ValueError("no answer")
    return ("answer", request)


@pytest.fixture(params=["unix", "tcp"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RequestServer]:
    address = str(tmp_path / "s") if request.param == "unix" else ("127.0.0.1", 0)
    server = RequestServer("test service", address, TOKEN, _answer)
    yield server
    server.close()


def test_connections_are_answered_side_by_side(server: RequestServer) -> None:
    with (
        Client(server.address, authkey=TOKEN.encode()) as first,
        Client(server.address, authkey=TOKEN.encode()) as second,
    ):
        for client, request in ((second, 1), (first, 2), (second, 3)):
            client.send(request)
            assert client.recv() == ("answer", request)


def test_a_client_without_the_token_is_turned_away(server: RequestServer) -> None:
    with pytest.raises(AuthenticationError):
        Client(server.address, authkey=b"guessed")
    with Client(server.address, authkey=TOKEN.encode()) as client:
        client.send(1)
        assert client.recv() == ("answer", 1)


def test_an_error_is_logged_and_ends_its_connection_only(
    server: RequestServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "firesteel"):
        with Client(server.address, authkey=TOKEN.encode()) as client:
            client.send("broken")
            with pytest.raises(EOFError):
                client.recv()
        wait_until(lambda: "the test service could not answer a request" in caplog.text)
    with Client(server.address, authkey=TOKEN.encode()) as client:
        client.send(1)
        assert client.recv() == ("answer", 1)


def test_a_closed_server_ends_its_thread_and_logs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = RequestServer("short service", str(tmp_path / "s"), TOKEN, _answer)
    server.close()
    name = "firesteel-short-service"
    wait_until(lambda: name not in {thread.name for thread in threading.enumerate()})
    assert caplog.text == ""
