"""The REST server of a standby: redirects to the leader."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from firesteel.rest.standby import StandbyRedirect


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("the leader")(scope, receive, send)


def call(
    leads: bool, leader: str | None, method: str, path: str, query: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    """Call an application, and return the status, the headers and the body of its answer."""
    app = StandbyRedirect(answering, lambda: leads, lambda: leader)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": []}
    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, sent[1]["body"]


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
