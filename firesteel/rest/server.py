"""The REST server: an application on a port, in a thread of the driver."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Self

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from firesteel.common.configuration import Configuration
from firesteel.config import rest_options
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.errors import ConfigurationError, FiresteelError
from firesteel.logs import ProcessLogs
from firesteel.rest.app import create_app
from firesteel.rest.calls import Endpoint
from firesteel.rest.reporters import Reporters
from firesteel.rest.security import Access, is_loopback

_log = logging.getLogger("firesteel")

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
# Connections beyond this many are refused with 503.
_CONNECTIONS = 1000
_BACKLOG = 512
# A connection without a whole request after this time is closed: idle ones must not use up all.
_REQUEST_SECONDS = 20.0


class RestServerError(FiresteelError, RuntimeError):
    """The REST server could not start."""


class RestServer:
    """Serves a dispatcher until it is closed.

    >>> from firesteel.dispatcher.dispatcher import Dispatcher
    >>> configuration = Configuration().set_string("rest.port", "0")
    >>> with RestServer(Dispatcher(configuration)) as server:
    ...     server.url
    'http://localhost:...'
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        more: Sequence[Endpoint] = (),
        dashboard: Path | None = None,
        standby: Callable[[ASGIApp], ASGIApp] | None = None,
    ) -> None:
        """Bind the port and start to serve.

        Args:
            dispatcher: The jobs, and the settings of the server.
            more: Endpoints beside those of this package.
            dashboard: The directory of the dashboard's files. The default is firesteel.web.dir, or
                else part of the package.
            standby: Wraps the application of a master that does not always lead.
        """
        configuration = dispatcher.configuration
        host = configuration.get(rest_options.REST_BIND_ADDRESS)
        directory = configuration.get(rest_options.WEB_DIRECTORY)
        if dashboard is None:
            dashboard = packaged_dashboard() if directory is None else Path(directory)
        self._logs = ProcessLogs("driver", owned=False)
        self._reporters = Reporters(dispatcher)
        app: ASGIApp = create_app(
            dispatcher,
            access=_access(configuration, host),
            more=more,
            dashboard=dashboard,
            logs=self._logs,
        )
        if standby is not None:
            app = standby(app)
        certificate, key = _tls(configuration)
        self._socket = _bind(host, list(ports(configuration)))
        self.port: int = self._socket.getsockname()[1]
        self._scheme = "https" if certificate else "http"
        self._name = configuration.get(rest_options.REST_ADDRESS) or (
            "localhost" if is_loopback(host) else socket.gethostname()
        )
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                limit_concurrency=_CONNECTIONS,
                timeout_keep_alive=10,
                timeout_graceful_shutdown=int(_STOP_SECONDS),
                ssl_certfile=certificate,
                ssl_keyfile=key,
                loop="asyncio",
                http=_Connection,
                ws="none",
            )
        )
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="firesteel-rest", daemon=True)
        self._thread.start()
        self._wait_for_start()
        self._logs.__enter__()

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self._name}:{self.port}"

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except BaseException as error:  # noqa: BLE001 - no error vanishes in a thread
            self._failure = error
            _log.exception("the REST server has ended")

    def _wait_for_start(self) -> None:
        """Wait until the server accepts connections. Its thread says so, or ends."""
        waited = 0.0
        while not self._server.started and waited < _START_SECONDS:
            self._thread.join(0.01)
            if not self._thread.is_alive():
                raise RestServerError("The REST server did not start") from self._failure
            waited += 0.01

    def close(self) -> None:
        self._logs.__exit__()
        self._reporters.close()
        self._server.should_exit = True
        self._thread.join(2 * _STOP_SECONDS)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Connection(H11Protocol):
    """A connection that is closed if the head of its next request takes too long."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _watch(self) -> None:
        """Begin to wait for a request, or end that."""
        if self._has_request():
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_REQUEST_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if not self._has_request() and not self.transport.is_closing():
            self.transport.close()

    def _has_request(self) -> bool:
        # None before the first request, although uvicorn declares it differently.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete


class _ProgramServer:
    """The server for the jobs of the program that runs in this process, once it is needed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: RestServer | None = None


_program = _ProgramServer()


def serve_program(configuration: Configuration) -> RestServer:
    """Serve REST for all jobs that this process starts from now on. One server serves all."""
    with _program.lock:
        if _program.server is None:
            dispatcher = Dispatcher(configuration)
            dispatcher.follow_program()
            _program.server = RestServer(dispatcher)
            sys.stderr.write(f"Dashboard: {_program.server.url}\n")
        return _program.server


def packaged_dashboard() -> Path | None:
    """Return the directory with the files of the dashboard, or None if it is not built."""
    with contextlib.suppress(ModuleNotFoundError):
        directory = Path(str(resources.files("firesteel.dashboard"))) / "static"
        if (directory / "index.html").is_file():
            return directory
    return None


def ports(configuration: Configuration) -> Iterator[int]:
    """Yield the ports to try: ``rest.bind-port``, a range perhaps, or else ``rest.port``."""
    if not configuration.contains_key(rest_options.REST_BIND_PORT.key):
        yield configuration.get(rest_options.REST_PORT)
        return
    text = configuration.get(rest_options.REST_BIND_PORT)
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        try:
            numbers = range(int(first), int(last or first) + 1)
        except ValueError:
            numbers = range(0)
        if not numbers or numbers[0] < 0 or numbers[-1] > 65535:
            raise ConfigurationError(
                f"{rest_options.REST_BIND_PORT.key}: expected a port, or ranges such as 8081-8090, got "
                f"{text!r}.",
                key=rest_options.REST_BIND_PORT.key,
            )
        yield from numbers


def _bind(host: str, candidates: list[int]) -> socket.socket:
    reason: OSError | None = None
    for port in candidates:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            # asyncio sets TCP_NODELAY only if the socket names its protocol. Without it, a reply waits
            # 40 ms for the acknowledgment of its header.
            listener = socket.socket(family, kind, protocol)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(_BACKLOG)
            except OSError:
                listener.close()
                raise
        except OSError as error:
            reason = error
            continue
        return listener
    tried = f"{candidates[0]}-{candidates[-1]}" if len(candidates) > 1 else str(candidates[0])
    raise RestServerError(
        f"The REST server cannot listen on {host}, port {tried}: {reason}. Set "
        f"{rest_options.REST_PORT.key} or {rest_options.REST_BIND_PORT.key} to a free port; 0 takes any."
    ) from reason


def _access(configuration: Configuration, host: str) -> Access:
    token = configuration.get(rest_options.REST_TOKEN)
    if is_loopback(host):
        name = configuration.get(rest_options.REST_ADDRESS)
        return Access(token, frozenset() if name is None else frozenset({name.lower()}))
    if not token:
        raise ConfigurationError(
            f"{rest_options.REST_BIND_ADDRESS.key} is {host}, so other machines can reach the server. "
            f"Set {rest_options.REST_TOKEN.key} to a secret that clients have to send, or bind to "
            "localhost.",
            key=rest_options.REST_TOKEN.key,
        )
    return Access(token)


def _tls(configuration: Configuration) -> tuple[str | None, str | None]:
    if not configuration.get(rest_options.REST_SSL):
        return None, None
    certificate = configuration.get(rest_options.REST_SSL_CERTIFICATE)
    if certificate is None:
        raise ConfigurationError(
            f"{rest_options.REST_SSL.key} is true, but {rest_options.REST_SSL_CERTIFICATE.key} names no "
            "certificate in PEM format.",
            key=rest_options.REST_SSL_CERTIFICATE.key,
        )
    return certificate, configuration.get(rest_options.REST_SSL_KEY)
