"""The application of the REST server: routes, access, bodies and errors."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from firesteel.config import rest_options
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.dispatcher.job_handle import NoAnswerError
from firesteel.logs import ProcessLogs
from firesteel.rest import openapi
from firesteel.rest.calls import Call, Endpoint, RestError
from firesteel.rest.endpoints import ENDPOINTS
from firesteel.rest.flame_graphs import FlameGraphs
from firesteel.rest.operations import Operations
from firesteel.rest.profiler import Profiles
from firesteel.rest.security import Access, has_token

_log = logging.getLogger("firesteel")

_TOKEN_IS_MISSING = (
    "Only clients with the token of the session may do this. The user who has started the session has "
    "it; others set firesteel.rest.token."
)
# Handlers wait for locks of jobs, so they need some threads. Requests beyond them queue. Handlers that
# wait for processes of users have as many of their own.
_THREADS = 8
# The longest time for a body in memory, and for one that becomes a file.
_BODY_SECONDS = 60.0
_FILE_SECONDS = 600.0


def create_app(
    dispatcher: Dispatcher,
    *,
    access: Access | None = None,
    more: Sequence[Endpoint] = (),
    dashboard: Path | None = None,
    logs: ProcessLogs | None = None,
) -> Starlette:
    """Return the application for the jobs of a dispatcher.

    Args:
        dispatcher: The jobs.
        access: Allows or refuses a call. The default allows calls from this machine.
        more: Endpoints beside those of this package.
        dashboard: A directory with the files of the dashboard, or None.
        logs: The log of this process, or None.
    """
    configuration = dispatcher.configuration
    operations = Operations(configuration.get(rest_options.REST_ASYNC_STORE).total_seconds())
    endpoints = (*ENDPOINTS, *more)
    described = Endpoint(
        "GET",
        "/openapi.json",
        lambda _: openapi.document((*endpoints, described)),
        dict[str, Any],
        "The description of this API",
        own=True,
    )
    serve = _Endpoints(dispatcher, operations, access or Access(), logs)
    routes: list[Route | Mount] = [
        Route(prefix + endpoint.path, serve.handler_of(endpoint), methods=[endpoint.method])
        for endpoint in (*endpoints, described)
        for prefix in ("/v1", "")
    ]
    if dashboard is not None and dashboard.is_dir():
        routes.append(Mount("/", _Dashboard(directory=dashboard, html=True, check_dir=False)))
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: _http_error,
            RestError: _rest_error,
            NoAnswerError: _no_answer,
            Exception: _unexpected_error,
        },
    )
    app.router.redirect_slashes = False
    return app


class _Endpoints:
    """Runs the handlers of endpoints in threads."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        operations: Operations,
        access: Access,
        logs: ProcessLogs | None,
    ) -> None:
        self._dispatcher = dispatcher
        self._operations = operations
        self._access = access
        self._logs = logs
        self._flame_graphs = FlameGraphs()
        self._profiles = Profiles()
        self._threads = ThreadPoolExecutor(_THREADS, "firesteel-rest")
        self._waiting_threads = ThreadPoolExecutor(_THREADS, "firesteel-rest-waiting")

    def handler_of(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        return partial(self._handle, endpoint)

    async def _handle(self, endpoint: Endpoint, request: Request) -> Response:
        headers = request.headers
        self._access.check(headers, changes=endpoint.changes)
        # Before the body is read: without the token it takes neither memory nor disk.
        if endpoint.token is not None and not has_token(headers, endpoint.token):
            raise RestError(401, _TOKEN_IS_MISSING)
        query: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            query.setdefault(name, []).append(value)
        body, file = b"", None
        try:
            if endpoint.new_file is None:
                async with asyncio.timeout(_BODY_SECONDS):
                    body = await _read_body(request, endpoint.max_body)
            else:
                async with asyncio.timeout(_FILE_SECONDS):
                    file = await _write_body(request, endpoint.max_body, endpoint.new_file)
        except TimeoutError:
            raise RestError(408, "The body of the request took too long.") from None
        call = Call(
            self._dispatcher,
            self._operations,
            self._flame_graphs,
            self._profiles,
            self._logs,
            request.path_params,
            query,
            body,
            headers,
            f"{request.url.scheme}://{request.url.netloc}",
            file,
        )
        loop = asyncio.get_running_loop()
        threads = self._waiting_threads if endpoint.waits else self._threads
        answer = await loop.run_in_executor(threads, endpoint.handler, call)
        if isinstance(answer, Response):
            return answer
        return json_response(answer, endpoint.status)


class _Dashboard(StaticFiles):
    """The files of the dashboard. They change with every version, so browsers ask each time."""

    async def get_response(self, path: str, scope: Any) -> Response:
        response = await super().get_response(path, scope)
        response.headers.setdefault("Cache-Control", "no-cache")
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        return response


async def _chunks(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the parts of a body up to a limit."""
    refusal = RestError(413, f"The body of the request has more than {limit} bytes.")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise refusal
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise refusal
        yield chunk


async def _read_body(request: Request, limit: int) -> bytes:
    """Read a body up to a limit. The body of a GET is read too, because Flink's client sends one."""
    return b"".join([chunk async for chunk in _chunks(request, limit)])


async def _write_body(request: Request, limit: int, new_file: Callable[[], Path]) -> Path:
    """Write a body up to a limit into a file, without keeping it in memory."""
    loop = asyncio.get_running_loop()
    path = await loop.run_in_executor(None, new_file)
    try:
        with path.open("wb") as file:
            async for chunk in _chunks(request, limit):
                await loop.run_in_executor(None, file.write, chunk)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def json_response(body: Any, status: int = 200) -> Response:
    """Return a response with a body as JSON. Numbers that JSON cannot write become text."""
    try:
        text = json.dumps(body, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(body), allow_nan=False, separators=(",", ":"))
    return Response(
        text.encode(),
        status,
        media_type="application/json",
        headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
    )


def _finite(body: Any) -> Any:
    if isinstance(body, dict):
        return {key: _finite(value) for key, value in body.items()}
    if isinstance(body, list | tuple):
        return [_finite(value) for value in body]
    if isinstance(body, float) and not math.isfinite(body):
        return "NaN" if math.isnan(body) else ("Infinity" if body > 0 else "-Infinity")
    return body


# The parameters are those of Starlette's exception handlers.


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return error_response(404, f"Not found: {request.url.path}")
    if error.status_code == 405:
        return error_response(405, f"{request.method} is not a method of {request.url.path}")
    return error_response(error.status_code, str(error.detail))


async def _rest_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RestError)
    return error_response(error.status, *error.messages)


async def _no_answer(request: Request, error: Exception) -> Response:
    return error_response(503, str(error))


async def _unexpected_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, ClientDisconnect):
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, "Internal server error.", f"{type(error).__name__}: {error}")


def error_response(status: int, *messages: str) -> Response:
    """Return a response in the form of Flink's errors."""
    return json_response({"errors": list(messages)}, status)
