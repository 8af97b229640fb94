"""Calls of the REST API: their parameters, their errors, and the declaration of an endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.dispatcher.dispatcher import Dispatcher, UnknownJobError
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.logs import ProcessLogs
    from firesteel.rest.flame_graphs import FlameGraphs
    from firesteel.rest.operations import Operations
    from firesteel.rest.profiler import Profiles

_ID = re.compile(r"[0-9a-f]{32}")
#: The size of a body that an endpoint accepts unless it says otherwise.
BODY_BYTES = 1 << 20


class RestError(FiresteelError):
    """A call that is answered with an error status. ``messages`` are for the caller."""

    def __init__(self, status: int, *messages: str) -> None:
        super().__init__("; ".join(messages))
        self.status = status
        self.messages = messages


@dataclass(slots=True)
class Call:
    """One request: the parameters of its path, of its query, and its body."""

    dispatcher: Dispatcher
    operations: Operations
    flame_graphs: FlameGraphs
    profiles: Profiles
    logs: ProcessLogs | None
    path: Mapping[str, str]
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    # A body that is too large for memory, for endpoints that ask for a file.
    file: Path | None = None

    def id(self, name: str) -> str:
        """Return an id of 32 hexadecimal digits from the path."""
        return checked_id(self.path[name], name)

    def number(self, name: str) -> int:
        """Return a number, zero or more, from the path."""
        text = self.path[name]
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise RestError(400, f"Cannot resolve path parameter ({name}) from value {text!r}.")
        return int(text)

    def job(self) -> JobHandle:
        job_id = self.id("jobid")
        try:
            return self.dispatcher.job(job_id)
        except UnknownJobError:
            raise RestError(404, f"Job {job_id} not found") from None

    def one(self, name: str) -> str | None:
        """Return a query parameter, or None."""
        values = self.query.get(name)
        return values[0] if values else None

    def words(self, name: str) -> list[str] | None:
        """Return a query parameter that is a list with commas, or None without the parameter."""
        values = self.query.get(name)
        if values is None:
            return None
        return [word for value in values for word in value.split(",") if word]

    def count(self, name: str, default: int) -> int:
        text = self.one(name)
        if text is None:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise RestError(400, f"The query parameter {name} must be a number, got {text!r}.")
        return int(text)

    def json(self) -> dict[str, Any]:
        """Return the body as an object. An empty body is an empty object."""
        if not self.body.strip():
            return {}
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            raise RestError(400, "The body of the request is not valid JSON.") from None
        if not isinstance(document, dict):
            raise RestError(400, "The body of the request must be a JSON object.")
        return document

    def field(self, name: str, kind: type, default: Any = None) -> Any:
        """Return a field of the body. A missing field and null give the default."""
        value = self.json().get(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise RestError(
                400, f"The field {name!r} must be a {_KINDS[kind]}, got {type(value).__name__}."
            )
        return value


_KINDS = {str: "string", bool: "boolean", int: "number", dict: "JSON object", list: "list"}


def checked_id(text: str, name: str) -> str:
    if not _ID.fullmatch(text):
        raise RestError(
            400,
            f"Cannot resolve path parameter ({name}) from value {text!r}: an id has 32 hexadecimal "
            "digits.",
        )
    return text


Handler = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method and a path of the API.

    ``handler`` returns a body that can be written as JSON, or a response of Starlette. It runs in a
    thread and may block. ``reply`` is the type of the body. ``changes`` marks calls that need the
    token of the server, if it has one. ``token`` is one that the call needs on every server.
    ``own`` marks calls that Flink's API does not have. ``waits`` marks calls that may wait long for a
    different process; others do not wait for them. ``new_file`` makes the file for the body of a
    request, and the handler removes it.
    """

    method: str
    path: str
    handler: Handler
    reply: Any
    summary: str
    status: int = 200
    changes: bool = False
    query: tuple[str, ...] = ()
    own: bool = False
    waits: bool = False
    max_body: int = BODY_BYTES
    token: str | None = None
    new_file: Callable[[], Path] | None = None
