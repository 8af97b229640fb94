"""An HTTP server that takes bulk requests of Elasticsearch, and fails when a test asks for it.

A real Elasticsearch is in ``tests.servers.elasticsearch``. This one can be overloaded, lose its
answers, or ask for a password.
"""

from __future__ import annotations

import base64
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class BulkServer:
    """A server that keeps documents by index and id.

    ``failures`` are used up by requests, one each: ``reject`` refuses every second action with
    status 429, ``overload`` the whole request, ``lose`` closes the connection after the work, and
    ``None`` works.
    """

    def __init__(self, user: str | None = None, prefix: str = "") -> None:
        """Start a server. ``user`` is the name and the password that it asks for."""
        self._authorization = user and f"Basic {base64.b64encode(user.encode()).decode()}"
        self._prefix = prefix
        self._lock = threading.Lock()
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self.failures: list[str | None] = []
        #: The number of actions of each request.
        self.requests: list[int] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                server.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code, answer = server.handle(self.path, self.headers["Authorization"], body)
                if answer is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                data = json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Do not write to standard error."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of_index(self, index: str) -> dict[str, dict[str, Any]]:
        """The documents of an index by their ids."""
        return {key: found for (name, key), found in self.documents.items() if name == index}

    def handle(
        self, path: str, authorization: str | None, body: bytes
    ) -> tuple[int, dict[str, Any] | None]:
        if self._authorization is not None and authorization != self._authorization:
            return 401, {"error": {"type": "security_exception", "reason": "missing user"}}
        if path != f"{self._prefix}/_bulk":
            return 404, {"error": f"no handler found for {path}"}
        with self._lock:
            failure = self.failures.pop(0) if self.failures else None
            if failure == "overload":
                return 503, {"error": "all shards failed"}
            items = list(_actions(body))
            self.requests.append(len(items))
            self.bodies.append(body)
            answers = [
                _rejected(kind)
                if failure == "reject" and number % 2 == 0
                else {kind: self._apply(kind, target, document)}
                for number, (kind, target, document) in enumerate(items)
            ]
            return 200, None if failure == "lose" else {"took": 1, "items": answers}

    def _apply(self, kind: str, target: dict[str, Any], document: Any) -> dict[str, Any]:
        index, key = target["_index"], target.get("_id") or uuid.uuid4().hex
        answer = {"_index": index, "_id": key}
        if index != index.lower():
            reason = f"Invalid index name [{index}], must be lowercase"
            error = {"type": "invalid_index_name_exception", "reason": reason}
            return {**answer, "status": 400, "error": error}
        if kind == "delete":
            found = self.documents.pop((index, key), None)
            return {**answer, "status": 404 if found is None else 200}
        if kind == "update":
            assert document["doc_as_upsert"] is True
            document = {**self.documents.get((index, key), {}), **document["doc"]}
        self.documents[index, key] = document
        return {**answer, "status": 200}


def _rejected(kind: str) -> dict[str, Any]:
    error = {"type": "es_rejected_execution_exception", "reason": "the queue is full"}
    return {kind: {"status": 429, "error": error}}


def _actions(body: bytes) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """The kind, the target and the document of each action."""
    assert body.endswith(b"\n")
    lines = iter(body.splitlines())
    for line in lines:
        [(kind, target)] = json.loads(line).items()
        yield kind, target, None if kind == "delete" else json.loads(next(lines))


@contextmanager
def bulk_server(user: str | None = None, prefix: str = "") -> Iterator[BulkServer]:
    server = BulkServer(user, prefix)
    try:
        yield server
    finally:
        server.close()
