"""A client of the REST server that sends exactly what a test says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Calls a server on this machine."""

    def __init__(self, port: int, headers: Mapping[str, str] | None = None) -> None:
        self.port = port
        self.headers = dict(headers or {})

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Reply:
        """Send a request. A body that is not bytes is sent as JSON."""
        if query:
            path += "?" + urlencode(query)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = HTTPConnection("localhost", self.port, timeout=60)
        try:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **query: str) -> Reply:
        return self.call("GET", path, None, None, **query)
