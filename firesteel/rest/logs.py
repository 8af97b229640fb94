"""Calls for the logs, the output and the thread dumps of the driver and of task managers."""

from __future__ import annotations

import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from starlette.responses import PlainTextResponse

from firesteel.dispatcher.archive import ArchivedJob
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.dispatcher.job_handle import NoAnswerError
from firesteel.errors import FiresteelError
from firesteel.logs import ProcessLogs
from firesteel.rest import models
from firesteel.rest.calls import Call, RestError
from firesteel.rest.job_view import now_millis
from firesteel.rest.task_managers import Process, find_process

_SECONDS = 10.0
_DRIVER = "jobmanager"
_WORKER = "taskmanager"
# Files by their endings.
_ENDINGS = ("log", "out")
# The end of a file that is shown.
_MOST_BYTES = 1 << 20


def _text(text: str) -> PlainTextResponse:
    return PlainTextResponse(
        text, headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    )


def _ending(name: str, role: str) -> str:
    for ending in _ENDINGS:
        if name == f"{role}.{ending}":
            return ending
    raise RestError(404, f"There is no log file {name!r}")


def _files(role: str, texts: dict[str, str]) -> models.LogFiles:
    now = now_millis()
    return {
        "logs": [
            {"name": f"{role}.{ending}", "size": len(texts[ending].encode()), "mtime": now}
            for ending in _ENDINGS
        ]
    }


# The driver


def _driver(call: Call) -> dict[str, str]:
    logs: ProcessLogs | None = call.logs
    return {ending: "" if logs is None else logs.text(ending) for ending in _ENDINGS}


def driver_log(call: Call) -> PlainTextResponse:
    return _text(_driver(call)["log"])


def driver_output(call: Call) -> PlainTextResponse:
    return _text(_driver(call)["out"])


def driver_logs(call: Call) -> models.LogFiles:
    """Return the files of the driver, and those of the job masters with their own processes."""
    found = _files(_DRIVER, _driver(call))
    for name, path in _master_files(call.dispatcher).items():
        if path.exists():
            facts = path.stat()
            found["logs"].append(
                {"name": name, "size": facts.st_size, "mtime": int(facts.st_mtime * 1000)}
            )
    return found


def driver_file(call: Call) -> PlainTextResponse:
    name = call.path["filename"]
    path = _master_files(call.dispatcher).get(name)
    if path is not None:
        return _text(_end_of(path))
    return _text(_driver(call)[_ending(name, _DRIVER)])


def _master_files(dispatcher: Dispatcher) -> dict[str, Path]:
    """Return the files of all job masters with their own processes, by name."""
    return {
        f"job-{job.job_id}.{ending}": path
        for job in dispatcher.jobs()
        for ending in _ENDINGS
        if (path := dispatcher.job_file(job, ending)) is not None
    }


def _end_of(path: Path) -> str:
    """Return the last lines of a file. A job that waits for slots has no file yet."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_BYTES))
            if size > _MOST_BYTES:
                file.readline()
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


# The job master of a job


def _master(call: Call, ending: str) -> PlainTextResponse:
    job = call.job()
    if isinstance(job, ArchivedJob):
        raise RestError(404, f"The job {job.job_id} has ended, and its log is not in the archive.")
    path = call.dispatcher.job_file(job, ending)
    return _text(_driver(call)[ending] if path is None else _end_of(path))


def master_log(call: Call) -> PlainTextResponse:
    """Return the log of a job master. In an application it is that of the driver."""
    return _master(call, "log")


def master_output(call: Call) -> PlainTextResponse:
    return _master(call, "out")


# Task managers


def ask_process(process: Process, what: str) -> Any:
    """Ask one of the slots in a process."""
    job, level, slot = process.place
    answer: Future[Any] = job.ask_slot(level, slot, what, {})
    try:
        found = answer.result(_SECONDS)
    except TimeoutError:
        raise RestError(503, f"{process.id} did not answer within {_SECONDS:.0f} s") from None
    except NoAnswerError:
        raise
    except FiresteelError as error:
        raise RestError(404, f"{process.id} cannot answer: {error}") from error
    if isinstance(found, dict) and "error" in found:
        raise RestError(503, f"{process.id} cannot answer: {found['error']}")
    return found


def _worker(call: Call) -> dict[str, str]:
    texts: dict[str, str] = ask_process(find_process(call), "log")
    return texts


def worker_log(call: Call) -> PlainTextResponse:
    return _text(_worker(call)["log"])


def worker_output(call: Call) -> PlainTextResponse:
    return _text(_worker(call)["out"])


def worker_logs(call: Call) -> models.LogFiles:
    return _files(_WORKER, _worker(call))


def worker_file(call: Call) -> PlainTextResponse:
    ending = _ending(call.path["filename"], _WORKER)
    return _text(_worker(call)[ending])


def worker_threads(call: Call) -> models.ThreadDump:
    return {"threadInfos": ask_process(find_process(call), "threads")}
