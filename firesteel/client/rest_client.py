"""HTTP calls to the REST server of a session, with the errors of the server as exceptions."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from firesteel.client.masters import Masters
from firesteel.config import rest_options
from firesteel.errors import ConfigurationError, FiresteelError

_TIMEOUT_SECONDS = 60.0
_SUBMIT_SECONDS = 600.0
_POLL_SECONDS = (0.02, 0.05, 0.1, 0.2)
# The longest wait for a leader, and the pause before the next master is asked. The session timeout of
# ZooKeeper is 60 s by default, and a takeover begins after it.
_LEADER_SECONDS = 120.0
_NEXT_MASTER_SECONDS = 0.2
# A master that does not answer for this time may be frozen, so the next one is asked. Connections of
# a frozen process are still accepted.
_MASTER_SECONDS = 10.0


class RestClientError(FiresteelError, RuntimeError):
    """The server answered with an error.

    Attributes:
        status: The status code.
        is_temporary: The server asks to try again: no master leads at the moment.
    """

    def __init__(self, status: int, message: str, *, is_temporary: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.is_temporary = is_temporary


class UnreachableError(FiresteelError, RuntimeError):
    """No server answers at this address."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"No session answers at {url}: {reason}. Start one with 'firesteel session start', or "
            "name one with -m host:port. 'firesteel session list' shows those of this machine."
        )
        self.url = url


def url_of(address: str) -> str:
    """Return the URL of ``host:port``, or of a URL."""
    text = address if "://" in address else f"http://{address}"
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None:
        raise ConfigurationError(
            f"The address of a session is host:port or http://host:port, not {address!r}."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


class RestClient:
    """Calls one server, or the leader among several masters.

    Args:
        url: The address of the server.
        token: Sent with every call, if the server needs one.
        certificate: A file in PEM format with certificates to trust beside those of the system.
        masters: Further masters. A call that finds no leader is repeated until there is one.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        certificate: str | None = None,
        masters: Masters | None = None,
    ) -> None:
        self.url = url
        # An address that has redirected knows the next leader, too.
        self._given_url = url
        self._token = token
        self._opener = _direct if certificate is None else _trusting(certificate)
        self._masters = masters if masters is not None and masters.are_several else None

    def get(self, path: str) -> Any:
        return self._json("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._json("POST", path, body)

    def patch(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._json("PATCH", path, body)

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self._json("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self._json("DELETE", path)

    def get_bytes(self, path: str) -> tuple[bytes, dict[str, str]]:
        """Return a body and the headers, with lower-case names."""
        return self._call("GET", path)

    def upload(self, path: str, stream: BinaryIO, size: int) -> Any:
        headers = {"Content-Type": "application/zip", "Content-Length": str(size)}
        return json.loads(self._call("POST", path, stream, headers, _SUBMIT_SECONDS)[0])

    def wait_for(self, path: str, seconds: float | None = None) -> dict[str, Any]:
        """Ask for an asynchronous operation until it has completed, and return its outcome.

        Raises:
            RestClientError: The operation failed.
            TimeoutError: It takes longer than ``seconds``.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        pauses = iter(_POLL_SECONDS)
        while True:
            answer = self.get(path)
            if answer["status"]["id"] == "COMPLETED":
                operation: dict[str, Any] = answer.get("operation") or {}
                cause = operation.get("failure-cause") or operation.get("failureCause")
                if cause:
                    raise RestClientError(500, str(cause.get("stack-trace") or cause))
                return operation
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{path} did not complete within {seconds:.0f} s")
            time.sleep(next(pauses, _POLL_SECONDS[-1]))

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        text, _ = self._call(method, path, data, headers)
        return json.loads(text) if text.strip() else {}

    def _call(
        self,
        method: str,
        path: str,
        data: bytes | BinaryIO | None = None,
        headers: dict[str, str] | None = None,
        seconds: float = _TIMEOUT_SECONDS,
    ) -> tuple[bytes, dict[str, str]]:
        """Return the body and the headers of the answer of the leader."""
        if self._masters is not None:
            seconds = min(seconds, _MASTER_SECONDS if data is None else _TIMEOUT_SECONDS)
        deadline: float | None = None
        while True:
            if data is not None and not isinstance(data, bytes):
                data.seek(0)
            try:
                return self._call_once(method, path, data, dict(headers or {}), seconds)
            except _StandbyError as standby:
                # A standby has answered. It may know the leader.
                following = standby.leader
            except (UnreachableError, RestClientError) as error:
                if isinstance(error, RestClientError) and not error.is_temporary:
                    raise
                if self._masters is not None:
                    if _is_over(deadline):
                        raise
                    following = self._masters.another(self.url)
                elif self.url != self._given_url:
                    following = self._given_url
                else:
                    raise
                time.sleep(_NEXT_MASTER_SECONDS)
            if _is_over(deadline):
                raise UnreachableError(self.url, "the masters name no leader that answers")
            self.url = following
            deadline = deadline or time.monotonic() + _LEADER_SECONDS

    def _call_once(
        self,
        method: str,
        path: str,
        data: bytes | BinaryIO | None,
        headers: dict[str, str],
        seconds: float,
    ) -> tuple[bytes, dict[str, str]]:
        request = urllib.request.Request(f"{self.url}/v1{path}", data, headers, method=method)
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                found = {name.lower(): value for name, value in answer.headers.items()}
                return answer.read(), found
        except urllib.error.HTTPError as error:
            location = error.headers.get("Location", "")
            if error.code == 307 and location.startswith(("http://", "https://")):
                parts = urlsplit(location)
                raise _StandbyError(f"{parts.scheme}://{parts.netloc}") from None
            is_temporary = error.code == 503 and "Retry-After" in error.headers
            raise RestClientError(error.code, _message(error), is_temporary=is_temporary) from None
        except (urllib.error.URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            raise UnreachableError(self.url, str(reason)) from error


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


class _StandbyError(Exception):
    """A standby has answered, with the address of the leader."""

    def __init__(self, leader: str) -> None:
        super().__init__(leader)
        self.leader = leader


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to the client, which repeats the call with its body and its token."""

    def redirect_request(self, *_: Any) -> None:
        return None


# Without the proxies of the environment: sessions are servers of the user's own network.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())


def _trusting(certificate: str) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(certificate)
    except OSError as error:
        raise ConfigurationError(
            f"{rest_options.REST_SSL_CERTIFICATE.key}: {certificate} cannot be read: {error}.",
            key=rest_options.REST_SSL_CERTIFICATE.key,
        ) from error
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=context),
        _NoRedirects(),
    )


def _message(error: urllib.error.HTTPError) -> str:
    text = error.read().decode(errors="replace")
    try:
        errors = json.loads(text)["errors"]
        return "\n".join(str(one) for one in errors if one)
    except (ValueError, KeyError, TypeError):
        return text or str(error)


def until_true(ask: Callable[[], bool], seconds: float) -> bool:
    """Ask again and again until the answer is true. Return False if that takes too long."""
    deadline = time.monotonic() + seconds
    pauses = iter(_POLL_SECONDS)
    while not ask():
        if time.monotonic() > deadline:
            return False
        time.sleep(next(pauses, _POLL_SECONDS[-1]))
    return True
