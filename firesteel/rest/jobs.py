"""Calls about jobs: lists, details, plan, configuration, exceptions, results."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.errors import FiresteelError
from firesteel.master.job_description import FailureRecord, VertexDescription
from firesteel.rest import models
from firesteel.rest.calls import Call, RestError
from firesteel.rest.job_view import (
    JOB_STATES,
    JobView,
    VertexView,
    count_states,
    duration,
    now_millis,
)

_MOST_EXCEPTIONS = 20
# Flink's names for the outcome of a job.
_APPLICATION_STATES = {
    JobStatus.FINISHED: "SUCCEEDED",
    JobStatus.FAILED: "FAILED",
    JobStatus.CANCELED: "CANCELED",
}


def job_ids(call: Call) -> models.JobIdsWithStatus:
    return {
        "jobs": [
            {"id": str(job.job_id), "status": job.status().name} for job in call.dispatcher.jobs()
        ]
    }


def job_summaries(call: Call) -> models.JobSummaries:
    return {"jobs": [summary(JobView(job)) for job in call.dispatcher.jobs()]}


def summary(view: JobView) -> models.JobSummary:
    counts = Counter(subtask.status for vertex in view.vertices for subtask in vertex.subtasks)
    tasks = {state.lower(): counts.get(state, 0) for state in count_states(())}
    return {
        "jid": view.id,
        "name": view.job.name,
        "state": view.status.name,
        "start-time": view.start,
        "end-time": view.end,
        "duration": view.duration,
        "last-modification": max(view.timestamps.values(), default=view.start),
        "pending-operators": 0,
        "jobType": view.job_type,
        "schedulerType": "Default",
        "tasks": {"total": counts.total(), **tasks},
    }


def job_details(call: Call) -> models.JobDetails:
    view = JobView(call.job())
    return {
        "jid": view.id,
        "name": view.job.name,
        "isStoppable": False,
        "state": view.status.name,
        "job-type": view.job_type,
        "schedulerType": "Default",
        "application-id": view.id,
        "start-time": view.start,
        "end-time": view.end,
        "duration": view.duration,
        "maxParallelism": -1,
        "now": now_millis(),
        "pending-operators": 0,
        "timestamps": {state: view.timestamps.get(state, 0) for state in JOB_STATES},
        "vertices": [_vertex(vertex) for vertex in view.vertices],
        "status-counts": count_states(vertex.status for vertex in view.vertices),
        "plan": _plan(view),
    }


def _vertex(vertex: VertexView) -> models.JobVertexInfo:
    description = vertex.description
    return {
        "id": vertex.id,
        "slotSharingGroupId": description.slot_sharing_group,
        "name": description.name,
        "maxParallelism": description.max_parallelism,
        "parallelism": description.parallelism,
        "status": vertex.status,
        "start-time": vertex.start,
        "end-time": vertex.end,
        "duration": duration(vertex.start, vertex.end),
        "tasks": vertex.counts(),
        "metrics": vertex.io_metrics(),
    }


def job_plan(call: Call) -> models.PlanInfo:
    return {"plan": _plan(JobView(call.job()))}


def _plan(view: JobView) -> models.Plan:
    return {
        "jid": view.id,
        "name": view.job.name,
        "type": view.job_type,
        "nodes": [_node(vertex) for vertex in view.description.vertices],
    }


def _node(vertex: VertexDescription) -> models.PlanNode:
    node: models.PlanNode = {
        "id": vertex.id,
        "parallelism": vertex.parallelism,
        "operator": "",
        "operator_strategy": "",
        "description": "<br/>".join(
            escape(operator.description or operator.name) for operator in vertex.operators
        )
        + "<br/>",
        "optimizer_properties": {},
    }
    if vertex.inputs:
        node["inputs"] = [
            {
                "num": number,
                "id": edge.vertex,
                "ship_strategy": edge.ship_strategy,
                "exchange": "pipelined_bounded",
            }
            for number, edge in enumerate(vertex.inputs)
        ]
    return node


def job_status(call: Call) -> models.JobStatusInfo:
    return {"status": call.job().status().name}


def job_config(call: Call) -> models.JobConfig:
    job = call.job()
    settings = job.configuration()
    return {
        "jid": str(job.job_id),
        "name": job.name,
        "execution-config": {
            "restart-strategy": _restart_strategy(settings),
            "job-parallelism": job.description().parallelism,
            "object-reuse-mode": settings.get("pipeline.object-reuse", "false") == "true",
            "user-config": _user_parameters(settings),
        },
    }


def _restart_strategy(settings: dict[str, str]) -> str:
    kind = settings.get("restart-strategy.type") or settings.get("restart-strategy")
    if kind:
        return kind
    has_checkpoints = "execution.checkpointing.interval" in settings
    return "exponential-delay" if has_checkpoints else "none"


def _user_parameters(settings: dict[str, str]) -> dict[str, str]:
    """Return the parameters that the program has set for its functions."""
    found = {}
    for entry in settings.get("pipeline.global-job-parameters", "").split(","):
        key, colon, value = entry.partition(":")
        if colon:
            found[key.strip().strip("'\"")] = value.strip().strip("'\"")
    return found


def job_configuration(call: Call) -> list[models.ConfigurationEntry]:
    settings = call.job().configuration()
    return [{"key": key, "value": value} for key, value in sorted(settings.items())]


def job_exceptions(call: Call) -> models.JobExceptions:
    limit = call.count("maxExceptions", _MOST_EXCEPTIONS)
    failures = call.job().failures()
    return {
        "exceptionHistory": {
            "entries": [_exception(failure) for failure in failures[:limit]],
            "truncated": len(failures) > limit,
        }
    }


def _exception(failure: FailureRecord) -> models.ExceptionEntry:
    return {
        "exceptionName": failure.exception_name,
        "stacktrace": failure.stacktrace,
        "timestamp": failure.timestamp,
        "failureLabels": {},
        "taskName": failure.operator,
        "endpoint": None,
        "taskManagerId": None,
        "concurrentExceptions": [],
        "record": failure.record,
        "function": failure.function,
        "restarted": failure.restarted,
    }


def job_accumulators(call: Call) -> models.JobAccumulators:
    return {
        "job-accumulators": [],
        "user-task-accumulators": [
            {"name": name, "type": "LongCounter", "value": str(value)}
            for name, value in call.job().accumulators().items()
        ],
        "serialized-user-task-accumulators": {},
    }


def execution_result(call: Call) -> models.JobExecutionResult:
    """Return the outcome of a job. The result of a running job is in progress."""
    job = call.job()
    outcome = job.result()
    if not outcome.done():
        return {"status": {"id": "IN_PROGRESS"}}
    view = JobView(job)
    counters = _json_values(job.accumulators())
    result: models.JobResult = {
        "jobId": view.id,
        "jobName": job.name,
        "jobStatus": view.status.name,
        "success": view.status is JobStatus.FINISHED,
        "startTime": view.start,
        "endTime": view.end,
        "netRuntime": view.duration,
        "accumulatorResults": counters,
        "id": view.id,
        "name": job.name,
        "application-status": _APPLICATION_STATES.get(view.status, "UNKNOWN"),
        "application-id": view.id,
        "start-time": view.start,
        "end-time": view.end,
        "net-runtime": view.duration,
        "accumulator-results": counters,
        "failure": _failure_of(job),
    }
    failures = job.failures()
    if view.status is JobStatus.FAILED and failures:
        result["failure-cause"] = {
            "class": failures[0].exception_name,
            "stack-trace": failures[0].stacktrace,
        }
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}


def _failure_of(job: JobHandle) -> str | None:
    error = job.result().exception()
    if error is None:
        return None
    return str(error) if isinstance(error, FiresteelError) else f"{type(error).__name__}: {error}"


def _json_values(values: dict[str, Any]) -> dict[str, Any]:
    plain = bool | int | float | str | None
    return {
        name: value if isinstance(value, plain) else str(value) for name, value in values.items()
    }


# Applications


def applications(call: Call) -> models.Applications:
    return {"applications": [_application(JobView(job)) for job in call.dispatcher.jobs()]}


def _application(view: JobView) -> models.Application:
    return {
        "id": view.id,
        "name": view.job.name,
        "status": view.status.name,
        "start-time": view.start,
        "end-time": view.end,
        "duration": view.duration,
        "jobs": {view.status.name: 1},
    }


def _job_of_application(call: Call) -> JobHandle:
    application = call.id("applicationid")
    for job in call.dispatcher.jobs():
        if str(job.job_id) == application:
            return job
    raise RestError(404, f"Application {application} not found")


def application(call: Call) -> models.ApplicationDetails:
    view = JobView(_job_of_application(call))
    return {
        "id": view.id,
        "name": view.job.name,
        "status": view.status.name,
        "start-time": view.start,
        "end-time": view.end,
        "duration": view.duration,
        "timestamps": dict(view.timestamps),
        "jobs": [summary(view)],
    }


def application_exceptions(call: Call) -> models.ApplicationExceptions:
    job = _job_of_application(call)
    return {
        "exceptionHistory": {
            "entries": [
                {
                    "exceptionName": failure.exception_name,
                    "stacktrace": failure.stacktrace,
                    "timestamp": failure.timestamp,
                    "jobId": str(job.job_id),
                }
                for failure in job.failures()
            ]
        }
    }
