"""Metrics in the text format of Prometheus, with the names and labels of Flink's reporter.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Iterator, Mapping

from starlette.responses import Response

from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.rest.calls import Call
from firesteel.rest.cluster import driver_values
from firesteel.rest.job_view import JobView
from firesteel.rest.metric_values import (
    Values,
    job_values,
    operator_values,
    task_values,
)
from firesteel.rest.task_managers import process_values, processes

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NAME = re.compile(r"[^a-zA-Z0-9:_]")

Labels = dict[str, str]
Sample = tuple[str, Labels, float]


def prometheus(call: Call) -> Response:
    return Response(exposition(call.dispatcher).encode(), media_type=CONTENT_TYPE)


def exposition(dispatcher: Dispatcher) -> str:
    """Return all metrics. Samples of one name stand together, as the format wants it."""
    by_name: dict[str, list[tuple[Labels, float]]] = {}
    for name, labels, value in samples(dispatcher):
        by_name.setdefault(name, []).append((labels, value))
    lines = []
    for name, found in by_name.items():
        lines.append(f"# HELP {name} {name.rpartition('_')[2]}")
        lines.append(f"# TYPE {name} gauge")
        lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in found]
    return "\n".join(lines) + "\n"


def samples(dispatcher: Dispatcher) -> Iterator[Sample]:
    """Yield the metrics of the driver, the task managers and the jobs, as name, labels and value."""
    host = {"host": socket.gethostname()}
    yield from _scoped("flink_jobmanager", host, driver_values(dispatcher))
    for process in processes(dispatcher):
        labels = {"host": process.host.rpartition(":")[0], "tm_id": process.id}
        yield from _scoped("flink_taskmanager", labels, process_values(process))
    for job in dispatcher.jobs():
        view = JobView(job)
        labels = {**host, "job_id": view.id, "job_name": job.name}
        yield from _scoped("flink_jobmanager_job", labels, job_values(view))
        if view.status.is_terminal_state():
            continue
        yield from _of_tasks(view, labels)


def _of_tasks(view: JobView, job: Labels) -> Iterator[Sample]:
    for vertex in view.vertices:
        for subtask in vertex.subtasks:
            labels = {
                **job,
                "tm_id": subtask.task_manager,
                "task_id": vertex.id,
                "task_name": vertex.description.name,
                "subtask_index": str(subtask.index),
                "task_attempt_num": str(subtask.attempt),
            }
            yield from _scoped("flink_taskmanager_job_task", labels, task_values(subtask))
            ids = {operator.name: operator.id for operator in vertex.description.operators}
            for operator, values in operator_values(vertex, subtask):
                of_operator = {
                    **labels,
                    "operator_id": ids[operator],
                    "operator_name": operator,
                }
                yield from _scoped("flink_taskmanager_job_task_operator", of_operator, values)


def _scoped(scope: str, labels: Labels, values: Values) -> Iterator[Sample]:
    for name, value in values.items():
        if isinstance(value, str):
            # Texts, such as the path of a checkpoint, are not samples.
            continue
        yield f"{scope}_{_NAME.sub('_', name)}", labels, float(value)


def _labels(labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inner}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
