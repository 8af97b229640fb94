"""A schema registry on this machine: the part of Confluent's HTTP API that clients need.

Confluent's own server needs a broker and 200 MB of jars. This one keeps schemas in memory, refuses
incompatible Avro schemas as the rule BACKWARD does for missing defaults, and can ask for a password.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class SchemaRegistryServer:
    """A registry. ``requests`` has the paths that clients have asked for."""

    def __init__(self, user: str | None = None) -> None:
        """Start a registry. ``user`` is the name and the password that it asks for."""
        self._authorization = user and f"Basic {base64.b64encode(user.encode()).decode()}"
        self._lock = threading.Lock()
        self._schemas: list[dict[str, str]] = []
        self._subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.requests.append(self.path)
                if registry.allows(self.headers.get("Authorization")):
                    self._answer(*registry.find(self.path))
                else:
                    self._answer(401, {"error_code": 401, "message": "Unauthorized"})

            def do_POST(self) -> None:
                registry.requests.append(self.path)
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if registry.allows(self.headers.get("Authorization")):
                    self._answer(*registry.register(self.path, body))
                else:
                    self._answer(401, {"error_code": 401, "message": "Unauthorized"})

            def log_message(self, format: str, *args: Any) -> None:
                """Do not write to standard error."""

            def _answer(self, code: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def allows(self, authorization: str | None) -> bool:
        return self._authorization is None or authorization == self._authorization

    def find(self, path: str) -> tuple[int, dict[str, Any]]:
        number = int(path.rpartition("/")[2])
        with self._lock:
            if not 1 <= number <= len(self._schemas):
                return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
            return 200, dict(self._schemas[number - 1])

    def register(self, path: str, body: dict[str, str]) -> tuple[int, dict[str, Any]]:
        subject = unquote(path.split("/")[2])
        with self._lock:
            versions = self._subjects.setdefault(subject, [])
            if versions and not _is_compatible(self._schemas[versions[-1] - 1], body):
                return 409, {"error_code": 409, "message": f"Incompatible with {subject}"}
            if body not in self._schemas:
                self._schemas.append(body)
            number = self._schemas.index(body) + 1
            if number not in versions:
                versions.append(number)
            return 200, {"id": number}


def _is_compatible(old: dict[str, str], new: dict[str, str]) -> bool:
    """Return False if a reader of the new Avro schema cannot read old records."""
    if old.get("schemaType") != new.get("schemaType"):
        return False
    if new.get("schemaType") is not None:
        return True
    before = {field["name"] for field in json.loads(old["schema"])["fields"]}
    return all(
        field["name"] in before or "default" in field
        for field in json.loads(new["schema"])["fields"]
    )


@contextmanager
def schema_registry(user: str | None = None) -> Iterator[SchemaRegistryServer]:
    server = SchemaRegistryServer(user)
    try:
        yield server
    finally:
        server.close()
