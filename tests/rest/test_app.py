"""Bad requests of every kind: each is answered with 4xx and Flink's error body, and nothing else."""

from __future__ import annotations

import json
import random
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from firesteel.common.configuration import Configuration
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.dispatcher.job_handle import NoAnswerError
from firesteel.master.running_jobs import RunningJob
from firesteel.rest.calls import BODY_BYTES
from firesteel.rest.endpoints import ENDPOINTS
from firesteel.rest.server import RestServer
from tests.rest.client import Client, Reply

UNKNOWN = "0123456789abcdef" * 2
BAD_IDS = ["x", "0" * 31, "G" * 32, "%2e%2e", "a" * 5000, "0" * 32 + "%00", "-1", "%F0%9F%92%A3"]
BAD_BODIES: list[bytes] = [
    b"{",
    b"[]",
    b'"text"',
    b"null",
    b"\xff\xfe",
    b'{"triggerId": "../x"}',
    b'{"triggerId": 7}',
    b'{"target-directory": 1, "targetDirectory": 1, "savepoint-path": 1, "checkpointType": 1}',
    b"[" * 100_000,
    b'{"a":' * 50_000,
]


def is_refused(reply: Reply) -> bool:
    """True for a 4xx with Flink's body: ``errors`` alone, a list of text."""
    body = reply.json()
    return (
        400 <= reply.status < 500
        and list(body) == ["errors"]
        and bool(body["errors"])
        and all(isinstance(message, str) for message in body["errors"])
    )


def filled(path: str, value: str) -> str:
    return re.sub(r"{\w+}", value, path)


WITH_IDS = [endpoint for endpoint in ENDPOINTS if "{" in endpoint.path]


@pytest.mark.parametrize("bad", [UNKNOWN, *BAD_IDS], ids=lambda text: text[:12])
def test_unknown_and_malformed_ids(client: Client, bad: str) -> None:
    for endpoint in WITH_IDS:
        reply = client.call(endpoint.method, filled(endpoint.path, bad))
        assert is_refused(reply), (endpoint, reply)


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in ENDPOINTS if endpoint.method != "GET"],
    ids=lambda endpoint: f"{endpoint.method} {endpoint.path}",
)
def test_broken_bodies(client: Client, job: RunningJob, endpoint: Any) -> None:
    if endpoint.method == "PATCH" and endpoint.path == "/jobs/{jobid}":
        pytest.skip("it takes no body")
    path = filled(endpoint.path, str(job.job_id))
    for body in BAD_BODIES:
        if json_is_harmless(endpoint.path, body):
            continue
        reply = client.call(endpoint.method, path, body)
        assert is_refused(reply), (body[:50], reply)


def json_is_harmless(path: str, body: bytes) -> bool:
    """True if the fields of the body mean nothing to a call, as unknown fields do."""
    if path.endswith("/profiler"):
        return b"triggerId" in body or b"target-directory" in body
    return path.endswith("/resource-requirements") and b"triggerId" in body


@pytest.fixture(scope="module")
def guarded() -> Iterator[Client]:
    """A server with a token, as one that listens beyond loopback has."""
    settings = {"rest.port": "0", "firesteel.rest.token": "right"}
    with RestServer(Dispatcher(Configuration.from_dict(settings))) as server:
        yield Client(server.port)


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in ENDPOINTS if endpoint.changes],
    ids=lambda endpoint: f"{endpoint.method} {endpoint.path}",
)
def test_wrong_tokens_and_pages_of_other_servers(guarded: Client, endpoint: Any) -> None:
    path = filled(endpoint.path, UNKNOWN)
    given: list[str | None] = [None, "", "right", "Bearer", "Bearer wrong", "Basic right"]
    for token in [*given, "Bearer rightx", "Bearer " + "x" * 5000, "Bearer \xe9"]:
        headers = {} if token is None else {"authorization": token}
        reply = guarded.call(endpoint.method, path, b"{}", headers)
        assert (reply.status, is_refused(reply)) == (401, True), (token, reply)
    for elsewhere in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"referer": "http://localhost:1/"},
        {"sec-fetch-site": "cross-site"},
    ):
        headers = {"authorization": "Bearer right", **elsewhere}
        reply = guarded.call(endpoint.method, path, b"{}", headers)
        assert (reply.status, is_refused(reply)) == (403, True), (elsewhere, reply)
    reply = guarded.call(endpoint.method, path, b"{}", {"authorization": "Bearer right"})
    assert reply.status not in (401, 403), reply


def test_a_huge_body_is_refused(client: Client) -> None:
    path = f"/jobs/{UNKNOWN}/savepoints"
    assert client.call("POST", path, b"x" * (BODY_BYTES + 1)).status == 413


def test_a_huge_body_without_a_length_is_refused(client: Client) -> None:
    with socket.create_connection(("localhost", client.port), 30) as connection:
        head = f"POST /jobs/{UNKNOWN}/savepoints HTTP/1.1\r\nHost: localhost\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            for _ in range(BODY_BYTES // 0x10000 + 2):
                connection.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            # The server has answered and closed the connection.
            pass
        assert b" 413 " in connection.recv(100)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /jobs HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
    ],
    ids=["no path", "TLS", "long path", "long header", "negative", "length"],
)
def test_what_is_not_http_is_refused(client: Client, raw: bytes) -> None:
    with socket.create_connection(("localhost", client.port), 30) as connection:
        connection.sendall(raw)
        answer = connection.recv(100)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert client.get("/overview").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/v2/jobs",
        "/v1/v1/jobs",
        "/jobs/",
        "/jobs/../config",
        "/jobs/%2e%2e/config",
        "/jobs//overview",
        "/etc/passwd",
        "/taskmanagers/../../etc/passwd",
        "/taskmanagers/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/jobmanager/logs/..%2f..%2fetc%2fpasswd",
        "/jobmanager/logs/%2fetc%2fpasswd",
    ],
)
def test_wrong_paths(client: Client, path: str) -> None:
    assert is_refused(client.get(path))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_wrong_methods(client: Client, method: str) -> None:
    assert client.call(method, "/overview").status == 405


@pytest.mark.parametrize(
    "query",
    [
        {"get": "x" * 5000},
        {"get": "numRecordsIn", "agg": "median"},
        {"get": "numRecordsIn", "subtasks": "a-b"},
        {"get": "numRecordsIn", "subtasks": "0-9999999999999999"},
        {"maxExceptions": "-1"},
        {"maxExceptions": "many"},
        {"type": "everything"},
        {"mode": "explode"},
    ],
    ids=str,
)
def test_wrong_queries_do_no_harm(client: Client, job: RunningJob, query: dict[str, str]) -> None:
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET" and not endpoint.changes and endpoint.query:
            path = filled(endpoint.path.replace("{jobid}", str(job.job_id)), UNKNOWN)
            reply = client.call("GET", path, None, None, **query)
            assert reply.status == 200 or is_refused(reply), (path, reply)


def test_a_flood_of_random_requests(client: Client, job: RunningJob) -> None:
    """A thousand requests with parts of good ones in a wrong place."""
    chance = random.Random(7)
    job_id, vertex = str(job.job_id), job.description().vertices[0].id
    parts = ["v1", "jobs", job_id, "vertices", vertex, "subtasks", "0", "metrics", "checkpoints"]
    parts += ["details", "1", "..", "%00", "", "taskmanagers", "jobmanager", "logs", "config", "é"]
    safe = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]
    for _ in range(1000):
        path = "/" + "/".join(chance.choice(parts) for _ in range(chance.randint(1, 7)))
        body = chance.choice([None, *BAD_BODIES[:8]])
        method = chance.choice(safe) if body is None else "GET"
        reply = client.call(method, path.encode("ascii", "ignore").decode(), body)
        assert reply.status < 500, (method, path, reply)
    assert client.get(f"/jobs/{job_id}/status").json() == {"status": "RUNNING"}


def test_clients_that_go_away_in_the_middle_do_no_harm(client: Client, job: RunningJob) -> None:
    """A browser that is killed leaves requests without a reader, and half a request."""
    for part in (b"", b"GET /jobs/over", b"POST /jobs HTTP/1.1\r\nContent-Length: 100\r\n\r\nxx"):
        with socket.create_connection(("localhost", client.port), 30) as connection:
            connection.sendall(part)
    for _ in range(20):
        with socket.create_connection(("localhost", client.port), 30) as connection:
            connection.sendall(b"GET /jobs/overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.get(f"/jobs/{job.job_id}/status").json() == {"status": "RUNNING"}


def test_a_process_that_does_not_answer_blocks_no_other_call(
    client: Client, job: RunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many calls wait for a task manager that hangs, and all others are answered at once."""
    worker = client.get("/taskmanagers").json()["taskmanagers"][0]["id"]
    answer: Future[dict[str, str]] = Future()
    asked = threading.Semaphore(0)

    def ask(*_: object) -> Future[dict[str, str]]:
        asked.release()
        return answer

    monkeypatch.setattr(job, "ask_slot", ask)
    with ThreadPoolExecutor(20) as clients:
        waiting = [clients.submit(client.get, f"/taskmanagers/{worker}/log") for _ in range(20)]
        try:
            for _ in range(8):
                assert asked.acquire(timeout=60)
            for path in ("/overview", "/jobs/overview", f"/jobs/{job.job_id}", "/taskmanagers"):
                assert client.get(path).status == 200
            assert not any(one.done() for one in waiting)
        finally:
            answer.set_result({"log": "a line", "out": ""})
        assert {one.result().text for one in waiting} == {"a line"}


def test_a_job_master_that_does_not_answer_is_503(
    client: Client, job: RunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(*_: object) -> Future[None]:
        raise NoAnswerError("The job master of numbers does not answer.")

    for name in ("checkpoint_details", "ask_slot"):
        monkeypatch.setattr(job, name, hangs)
    worker = client.get("/taskmanagers").json()["taskmanagers"][0]["id"]
    for path in (f"/jobs/{job.job_id}/checkpoints/details/1", f"/taskmanagers/{worker}/log"):
        reply = client.get(path)
        assert (reply.status, reply.json()["errors"]) == (
            503,
            ["The job master of numbers does not answer."],
        )


def test_the_description_of_the_api_names_every_call(client: Client) -> None:
    document = client.get("/openapi.json").json()
    described = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert described == {(e.method, e.path) for e in ENDPOINTS} | {("GET", "/openapi.json")}
    own = [path for path, methods in document["paths"].items() if "x-firesteel" in str(methods)]
    assert "/jobs/{jobid}/backpressure" in own
    text = json.dumps(document)
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in document["components"]["schemas"]
