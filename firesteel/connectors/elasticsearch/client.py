"""Client of Elasticsearch: bulk requests over a connection that stays open."""

from __future__ import annotations

import base64
import ssl
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import orjson

from firesteel.connectors.elasticsearch.settings import ConnectionSettings
from firesteel.errors import FiresteelError, shorten

__all__ = ["BulkClient", "ElasticsearchError", "ElasticsearchUnavailableError"]

_OK = 200
# The server is overloaded, or a proxy does not reach it.
_MAY_GO_AWAY = (429, 502, 503, 504)
_SETTINGS = {
    401: "set_connection_username and set_connection_password",
    403: "the rights of the user in set_connection_username",
    404: "set_hosts and set_connection_path_prefix",
    405: "set_hosts and set_connection_path_prefix",
    413: "set_bulk_flush_max_size_mb, which limits the size of a request",
}


class ElasticsearchError(FiresteelError, RuntimeError):
    """Elasticsearch refuses a request."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"Elasticsearch at {address} refused a request: {reason}")
        self.address = address
        self.reason = reason


class ElasticsearchUnavailableError(FiresteelError, ConnectionError):
    """No server answers, or all are overloaded."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"Elasticsearch at {address} cannot be used: {reason}. Check set_hosts and the "
            "servers; set_bulk_flush_backoff_strategy repeats requests."
        )
        self.address = address
        self.reason = reason


class BulkClient:
    """Sends bulk requests to one of several servers. It changes the server after an error."""

    def __init__(self, settings: ConnectionSettings, first: int) -> None:
        """Create a client. It connects at the first request.

        Args:
            settings: The servers and the user.
            first: The number of the server to begin with. Clients with different numbers share
                the work among the servers.
        """
        self._hosts = settings.hosts
        self._current = first % len(self._hosts)
        self._path = f"{settings.path_prefix}/_bulk"
        self._connect_seconds = settings.connect_millis / 1000 or None
        self._socket_seconds = settings.socket_millis / 1000 or None
        self._headers = {"Content-Type": "application/x-ndjson", "Accept": "application/json"}
        if settings.user_name is not None:
            user = f"{settings.user_name}:{settings.password}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(user).decode()}"
        self._connection: HTTPConnection | None = None

    @property
    def address(self) -> str:
        return ", ".join(self._hosts)

    def send(self, body: bytes) -> list[dict[str, Any]]:
        """Send actions, and return the answer to each of them.

        Args:
            body: The lines of the actions.

        Raises:
            ElasticsearchUnavailableError: No server took the request. A later attempt may work.
            ElasticsearchError: A server refused the request.
        """
        reasons = []
        for _ in self._hosts:
            host = self._hosts[self._current]
            try:
                return self._send_to(host, body)
            except (ElasticsearchUnavailableError, OSError, HTTPException) as error:
                self.close()
                self._current = (self._current + 1) % len(self._hosts)
                reason = getattr(error, "reason", None) or str(error) or repr(error)
                reasons.append(f"{host}: {reason}" if len(self._hosts) > 1 else str(reason))
        raise ElasticsearchUnavailableError(self.address, "; ".join(reasons))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):
                connection.close()

    def _send_to(self, host: str, body: bytes) -> list[dict[str, Any]]:
        if self._connection is not None:
            try:
                return self._request(host, self._connection, body)
            except (OSError, HTTPException) as error:
                if isinstance(error, (ElasticsearchUnavailableError, TimeoutError)):
                    raise
                # A server closes a connection that was idle for long.
                self.close()
        connection = self._connection = self._connect(host)
        return self._request(host, connection, body)

    def _connect(self, host: str) -> HTTPConnection:
        url = urlsplit(host)
        assert url.hostname is not None
        connection: HTTPConnection
        if url.scheme == "https":
            context = ssl.create_default_context()
            connection = HTTPSConnection(
                url.hostname, url.port, timeout=self._connect_seconds, context=context
            )
        else:
            connection = HTTPConnection(url.hostname, url.port, timeout=self._connect_seconds)
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise ElasticsearchError(
                host,
                f"the client does not trust its certificate ({error.verify_message}). Set the "
                "environment variable SSL_CERT_FILE to a file with the certificate authority.",
            ) from error
        connection.sock.settimeout(self._socket_seconds)
        return connection

    def _request(self, host: str, connection: HTTPConnection, body: bytes) -> list[dict[str, Any]]:
        connection.request("POST", self._path, body, self._headers)
        response = connection.getresponse()
        data = response.read()
        if connection.sock is None:
            # The server has closed the connection, and a new one needs its own timeouts.
            self._connection = None
        if response.status != _OK:
            raise _refusal(host, response, data)
        try:
            items: list[dict[str, Any]] = orjson.loads(data)["items"]
        except (ValueError, KeyError, TypeError):
            raise ElasticsearchError(
                host, f"its answer {shorten(data)} is not one to a bulk request. Check set_hosts."
            ) from None
        return [next(iter(item.values())) for item in items]


def _refusal(host: str, response: HTTPResponse, data: bytes) -> FiresteelError:
    try:
        reason = orjson.loads(data)["error"]
        reason = reason["reason"] if isinstance(reason, dict) else reason
    except (ValueError, KeyError, TypeError):
        reason = response.reason
    reason = f"{reason} (HTTP {response.status})"
    if response.status in _MAY_GO_AWAY:
        return ElasticsearchUnavailableError(host, reason)
    if settings := _SETTINGS.get(response.status):
        reason += f". Check {settings}."
    return ElasticsearchError(host, reason)
