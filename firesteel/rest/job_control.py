"""Calls that change a job: cancel, savepoint, stop, checkpoint; and the state of such calls."""

from __future__ import annotations

import re
from concurrent.futures import Future
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.errors import FiresteelError
from firesteel.rest import models
from firesteel.rest.calls import Call, RestError

_CHECKPOINT_NUMBER = re.compile(r"chk-(\d+)")
_FORMATS = ("CANONICAL", "NATIVE")
_CHECKPOINT_TYPES = ("CONFIGURED", "FULL", "INCREMENTAL")


def cancel(call: Call) -> models.Nothing:
    """Cancel a job. Canceling it again is no error, and the reply does not wait for its end."""
    mode = call.one("mode") or "cancel"
    if mode != "cancel":
        raise RestError(
            400 if mode != "stop" else 501,
            f"The termination mode {mode!r} is not supported. Use cancel, or POST .../stop.",
        )
    job = call.job()
    status = job.status()
    if status.is_terminal_state() and status is not JobStatus.CANCELED:
        raise RestError(
            409,
            f"Job cancellation failed because the job has already reached another terminal state "
            f"({status.name}).",
        )
    job.cancel()
    return {}


def _running_job(call: Call) -> JobHandle:
    job = call.job()
    if job.status().is_terminal_state():
        raise RestError(409, f"Job {job.job_id} is not running: its state is {job.status().name}.")
    return job


def _choice(call: Call, name: str, allowed: tuple[str, ...], default: str) -> str:
    value = str(call.field(name, str, default)).upper()
    if value not in allowed:
        raise RestError(400, f"{name} must be one of {', '.join(allowed)}, got {value!r}.")
    return value


def _begin(begin: Any) -> Future[Any]:
    """Begin an operation. A refusal is an error of the call."""
    try:
        future: Future[Any] = begin()
    except FiresteelError as error:
        raise RestError(400, str(error)) from error
    return future


def savepoint(call: Call) -> models.TriggerResponse:
    job = _running_job(call)
    directory = call.field("target-directory", str)
    stop = "suspend" if call.field("cancel-job", bool, False) else None
    return _trigger_savepoint(call, job, directory, stop)


def stop(call: Call) -> models.TriggerResponse:
    job = _running_job(call)
    directory = call.field("targetDirectory", str)
    return _trigger_savepoint(
        call, job, directory, "drain" if call.field("drain", bool, False) else "suspend"
    )


def _trigger_savepoint(
    call: Call, job: JobHandle, directory: str | None, stop: str | None
) -> models.TriggerResponse:
    native = _choice(call, "formatType", _FORMATS, "CANONICAL") == "NATIVE"
    return call.operations.start(
        "savepoint",
        str(job.job_id),
        lambda: _begin(lambda: job.savepoint(directory, stop, native=native)),
        lambda location: {"location": location},
        call.field("triggerId", str),
    )


def savepoint_status(call: Call) -> models.AsyncOperation:
    return call.operations.status("savepoint", call.id("jobid"), call.id("triggerid"))


def trigger_checkpoint(call: Call) -> models.TriggerResponse:
    job = _running_job(call)
    _choice(call, "checkpointType", _CHECKPOINT_TYPES, "CONFIGURED")
    return call.operations.start(
        "checkpoint",
        str(job.job_id),
        lambda: _begin(job.checkpoint),
        _checkpoint_result,
        call.field("triggerId", str),
    )


def _checkpoint_result(path: str) -> dict[str, Any]:
    numbers = _CHECKPOINT_NUMBER.findall(path)
    return {"checkpointId": int(numbers[-1]) if numbers else -1}


def checkpoint_status(call: Call) -> models.AsyncOperation:
    return call.operations.status("checkpoint", call.id("jobid"), call.id("triggerid"))


def dispose(call: Call) -> models.TriggerResponse:
    path = call.field("savepoint-path", str)
    if not path:
        raise RestError(400, "The field 'savepoint-path' is missing.")
    return call.operations.start(
        "disposal",
        "",
        lambda: call.operations.background.submit(call.dispatcher.dispose_savepoint, path),
        lambda _: {},
        call.field("triggerId", str),
    )


def disposal_status(call: Call) -> models.AsyncOperation:
    return call.operations.status("disposal", "", call.id("triggerid"))
