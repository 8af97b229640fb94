"""All calls of the REST API, one line each."""

from __future__ import annotations

from typing import Any

from firesteel.rest import (
    back_pressure,
    checkpoints,
    cluster,
    flame_graphs,
    job_control,
    jobs,
    logs,
    metrics,
    models,
    profiler,
    prometheus,
    rescaling,
    task_managers,
    vertices,
)
from firesteel.rest.calls import Endpoint, Handler

_JOB = "/jobs/{jobid}"
_VERTEX = _JOB + "/vertices/{vertexid}"
_SUBTASK = _VERTEX + "/subtasks/{subtaskindex}"
_TASK_MANAGER = "/taskmanagers/{taskmanagerid}"


def _get(
    path: str,
    handler: Handler,
    reply: Any,
    summary: str,
    *query: str,
    own: bool = False,
    waits: bool = False,
    status: int = 200,
) -> Endpoint:
    return Endpoint(
        "GET", path, handler, reply, summary, query=query, own=own, waits=waits, status=status
    )


def _change(
    method: str, path: str, handler: Handler, reply: Any, summary: str, *query: str, status: int
) -> Endpoint:
    return Endpoint(method, path, handler, reply, summary, status=status, changes=True, query=query)


_CLUSTER = (
    _get("/config", cluster.config, models.DashboardConfiguration, "Settings of the dashboard"),
    _get("/overview", cluster.overview, models.ClusterOverview, "Slots and jobs"),
    _get(
        "/jobmanager/config",
        cluster.configuration,
        list[models.ConfigurationEntry],
        "Settings of the driver",
    ),
    _get(
        "/jobmanager/environment",
        cluster.environment,
        models.EnvironmentInfo,
        "Environment of the driver",
    ),
    _get(
        "/jobmanager/metrics",
        cluster.driver_metrics,
        list[models.Metric],
        "Metrics of the driver",
        "get",
    ),
    _get(
        "/jobmanager/thread-dump",
        cluster.thread_dump,
        models.ThreadDump,
        "Stacks of the driver's threads",
    ),
    _get(
        "/metrics",
        prometheus.prometheus,
        str,
        "All metrics in the format of Prometheus",
        own=True,
    ),
    _get("/jars", cluster.jars, models.JarList, "Uploaded programs"),
)

_JOBS = (
    _get("/jobs", jobs.job_ids, models.JobIdsWithStatus, "Ids and states of all jobs"),
    _get("/jobs/overview", jobs.job_summaries, models.JobSummaries, "Overview of all jobs"),
    _get(
        "/jobs/metrics",
        metrics.all_job_metrics,
        list[models.AggregatedMetric],
        "Metrics aggregated over jobs",
        "get",
        "agg",
        "jobs",
    ),
    _get("/applications/overview", jobs.applications, models.Applications, "All applications"),
    _get(
        "/applications/{applicationid}",
        jobs.application,
        models.ApplicationDetails,
        "An application with its jobs",
    ),
    _get(
        "/applications/{applicationid}/exceptions",
        jobs.application_exceptions,
        models.ApplicationExceptions,
        "Exceptions of an application",
    ),
    _get(_JOB, jobs.job_details, models.JobDetails, "A job with its vertices and its plan"),
    _get(_JOB + "/status", jobs.job_status, models.JobStatusInfo, "The state of a job"),
    _get(_JOB + "/config", jobs.job_config, models.JobConfig, "The configuration of a job"),
    _get(
        _JOB + "/jobmanager/config",
        jobs.job_configuration,
        list[models.ConfigurationEntry],
        "All settings of a job",
    ),
    _get(
        _JOB + "/jobmanager/environment",
        lambda call: (call.job(), cluster.environment(call))[1],
        models.EnvironmentInfo,
        "The environment of a job's driver",
    ),
    _get(_JOB + "/plan", jobs.job_plan, models.PlanInfo, "The graph of a job"),
    _get(
        _JOB + "/exceptions",
        jobs.job_exceptions,
        models.JobExceptions,
        "Failures of a job, the newest first",
        "maxExceptions",
    ),
    _get(
        _JOB + "/metrics",
        metrics.job_metrics,
        list[models.Metric],
        "Metrics of a job",
        "get",
    ),
    _get(
        _JOB + "/accumulators",
        jobs.job_accumulators,
        models.JobAccumulators,
        "Counters of the user's functions",
        "includeSerializedValue",
    ),
    _get(
        _JOB + "/execution-result",
        jobs.execution_result,
        models.JobExecutionResult,
        "The outcome of a job",
    ),
    _get(
        _JOB + "/backpressure",
        back_pressure.job_back_pressure,
        models.JobBackPressure,
        "Back pressure of all vertices and its cause",
        own=True,
    ),
)

_CHECKPOINTS = (
    _get(
        _JOB + "/checkpoints",
        checkpoints.checkpoints,
        models.Checkpoints,
        "Counts, summary and history of checkpoints",
    ),
    _get(
        _JOB + "/checkpoints/config",
        checkpoints.checkpoint_config,
        models.CheckpointConfig,
        "The checkpoint settings of a job",
    ),
    _get(
        _JOB + "/checkpoints/details/{checkpointid}",
        checkpoints.checkpoint_details,
        models.Checkpoint,
        "A checkpoint",
    ),
    _get(
        _JOB + "/checkpoints/details/{checkpointid}/subtasks/{vertexid}",
        checkpoints.checkpoint_subtasks,
        models.TaskCheckpointDetails,
        "The subtasks of a vertex in a checkpoint",
    ),
)

_VERTICES = (
    _get(_VERTEX, vertices.vertex_details, models.VertexDetails, "A vertex with its subtasks"),
    _get(
        _VERTEX + "/taskmanagers",
        vertices.vertex_task_managers,
        models.VertexTaskManagers,
        "A vertex by task manager",
    ),
    _get(
        _VERTEX + "/subtasktimes",
        vertices.subtask_times,
        models.SubtaskTimes,
        "The times at which subtasks reached their states",
    ),
    _get(
        _VERTEX + "/watermarks",
        vertices.watermarks,
        list[models.Metric],
        "The input watermarks of the subtasks",
    ),
    _get(
        _VERTEX + "/backpressure",
        back_pressure.vertex_back_pressure,
        models.VertexBackPressure,
        "Back pressure of the subtasks",
    ),
    _get(
        _VERTEX + "/metrics",
        metrics.vertex_metrics,
        list[models.Metric],
        "Metrics of all subtasks",
        "get",
    ),
    _get(
        _VERTEX + "/jm-operator-metrics",
        metrics.coordinator_metrics,
        list[models.Metric],
        "Metrics of operators in the driver",
        "get",
    ),
    _get(
        _VERTEX + "/flamegraph",
        flame_graphs.flame_graph,
        models.FlameGraph,
        "Samples of the stacks of a vertex",
        "type",
        "subtaskindex",
    ),
    _get(
        _VERTEX + "/accumulators",
        vertices.vertex_accumulators,
        models.VertexAccumulators,
        "Counters of a vertex",
    ),
    _get(
        _VERTEX + "/subtasks/accumulators",
        vertices.subtask_accumulators,
        models.AllSubtaskAccumulators,
        "Counters of the subtasks",
    ),
    _get(
        _VERTEX + "/subtasks/metrics",
        metrics.all_subtask_metrics,
        list[models.AggregatedMetric],
        "Metrics aggregated over subtasks",
        "get",
        "agg",
        "subtasks",
    ),
    _get(_SUBTASK, vertices.subtask_details, models.SubtaskDetails, "A subtask"),
    _get(
        _SUBTASK + "/metrics",
        metrics.subtask_metrics,
        list[models.Metric],
        "Metrics of a subtask",
        "get",
    ),
    _get(
        _SUBTASK + "/attempts/{attempt}",
        vertices.subtask_attempt,
        models.SubtaskDetails,
        "An attempt of a subtask",
    ),
    _get(
        _SUBTASK + "/attempts/{attempt}/accumulators",
        vertices.attempt_accumulators,
        models.AttemptAccumulators,
        "Counters of an attempt of a subtask",
    ),
)

_LOGS = (
    _get("/jobmanager/log", logs.driver_log, str, "The end of the driver's log"),
    _get("/jobmanager/stdout", logs.driver_output, str, "The end of the driver's output"),
    _get("/jobmanager/logs", logs.driver_logs, models.LogFiles, "Log files of the driver"),
    _get("/jobmanager/logs/{filename}", logs.driver_file, str, "A log file of the driver"),
    _get(_JOB + "/log", logs.master_log, str, "The end of the job master's log", own=True),
    _get(_JOB + "/stdout", logs.master_output, str, "The end of the job master's output", own=True),
    *(
        _get(_TASK_MANAGER + path, handler, reply, summary, waits=True)
        for path, handler, reply, summary in (
            ("/log", logs.worker_log, str, "The end of a task manager's log"),
            ("/stdout", logs.worker_output, str, "The end of its output"),
            ("/logs", logs.worker_logs, models.LogFiles, "Log files of a task manager"),
            ("/logs/{filename}", logs.worker_file, str, "A log file of a task manager"),
            (
                "/thread-dump",
                logs.worker_threads,
                models.ThreadDump,
                "Stacks of a task manager's threads",
            ),
        )
    ),
)

_PROFILES = tuple(
    endpoint
    for where, owner, begin, listed, page in (
        (
            _TASK_MANAGER,
            "a task manager",
            profiler.profile_worker,
            profiler.worker_profiles,
            profiler.worker_profile,
        ),
        (
            "/jobmanager",
            "the driver",
            profiler.profile_driver,
            profiler.driver_profiles,
            profiler.driver_profile,
        ),
    )
    for endpoint in (
        _change("POST", f"{where}/profiler", begin, models.Profile, f"Profile {owner}", status=200),
        _get(f"{where}/profiler", listed, models.ProfileList, f"Profiles of {owner}"),
        _get(f"{where}/profiler/{{filename}}", page, str, f"A profile of {owner}, as HTML"),
    )
)

_TASK_MANAGERS = (
    _get("/taskmanagers", task_managers.task_managers, models.TaskManagers, "All task managers"),
    _get(
        "/taskmanagers/metrics",
        task_managers.all_task_manager_metrics,
        list[models.AggregatedMetric],
        "Metrics aggregated over task managers",
        "get",
        "agg",
        "taskmanagers",
    ),
    _get(_TASK_MANAGER, task_managers.task_manager, models.TaskManagerDetails, "A task manager"),
    _get(
        _TASK_MANAGER + "/metrics",
        task_managers.task_manager_metrics,
        list[models.Metric],
        "Metrics of a task manager",
        "get",
    ),
)

_CONTROL = (
    _change("PATCH", _JOB, job_control.cancel, models.Nothing, "Cancel a job", "mode", status=202),
    # Flink's dashboard cancels with a GET, so this one is a change too.
    _change(
        "GET", _JOB + "/yarn-cancel", job_control.cancel, models.Nothing, "Cancel a job", status=202
    ),
    _change(
        "POST",
        _JOB + "/savepoints",
        job_control.savepoint,
        models.TriggerResponse,
        "Take a savepoint",
        status=202,
    ),
    _get(
        _JOB + "/savepoints/{triggerid}",
        job_control.savepoint_status,
        models.AsyncOperation,
        "The state of a savepoint",
    ),
    _change(
        "POST",
        _JOB + "/stop",
        job_control.stop,
        models.TriggerResponse,
        "Stop a job with a savepoint",
        status=202,
    ),
    _change(
        "POST",
        _JOB + "/checkpoints",
        job_control.trigger_checkpoint,
        models.TriggerResponse,
        "Take a checkpoint",
        status=202,
    ),
    _get(
        _JOB + "/checkpoints/{triggerid}",
        job_control.checkpoint_status,
        models.AsyncOperation,
        "The state of a triggered checkpoint",
    ),
    _get(
        _JOB + "/resource-requirements",
        rescaling.resource_requirements,
        dict[str, models.VertexResources],
        "Bounds of the parallelism of each vertex",
    ),
    _change(
        "PUT",
        _JOB + "/resource-requirements",
        rescaling.change_requirements,
        models.Nothing,
        "Change the parallelism of vertices",
        status=200,
    ),
    _change(
        "PATCH",
        _JOB + "/rescaling",
        rescaling.rescale,
        models.TriggerResponse,
        "Change the parallelism of a job",
        "parallelism",
        status=202,
    ),
    _get(
        _JOB + "/rescaling/{triggerid}",
        rescaling.rescaling_status,
        models.AsyncOperation,
        "The state of a change of parallelism",
    ),
    _change(
        "POST",
        "/savepoint-disposal",
        job_control.dispose,
        models.TriggerResponse,
        "Delete a savepoint",
        status=200,
    ),
    _get(
        "/savepoint-disposal/{triggerid}",
        job_control.disposal_status,
        models.AsyncOperation,
        "The state of the deletion of a savepoint",
    ),
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *_CLUSTER,
    *_JOBS,
    *_CHECKPOINTS,
    *_VERTICES,
    *_TASK_MANAGERS,
    *_LOGS,
    *_PROFILES,
    *_CONTROL,
)
