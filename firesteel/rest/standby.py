"""The REST server of a master that does not lead: sends clients to the leader."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firesteel.rest.app import error_response

# The leader is looked up at most this often.
_KNOWN_SECONDS = 0.5


def no_leader(reason: str) -> Response:
    """Return the answer that lets clients try again, and ask other masters."""
    response = error_response(503, reason)
    response.headers["Retry-After"] = "1"
    return response


def _is_for_this_master(scope: Scope) -> bool:
    """Return True for the call that stops a master."""
    return scope["method"] == "DELETE" and scope["path"] in ("/cluster", "/v1/cluster")


class StandbyRedirect:
    """Passes calls to the application while this master leads. Otherwise it redirects them.

    Args:
        app: The application.
        term: Returns the term in which this master leads and has taken over all jobs, or None.
        leader: Returns the address of the leader, if it is known. It may take a while.
    """

    def __init__(
        self, app: ASGIApp, term: Callable[[], int | None], leader: Callable[[], str | None]
    ) -> None:
        self._app = app
        self._term = term
        self._leader = leader
        self._known: tuple[float, str | None] = (float("-inf"), None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_for_this_master(scope):
            await self._app(scope, receive, send)
            return
        term = self._term()
        if term is None:
            response = await self._redirect(scope)
            await response(scope, receive, send)
        else:
            await self._answer_as_leader(term, scope, receive, send)

    async def _answer_as_leader(
        self, term: int, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer, unless an error may come from the end of the term: its jobs are gone then."""
        is_late = False

        async def send_in_term(message: Message) -> None:
            nonlocal is_late
            if message["type"] == "http.response.start" and message["status"] >= 400:
                is_late = self._term() != term
            if not is_late:
                await send(message)

        await self._app(scope, receive, send_in_term)
        if is_late:
            response = no_leader("This master no longer leads.")
            await response(scope, receive, send)

    async def _redirect(self, scope: Scope) -> Response:
        asked_at, url = self._known
        if time.monotonic() - asked_at > _KNOWN_SECONDS:
            url = await asyncio.get_running_loop().run_in_executor(None, self._leader)
            self._known = time.monotonic(), url
        if url is None:
            return no_leader("This master is a standby, and no leader is known at the moment.")
        query: Any = scope.get("query_string", b"").decode()
        return RedirectResponse(f"{url}{scope['path']}{'?' + query if query else ''}", 307)
