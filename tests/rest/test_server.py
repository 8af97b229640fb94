"""The server: its port, its address, TLS and the files of the dashboard."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.client.remote_job import client_at
from firesteel.client.rest_client import UnreachableError
from firesteel.common.configuration import Configuration
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.errors import ConfigurationError
from firesteel.rest import app as apps
from firesteel.rest import server as servers
from firesteel.rest.server import RestServer, RestServerError, ports
from tests.rest.client import Client


def dispatcher(**settings: str) -> Dispatcher:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    return Dispatcher(Configuration.from_dict({"rest.port": "0", **named}))


@pytest.mark.parametrize(
    "begun", [b"", b"GET /over", b"GET /config HTTP/1.1\r\nHost: localhost\r\n\r\nGET /over"]
)
def test_a_connection_without_a_whole_request_is_closed(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    """Otherwise idle connections would use up all that the server accepts."""
    monkeypatch.setattr(servers, "_REQUEST_SECONDS", 0.3)
    with (
        RestServer(dispatcher()) as server,
        socket.create_connection(("localhost", server.port), 30) as connection,
    ):
        connection.sendall(begun)
        while connection.recv(1000):
            pass


def test_a_connection_that_is_used_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_REQUEST_SECONDS", 0.2)
    with RestServer(dispatcher()) as server:
        connection = http.client.HTTPConnection("localhost", server.port, timeout=30)
        for _ in range(4):
            connection.request("GET", "/config")
            assert connection.getresponse().read()
            used = connection.sock
            # Idle between two requests, for less time than a connection is kept.
            time.sleep(0.15)
            assert connection.sock is used
        connection.close()


def test_a_body_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps, "_BODY_SECONDS", 0.2)
    with (
        RestServer(dispatcher()) as server,
        socket.create_connection(("localhost", server.port), 30) as connection,
    ):
        connection.sendall(b"GET /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
        assert connection.recv(12) == b"HTTP/1.1 408"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [8081]),
        ({"rest.port": "9000"}, [9000]),
        ({"rest.bind-port": "8090"}, [8090]),
        ({"rest.bind-port": "8090-8092,9000"}, [8090, 8091, 8092, 9000]),
    ],
)
def test_the_ports_to_try(settings: dict[str, str], expected: list[int]) -> None:
    assert list(ports(Configuration.from_dict(settings))) == expected


@pytest.mark.parametrize("text", ["many", "9-8", "70000", "-1", "1-2-3"])
def test_a_wrong_range_of_ports_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"rest\.bind-port: expected a port"):
        list(ports(Configuration.from_dict({"rest.bind-port": text})))


def test_the_next_port_of_a_range_is_taken_if_one_is_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RestServerError, match=f"port {port}.*Set rest.port"):
            RestServer(dispatcher(rest__port=str(port), rest__bind_address="127.0.0.1"))
        found = dispatcher(rest__bind_port=f"{port},0", rest__bind_address="127.0.0.1")
        with RestServer(found) as server:
            assert server.port != port
            assert Client(server.port).get("/config").status == 200


def test_a_reply_does_not_wait_for_the_acknowledgment_of_its_header() -> None:
    """The body follows at once (TCP_NODELAY), not after the 40 ms of a delayed acknowledgment."""
    with RestServer(dispatcher()) as server:
        connection = http.client.HTTPConnection("localhost", server.port, timeout=60)
        seconds = []
        for _ in range(60):
            began = time.monotonic()
            connection.request("GET", "/config")
            connection.getresponse().read()
            seconds.append(time.monotonic() - began)
        connection.close()
    # The first acknowledgments of a connection are not delayed.
    assert min(seconds[30:]) < 0.03


def address_of_this_machine() -> str:
    """Return the address that other machines would use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no network")
        return str(probe.getsockname()[0])


def test_it_listens_on_the_loopback_address_only() -> None:
    with RestServer(dispatcher()) as server:
        assert server.url == f"http://localhost:{server.port}"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address_of_this_machine(), server.port), 5)


def test_beyond_loopback_a_token_is_needed() -> None:
    with pytest.raises(ConfigurationError, match=r"firesteel\.rest\.token"):
        RestServer(dispatcher(rest__bind_address="0.0.0.0"))
    settings = dispatcher(rest__bind_address="0.0.0.0", firesteel__rest__token="s3cret")
    with RestServer(settings) as server:
        client = Client(server.port)
        path = f"/jobs/{'0' * 32}"
        assert client.get("/overview").status == 200
        assert client.call("PATCH", path).status == 401
        assert client.call("PATCH", path, headers={"authorization": "Bearer s3cret"}).status == 404


def test_tls(tmp_path: Path) -> None:
    certificate = tmp_path / "server.pem"
    made = subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            "key.pem",
            "-out",
            "server.pem",
        ],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("openssl cannot make a certificate")
    settings = dispatcher(
        security__ssl__rest__enabled="true",
        firesteel__rest__ssl__certificate=str(certificate),
        firesteel__rest__ssl__key=str(tmp_path / "key.pem"),
    )
    with RestServer(settings) as server:
        assert server.url.startswith("https://localhost:")
        trust = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection(
            "localhost", server.port, context=trust, timeout=30
        )
        connection.request("GET", "/config")
        assert connection.getresponse().status == 200
        connection.close()
        # The command line trusts the certificate of its settings, and no other one.
        assert client_at(server.url, settings.configuration).get("/overview")["jobs-running"] == 0
        with pytest.raises(UnreachableError, match="certificate"):
            client_at(server.url, Configuration()).get("/overview")


def test_tls_without_a_certificate_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="names no certificate"):
        RestServer(dispatcher(security__ssl__rest__enabled="true"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("files")
    (tmp_path / "secret.txt").write_text("secret")
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<title>dashboard</title>")
    (static / "assets" / "app.js").write_text("run()")
    (static / "link.txt").symlink_to(tmp_path / "secret.txt")
    return static


@pytest.fixture(scope="module")
def served(files: Path) -> Iterator[Client]:
    with RestServer(dispatcher(), dashboard=files) as server:
        yield Client(server.port)


def test_the_dashboard_is_served(served: Client) -> None:
    assert "dashboard" in served.get("/").text
    script = served.get("/assets/app.js")
    assert "javascript" in script.headers["content-type"]
    assert served.get("/overview").headers["content-type"] == "application/json"
    missing = served.get("/assets/other.js")
    assert missing.status == 404
    assert missing.json() == {"errors": ["Not found: /assets/other.js"]}


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/..\\secret.txt",
        "//etc/passwd",
        "/%00",
        "/link.txt",
        "/assets",
    ],
)
def test_no_path_escapes_the_dashboard(served: Client, path: str) -> None:
    reply = served.get(path)
    assert 400 <= reply.status < 500
    assert "secret" not in reply.text.replace("secret.txt", "")


def test_no_page_of_a_different_server_gets_access() -> None:
    with RestServer(dispatcher()) as server:
        client = Client(server.port, {"origin": "http://evil.example"})
        assert not any(
            name.startswith("access-control") for name in client.get("/overview").headers
        )
        assert client.call("OPTIONS", "/jobs").status == 405
