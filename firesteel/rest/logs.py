"""Calls for the logs, the output and the thread dumps of the driver and of task managers."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from starlette.responses import PlainTextResponse

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
    return _files(_DRIVER, _driver(call))


def driver_file(call: Call) -> PlainTextResponse:
    return _text(_driver(call)[_ending(call.path["filename"], _DRIVER)])


# Task managers


def ask_process(process: Process, what: str) -> Any:
    """Ask one of the slots in a process."""
    job, level, slot = process.place
    answer: Future[Any] = job.ask_slot(level, slot, what, {})
    try:
        found = answer.result(_SECONDS)
    except TimeoutError:
        raise RestError(503, f"{process.id} did not answer within {_SECONDS:.0f} s") from None
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
