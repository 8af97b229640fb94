"""Calls that change the parallelism of a running job: resource requirements, and rescaling."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.dispatcher.dispatcher import Bounds
from firesteel.dispatcher.job_handle import JobHandle, NoAnswerError
from firesteel.dispatcher.slot_pool import NoResourceAvailableError
from firesteel.errors import FiresteelError, InsufficientSlotsError, InvalidProgramError
from firesteel.rest import models
from firesteel.rest.calls import Call, RestError

# Flink's limit.
_HIGHEST_PARALLELISM = 1 << 15


def resource_requirements(call: Call) -> dict[str, models.VertexResources]:
    requirements = call.dispatcher.requirements(call.job())
    return {
        vertex: {"parallelism": {"lowerBound": bounds.lower, "upperBound": bounds.upper}}
        for vertex, bounds in requirements.items()
    }


def change_requirements(call: Call) -> models.Nothing:
    """Take new bounds for all vertices. The job restarts if its parallelism changes by that."""
    job = _running_job(call)
    bounds = _bounds(call, job)
    _begin(lambda: call.dispatcher.require(job, bounds))
    return {}


def rescale(call: Call) -> models.TriggerResponse:
    """Give all vertices one parallelism, as far as their maximum parallelism allows it."""
    job = _running_job(call)
    parallelism = call.count("parallelism", 0)
    if not 1 <= parallelism <= _HIGHEST_PARALLELISM:
        raise RestError(
            400,
            f"The query parameter parallelism must be a number from 1 to {_HIGHEST_PARALLELISM}.",
        )
    return call.operations.start(
        "rescaling",
        str(job.job_id),
        lambda: _begin(lambda: call.dispatcher.rescale(job, parallelism)),
        lambda _: {},
        call.field("triggerId", str),
    )


def rescaling_status(call: Call) -> models.AsyncOperation:
    return call.operations.status("rescaling", call.id("jobid"), call.id("triggerid"))


def _running_job(call: Call) -> JobHandle:
    job = call.job()
    status = job.status()
    if status is not JobStatus.RUNNING:
        raise RestError(409, f"Job {job.job_id} is not running: its state is {status.name}.")
    return job


def _begin(begin: Any) -> Future[Any]:
    """Begin to rescale. A refusal is an error of the call."""
    try:
        future: Future[Any] = begin()
    except (NoResourceAvailableError, InsufficientSlotsError) as error:
        raise RestError(409, str(error)) from error
    except InvalidProgramError as error:
        raise RestError(400, str(error)) from error
    except NoAnswerError:
        raise
    except FiresteelError as error:
        raise RestError(409, str(error)) from error
    return future


def _bounds(call: Call, job: JobHandle) -> dict[str, Bounds]:
    body = call.json()
    vertices = {vertex.id for vertex in job.description().vertices}
    missing, unknown = vertices - body.keys(), body.keys() - vertices
    if missing:
        raise RestError(400, f"The job vertices {', '.join(sorted(missing))} have no bounds.")
    if unknown:
        raise RestError(400, f"The job has no vertices {', '.join(sorted(unknown))}.")
    return {vertex: _bounds_of(vertex, given) for vertex, given in body.items()}


def _bounds_of(vertex: str, given: Any) -> Bounds:
    parallelism = given.get("parallelism") if isinstance(given, dict) else None
    if not isinstance(parallelism, dict):
        raise RestError(400, f"The job vertex {vertex} has no field 'parallelism'.")
    lower: Any = parallelism.get("lowerBound", 1)
    upper: Any = parallelism.get("upperBound")
    for bound in (lower, upper):
        if not isinstance(bound, int) or isinstance(bound, bool) or bound < 1:
            raise RestError(
                400, f"The bounds of the job vertex {vertex} must be numbers from 1 on."
            )
    if lower > upper:
        raise RestError(
            400, f"The lower bound of the job vertex {vertex} is higher than its upper bound."
        )
    return Bounds(lower, upper)
