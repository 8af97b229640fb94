"""Serves the dashboard and the replies of a made-up session.

Developers start it with ``python -m tests.dashboard.fixture_server one``, and tests with ``serving``.
"""

from __future__ import annotations

import json
import mimetypes
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.dashboard import session as replies
from tests.dashboard.session import SESSIONS, Session, identifier

STATIC = Path(__file__).parents[2] / "firesteel" / "dashboard" / "static"

Query = dict[str, list[str]]


class NotFoundError(Exception):
    pass


def _wanted(query: Query) -> list[str]:
    return [name for text in query.get("get", []) for name in text.split(",")]


def _cluster(session: Session) -> dict[str, Any]:
    managers = [replies.task_manager(session, n) for n in range(session.task_managers)]
    states = [job.state for job in session.jobs]
    return {
        "taskmanagers": session.task_managers,
        "slots-total": sum(one["slotsNumber"] for one in managers),
        "slots-available": sum(one["freeSlots"] for one in managers),
        "jobs-running": sum(state not in {"FINISHED", "CANCELED", "FAILED"} for state in states),
        "jobs-finished": states.count("FINISHED"),
        "jobs-cancelled": states.count("CANCELED"),
        "jobs-failed": states.count("FAILED"),
        "flink-version": "2.3.0",
        "flink-commit": "0000000",
    }


def _config(session: Session) -> dict[str, Any]:
    return {
        "refresh-interval": session.refresh_interval,
        "timezone-name": "UTC",
        "timezone-offset": 0,
        "flink-version": "2.3.0",
        "flink-revision": "0000000",
        "features": {
            "web-submit": True,
            "web-cancel": True,
            "web-rescale": True,
            "web-history": session.history_server,
        },
    }


_JOB_CALLS: dict[str, Callable[[replies.Job], Any]] = {
    "": replies.job_details,
    "/checkpoints": replies.checkpoints,
    "/checkpoints/config": lambda _: replies.CHECKPOINT_CONFIG,
    "/resource-requirements": lambda job: {
        job.vertex_id(index): {"parallelism": {"lowerBound": 1, "upperBound": vertex.parallelism}}
        for index, vertex in enumerate(job.vertices)
    },
    "/exceptions": replies.exceptions,
    "/backpressure": replies.job_back_pressure,
    "/config": lambda job: {
        "jid": job.jid,
        "name": job.name,
        "execution-config": {
            "restart-strategy": "fixed delay (10 attempts, 1 s)",
            "job-parallelism": 4,
            "object-reuse-mode": False,
            "user-config": job.parameters,
        },
    },
}

_VERTEX_CALLS: dict[str, Callable[[replies.Job, int, Query], Any]] = {
    "": lambda job, index, _: replies.vertex_details(job, index),
    "/subtasks/metrics": lambda job, index, query: replies.aggregated_metrics(
        job, index, _wanted(query)
    ),
    "/metrics": lambda job, index, query: replies.vertex_metrics(job, index, _wanted(query)),
    "/watermarks": lambda job, index, _: [
        {"id": f"{subtask}.currentInputWatermark", "value": str(int(value))}
        for subtask, value in enumerate(
            replies.subtask_metrics(job, index).get("currentInputWatermark", [])
        )
    ],
    "/backpressure": lambda job, index, _: replies.back_pressure(job, index),
    "/subtasktimes": lambda job, index, _: replies.subtask_times(job, index),
    "/flamegraph": lambda job, _index, query: replies.flame_graph(job, query["type"][0]),
    "/accumulators": lambda job, index, _: {
        "id": job.vertex_id(index),
        "user-accumulators": [
            {"name": name, "type": "LongCounter", "value": str(value)}
            for name, value in job.vertices[index].accumulators.items()
        ],
    },
    "/taskmanagers": lambda job, index, _: {
        "id": job.vertex_id(index),
        "name": job.vertices[index].name,
        "now": replies.now(),
        "taskmanagers": [
            {
                "endpoint": f"10.0.0.{number + 1}:40000",
                "taskmanager-id": f"executor-{number}",
                "status": replies.task_state(job),
                "start-time": replies.start_of(job),
                "end-time": -1,
                "duration": replies.duration_of(job),
                "metrics": replies.io_metrics(job, job.vertices[index], 0.5),
                "status-counts": replies.task_counts(job, 2),
            }
            for number in range(2)
        ],
    },
}

_JVM = {
    f"Status.JVM.Memory.{kind}.{figure}": str(value)
    for kind, value in {"Heap": 412_000_000, "NonHeap": 180_000_000}.items()
    for figure in ("Used", "Committed", "Max")
}


def _files(path: str) -> Any:
    """Logs and threads, which the job manager and task managers have alike."""
    if path in {"/log", "/logs/driver.log"}:
        return replies.LOG
    if path in {"/stdout", "/logs/driver.out"}:
        return ""
    if path == "/logs":
        return {
            "logs": [
                {"name": "driver.log", "size": len(replies.LOG), "mtime": replies.now() - 4_000},
                {"name": "driver.out", "size": 0, "mtime": replies.now() - 90_000},
            ]
        }
    if path == "/thread-dump":
        return replies.THREADS
    if path == "/profiler":
        return {"profilingList": replies.profiles()}
    raise NotFoundError(path)


def _job_manager(path: str, query: Query) -> Any:
    if path == "/config":
        return [
            {"key": "execution.checkpointing.interval", "value": "10 s"},
            {"key": "parallelism.default", "value": "4"},
            {"key": "restart-strategy.type", "value": "fixed-delay"},
        ]
    if path == "/environment":
        return {
            "jvm": {"version": "OpenJDK 17.0.15", "arch": "amd64", "options": ["-Xmx1g"]},
            "classpath": ["/opt/spark/jars/spark-core.jar"],
        }
    if path == "/metrics":
        wanted = _wanted(query)
        names = wanted or list(_JVM)
        return [
            {"id": name, "value": _JVM[name]} if wanted else {"id": name}
            for name in names
            if name in _JVM
        ]
    return _files(path)


def answer(session: Session, path: str, query: Query) -> Any:
    """The reply to a GET: JSON, or text for logs."""
    if path == "/config":
        return _config(session)
    if path == "/overview":
        return _cluster(session)
    if path == "/jobs/overview":
        return {"jobs": [replies.job_summary(job) for job in session.jobs]}
    if path == "/jars":
        return {"address": "", "files": session.programs}
    if path == "/taskmanagers":
        managers = [replies.task_manager(session, n) for n in range(session.task_managers)]
        return {"taskmanagers": managers}
    if found := re.fullmatch(r"/taskmanagers/executor-(\d+)(/.*)?", path):
        number, rest = int(found[1]), found[2]
        if number >= session.task_managers:
            raise NotFoundError(path)
        return _files(rest) if rest else replies.task_manager(session, number)
    if path.startswith("/jobmanager/"):
        return _job_manager(path.removeprefix("/jobmanager"), query)
    if found := re.fullmatch(r"/jobs/([0-9a-f]{32})(/.*)?", path):
        try:
            job = session.find(found[1])
        except StopIteration:
            raise NotFoundError(path) from None
        return _job_answer(session, job, found[2] or "", query)
    raise NotFoundError(path)


def _job_answer(session: Session, job: replies.Job, path: str, query: Query) -> Any:
    if path in _JOB_CALLS:
        return _JOB_CALLS[path](job)
    if path in {"/log", "/stdout"}:
        return _files(path)
    if found := re.fullmatch(r"/vertices/([0-9a-f]{32})(/.*)?", path):
        try:
            index = job.index_of(found[1])
        except StopIteration:
            raise NotFoundError(path) from None
        return _VERTEX_CALLS[found[2] or ""](job, index, query)
    if found := re.fullmatch(r"/checkpoints/details/(\d+)", path):
        return replies.checkpoint_details(job, int(found[1]))
    if found := re.fullmatch(r"/checkpoints/details/(\d+)/subtasks/([0-9a-f]{32})", path):
        return replies.checkpoint_subtasks(job, int(found[1]), job.index_of(found[2]))
    if found := re.fullmatch(r"/(savepoints|checkpoints)/([0-9a-f]{32})", path):
        # The first question finds the operation in progress.
        asked = session.polls[found[2]] = session.polls.get(found[2], 0) + 1
        if asked == 1:
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        done: dict[str, Any] = {"location": "file:/savepoints/savepoint-1"}
        if found[1] == "checkpoints":
            done = {"checkpointId": 75}
        return {"status": {"id": "COMPLETED"}, "operation": done}
    raise NotFoundError(path)


class _Handler(BaseHTTPRequestHandler):
    session: Session

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        file = STATIC / (path.lstrip("/") or "index.html")
        if file.is_relative_to(STATIC) and ".." not in path and file.is_file():
            self._send(200, file.read_bytes(), mimetypes.guess_type(file.name)[0] or "")
            return
        try:
            body = answer(self.session, path, parse_qs(url.query))
        except (NotFoundError, KeyError):
            self._errors(404, f"Not found: {path}")
            return
        if isinstance(body, str):
            self._send(200, body.encode(), "text/plain; charset=utf-8")
        else:
            self._json(200, body)

    def _change(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length).decode()
        is_form = self.headers.get("Content-Type", "").startswith("multipart/form-data")
        token = self.session.token
        if token is not None and self.headers.get("Authorization") != f"Bearer {token}":
            self._errors(401, "This call needs the token of the server.")
            return
        body = text if is_form else json.loads(text) if text else None
        self.session.changes.append((self.command, self.path, body))
        if self.path == "/jars/upload":
            self.session.programs.append(replies.program())
            self._json(200, {"filename": replies.program()["id"], "status": "success"})
        elif self.path.startswith("/jars/"):
            self._json(200, {"jobid": self.session.jobs[0].jid})
        elif self.command == "POST":
            self._json(202, {"request-id": identifier("trigger", len(self.session.changes))})
        else:
            self._json(202 if self.command == "PATCH" else 200, {})

    do_POST = do_PATCH = do_PUT = do_DELETE = _change  # noqa: N815  # names of http.server

    def _json(self, status: int, body: Any) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _errors(self, status: int, message: str) -> None:
        self._json(status, {"errors": [message]})

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _server(session: Session, port: int) -> ThreadingHTTPServer:
    handler = type("Handler", (_Handler,), {"session": session})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    return server


@contextmanager
def serving(session: Session, port: int = 0) -> Iterator[str]:
    """Serve a session, and give the address of its dashboard."""
    server = _server(session, port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    name, port = [*sys.argv[1:], "one"][0], int([*sys.argv[2:], "8081"][0])
    print(f"{name} on http://127.0.0.1:{port}/")
    _server(SESSIONS[name](), port).serve_forever()
