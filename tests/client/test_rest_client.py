"""Calls to the leader among several masters."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from firesteel.client import rest_client
from firesteel.client.masters import Masters
from firesteel.client.remote_job import RemoteJob
from firesteel.client.rest_client import RestClient, RestClientError, UnreachableError
from firesteel.common.job_id import JobID
from tests.waiting import wait_until


class Master:
    """A server that leads, or redirects, or knows no leader."""

    def __init__(self) -> None:
        self.leader: str | None = None
        self.leads = False
        self.refused = 0
        self.answer: dict[str, object] = {}
        # A frozen master accepts connections and does not answer.
        self.is_frozen = False
        self.thawed = threading.Event()
        self.received: list[tuple[str, str, bytes, str | None]] = []
        master = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if master.is_frozen:
                    master.thawed.wait(60)
                    return
                if master.leads:
                    token = self.headers.get("Authorization")
                    master.received.append((self.command, self.path, body, token))
                    self._send(200, {"leader": master.url, **master.answer})
                elif master.leader is not None:
                    self._send(307, {}, ("Location", f"{master.leader}{self.path}"))
                else:
                    master.refused += 1
                    self._send(503, {"errors": ["no leader"]}, ("Retry-After", "1"))

            do_GET = do_POST = do_PATCH = handle_any  # noqa: N815 - names of http.server

            def _send(self, status: int, body: dict[str, object], *more: tuple[str, str]) -> None:
                payload = json.dumps(body).encode()
                self.send_response(status)
                for name, value in (("Content-Length", str(len(payload))), *more):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: object) -> None:
                """Keep the output of the test clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.thawed.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def masters() -> Iterator[list[Master]]:
    made = [Master(), Master(), Master()]
    yield made
    for one in made:
        one.close()


def client_of(masters: list[Master]) -> RestClient:
    urls = [one.url for one in masters]
    return RestClient(urls[0], "token", masters=Masters(urls, None))


def test_a_call_follows_the_redirect_of_a_standby_with_body_and_token(masters):
    masters[2].leads = True
    masters[0].leader = masters[2].url
    client = client_of(masters)
    assert client.post("/jobs", {"a": 1}) == {"leader": masters[2].url}
    client.upload("/firesteel/jobs", io.BytesIO(b"program"), 7)
    assert masters[2].received == [
        ("POST", "/v1/jobs", b'{"a": 1}', "Bearer token"),
        ("POST", "/v1/firesteel/jobs", b"program", "Bearer token"),
    ]
    assert client.url == masters[2].url


def test_a_redirect_is_followed_by_a_client_that_knows_one_master_only(masters):
    masters[1].leads = True
    masters[0].leader = masters[1].url
    assert RestClient(masters[0].url).get("/overview") == {"leader": masters[1].url}


def test_a_call_finds_the_leader_after_the_death_of_the_last_one(masters):
    masters[0].leads = True
    client = client_of(masters)
    assert client.get("/overview")["leader"] == masters[0].url
    masters[0].close()
    masters[2].leads = True
    assert client.get("/overview")["leader"] == masters[2].url
    assert client.patch("/jobs/x?mode=cancel")["leader"] == masters[2].url


def test_a_call_leaves_a_master_that_does_not_answer(masters, monkeypatch):
    """A frozen leader takes all the time of a call, and the next master gets its own."""
    monkeypatch.setattr(rest_client, "_MASTER_SECONDS", 0.5)
    monkeypatch.setattr(rest_client, "_LEADER_SECONDS", 0.4)
    masters[0].is_frozen = True
    masters[1].leads = True
    client = client_of(masters)
    assert client.get("/overview")["leader"] == masters[1].url
    assert client.url == masters[1].url


def test_a_call_waits_until_there_is_a_leader(masters):
    client = client_of(masters)
    answer: list[str] = []
    thread = threading.Thread(target=lambda: answer.append(client.get("/overview")["leader"]))
    thread.start()
    masters[1].leads = True
    thread.join(30)
    assert answer == [masters[1].url]


def test_a_client_that_was_redirected_asks_its_own_address_after_the_death_of_the_leader(masters):
    """The address may be that of a load balancer, and is the only one that the client has."""
    masters[1].leads = True
    masters[0].leader = masters[1].url
    client = RestClient(masters[0].url)
    assert client.get("/overview")["leader"] == masters[1].url
    assert client.url == masters[1].url
    masters[1].close()
    masters[2].leads = True
    masters[0].leader = masters[2].url
    assert client.get("/overview")["leader"] == masters[2].url


@pytest.mark.parametrize("addresses", [1, 3])
def test_a_client_waits_for_the_result_longer_than_a_call_waits_for_a_leader(
    masters, addresses, monkeypatch
):
    monkeypatch.setattr(rest_client, "_LEADER_SECONDS", 0.1)
    client = client_of(masters) if addresses > 1 else RestClient(masters[0].url)
    with pytest.raises((RestClientError, UnreachableError), match="no leader"):
        client.get("/overview")
    result = RemoteJob(JobID.generate(), client).result()
    masters[0].answer = {"completed": True, "error": None, "accumulators": {}, "runtime": 7}
    masters[0].answer["name"] = "orders"
    wait_until(lambda: masters[0].refused > 3)
    assert not result.done()
    masters[0].leads = True
    assert result.result(60).get_net_runtime() == 7


def test_a_client_of_one_session_fails_at_once(masters):
    with pytest.raises(RestClientError, match="no leader"):
        RestClient(masters[0].url).get("/overview")
    masters[1].close()
    with pytest.raises(UnreachableError):
        RestClient(masters[1].url).get("/overview")
