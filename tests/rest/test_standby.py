"""The REST server of a standby: redirects to the leader."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from firesteel.rest.standby import StandbyRedirect


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("the leader")(scope, receive, send)


def call(
    leads: bool, leader: str | None, method: str, path: str, query: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    """Call an application, and return the status, the headers and the body of its answer."""
    app = StandbyRedirect(answering, lambda: 1 if leads else None, lambda: leader)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": []}
    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, sent[1]["body"]


def answers_of(terms: list[int | None], status: int) -> list[Message]:
    """Return the messages of an answer during which the term changes."""

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("answer", status)(scope, receive, send)

    left, sent = list(terms), []
    app = StandbyRedirect(failing, lambda: left.pop(0), lambda: None)

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    asyncio.run(app(scope, receive, send))
    return sent


@pytest.mark.parametrize("later", [None, 2])
def test_an_error_after_the_end_of_the_term_asks_for_patience(later):
    """A master whose term ends forgets its jobs, so it must not say that there is no such job."""
    start, body = answers_of([1, later], 404)
    assert start["status"] == 503
    assert (b"retry-after", b"1") in start["headers"]
    assert b"no longer leads" in body["body"]


def test_an_error_within_a_term_is_the_answer():
    start, body = answers_of([1, 1], 404)
    assert start["status"] == 404
    assert body["body"] == b"answer"
    start, body = answers_of([1], 200)
    assert start["status"] == 200


def test_the_leader_answers_itself():
    assert call(True, "http://other:1", "GET", "/v1/jobs")[2] == b"the leader"


def test_a_standby_redirects_with_path_and_query():
    for method in ("GET", "POST", "PATCH", "DELETE"):
        status, headers, _ = call(False, "http://other:1", method, "/v1/jobs/x", b"mode=cancel")
        assert status == 307
        assert headers["location"] == "http://other:1/v1/jobs/x?mode=cancel"


def test_a_standby_is_stopped_itself():
    assert call(False, "http://other:1", "DELETE", "/v1/cluster")[2] == b"the leader"
    assert call(False, "http://other:1", "GET", "/v1/cluster")[0] == 307


def test_a_standby_without_a_leader_asks_for_patience():
    status, headers, body = call(False, None, "GET", "/v1/jobs")
    assert status == 503
    assert headers["retry-after"] == "1"
    assert "standby" in json.loads(body)["errors"][0]
