"""Endpoints of a session: bad requests are answered with 4xx, and only the token lets code in."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.dispatcher.programs import Programs
from firesteel.dispatcher.slot_pool import NoResourceAvailableError
from firesteel.processes import memory_of
from firesteel.protocol.submission import read_manifest
from firesteel.rest.server import RestServer
from firesteel.rest.submission import session_endpoints
from tests.rest.client import Client
from tests.rest.jobs import ended, start
from tests.rest.test_app import BAD_BODIES, BAD_IDS, UNKNOWN, is_refused
from tests.waiting import wait_until

TOKEN = "right"
GOOD = {"authorization": f"Bearer {TOKEN}"}
WRONG = [
    {},
    {"authorization": TOKEN},
    {"authorization": "Bearer wrong"},
    {"authorization": "Bearer "},
    {"authorization": f"Basic {TOKEN}"},
    {"authorization": f"Bearer {TOKEN}x"},
]


class Session(Dispatcher):
    """Reads submissions, and has no slots for them."""

    programs: Programs

    def __init__(self, directory: Path) -> None:
        super().__init__(Configuration.from_dict({"rest.port": "0"}))
        self.stop_requested = threading.Event()
        self.url = "http://localhost:1"
        self.programs = Programs(directory / "programs")
        self._directory = directory

    def new_file(self) -> Path:
        return self._directory / f"{JobID.generate()}.zip"

    def received(self) -> list[Path]:
        return list(self._directory.glob("*.zip"))

    def submit(self, submission: Path) -> Any:
        try:
            if submission.read_bytes() != b"a job":
                read_manifest(submission)
        finally:
            submission.unlink()
        raise NoResourceAvailableError(9, 1, 4, "it would never get that many")

    def results(self, job: JobHandle, node: int) -> None:
        """No job of these tests collects records."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("received"))


@pytest.fixture(scope="module")
def client(session: Session) -> Iterator[Client]:
    with RestServer(session, more=session_endpoints(session, TOKEN)) as server:  # type: ignore[arg-type]
        yield Client(server.port)


ENDPOINTS = session_endpoints(None, TOKEN)  # type: ignore[arg-type]
CHANGES = [endpoint for endpoint in ENDPOINTS if endpoint.changes]


def filled(path: str, value: str = UNKNOWN) -> str:
    return re.sub(r"{\w+}", value, path)


def test_endpoints_that_need_the_token() -> None:
    assert {(endpoint.method, endpoint.path) for endpoint in CHANGES} == {
        ("POST", "/firesteel/jobs"),
        ("POST", "/jars/upload"),
        ("POST", "/jars/{jarid}/run"),
        ("DELETE", "/jars/{jarid}"),
        ("DELETE", "/cluster"),
        ("GET", "/firesteel/jobs/{jobid}/results/{node}"),
        ("DELETE", "/firesteel/jobs/{jobid}/results/{node}"),
    }


@pytest.mark.parametrize("endpoint", CHANGES, ids=lambda one: f"{one.method} {one.path}")
def test_wrong_tokens_and_pages_of_other_servers(
    client: Client, session: Session, endpoint: Any
) -> None:
    path = filled(endpoint.path)
    for headers in WRONG:
        assert client.call(endpoint.method, path, b"a job", headers).status == 401
    elsewhere = {**GOOD, "origin": "http://evil.example"}
    assert client.call(endpoint.method, path, b"a job", elsewhere).status == 403
    assert not session.stop_requested.is_set()


def test_huge_bodies_with_wrong_tokens_are_not_kept(client: Client, session: Session) -> None:
    """The answer comes before the body, and neither memory nor the disk take any of it."""
    head = (
        "POST /firesteel/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n"
        f"Content-Length: {1 << 29}\r\n\r\n"
    )
    before = memory_of(os.getpid()).resident
    with ExitStack() as connections:
        for _ in range(8):
            address = ("localhost", client.port)
            one = connections.enter_context(socket.create_connection(address, 30))
            one.sendall(head.encode())
            assert one.recv(12) == b"HTTP/1.1 401"
            # A client that sends on is not kept from it, and its body is dropped.
            for _ in range(32):
                one.sendall(bytes(1 << 20))
        assert client.get("/overview").status == 200
        assert memory_of(os.getpid()).resident - before < 64 << 20
    assert not session.received()


def test_a_body_that_breaks_off_leaves_no_file(client: Client, session: Session) -> None:
    head = (
        "POST /firesteel/jobs HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: 1000000\r\n\r\n"
    )
    with socket.create_connection(("localhost", client.port), 30) as connection:
        connection.sendall(head.encode() + bytes(1000))
        wait_until(session.received)
    wait_until(lambda: not session.received())


@pytest.mark.parametrize("bad", [UNKNOWN, *BAD_IDS], ids=lambda text: text[:12])
def test_unknown_and_malformed_ids(client: Client, bad: str) -> None:
    for endpoint in ENDPOINTS:
        if "{" in endpoint.path:
            reply = client.call(endpoint.method, filled(endpoint.path, bad), None, GOOD)
            assert is_refused(reply), (endpoint, reply)


def test_broken_submissions(client: Client) -> None:
    for body in (*BAD_BODIES, b"", b"PK\x05\x06" + bytes(18)):
        reply = client.call("POST", "/firesteel/jobs", body, GOOD)
        assert is_refused(reply), (body[:50], reply)


def test_a_session_without_enough_slots_says_so_with_numbers(client: Client) -> None:
    reply = client.call("POST", "/firesteel/jobs", b"a job", GOOD)
    assert reply.status == 503
    assert "The job needs 9 slots. The session has 4" in reply.json()["errors"][0]


def test_a_job_that_collects_nothing_has_no_records(client: Client, session: Session) -> None:
    job = start(session, lambda env: env.from_collection([1]).print())
    with ended(job):
        for method in ("GET", "DELETE"):
            path = f"/firesteel/jobs/{job.job_id}/results/1"
            assert is_refused(client.call(method, path, None, GOOD))


def test_a_session_is_stopped_with_the_token(client: Client, session: Session) -> None:
    assert client.call("DELETE", "/cluster", None, GOOD).status == 200
    assert session.stop_requested.is_set()
    session.stop_requested.clear()


def form(name: str, content: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of an upload, as browsers and curl send them."""
    head = f'Content-Disposition: form-data; name="jarfile"; filename="{name}"'
    body = f"--b0und\r\n{head}\r\nContent-Type: text/x-python\r\n\r\n".encode()
    headers = {**GOOD, "content-type": "multipart/form-data; boundary=b0und"}
    return body + content + b"\r\n--b0und--\r\n", headers


def test_a_program_is_uploaded_run_and_deleted(client: Client, session: Session) -> None:
    source = b"print('a job')\r\n\r\n# the end"
    uploaded = client.call("POST", "/jars/upload", *form("job.py", source)).json()
    assert uploaded["status"] == "success"
    (listed,) = client.get("/jars").json()["files"]
    assert listed["name"] == "job.py"
    assert uploaded["filename"].endswith("/" + listed["id"])
    assert Path(uploaded["filename"]).read_bytes() == source

    body = {
        "parallelism": 3,
        "savepointPath": "/savepoints/1",
        "claimMode": "CLAIM",
        "allowNonRestoredState": True,
        "programArgsList": ["--input", "/data"],
        "flinkConfiguration": {"pipeline.name": "uploaded"},
    }
    with mock.patch.object(session.programs, "run", return_value="b" * 32) as run:
        reply = client.call("POST", f"/jars/{listed['id']}/run", body, GOOD)
    assert (reply.status, reply.json()) == (200, {"jobid": "b" * 32})
    _, address, options, arguments = run.call_args.args
    assert address == session.url
    options_given = "-p 3 -s /savepoints/1 -cm claim -n -Dpipeline.name=uploaded"
    assert " ".join(options) == options_given
    assert arguments == ["--input", "/data"]

    # This program has no job.
    failed = client.call("POST", f"/jars/{listed['id']}/run", {}, GOOD)
    assert is_refused(failed)
    assert client.call("DELETE", f"/jars/{listed['id']}", None, GOOD).status == 200
    assert client.get("/jars").json()["files"] == []


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"print()", GOOD),
        (b"print()", {**GOOD, "content-type": "multipart/form-data"}),
        (b"print()", {**GOOD, "content-type": "multipart/form-data; boundary=x"}),
        (b"--x\r\n\r\n--x--", {**GOOD, "content-type": "multipart/form-data; boundary=x"}),
        form("job.jar", b""),
        form("../job.py", b""),
        form("job.py", b"def"),
    ],
    ids=["no form", "no boundary", "no part", "no file", "a jar", "a path", "no program"],
)
def test_wrong_uploads(client: Client, body: bytes, headers: dict[str, str]) -> None:
    assert is_refused(client.call("POST", "/jars/upload", body, headers))
    assert client.get("/jars").json()["files"] == []


@pytest.mark.parametrize(
    "body",
    [{"parallelism": "2"}, {"programArgsList": [1]}, {"flinkConfiguration": []}],
    ids=str,
)
def test_wrong_runs(client: Client, session: Session, body: dict[str, Any]) -> None:
    program = session.programs.add("job.py", b"pass")
    assert is_refused(client.call("POST", f"/jars/{program.id}/run", body, GOOD))
    session.programs.delete(program)
