"""Values of metrics by Flink's names, for the job, its tasks and its operators.

REST calls and reporters read the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.rest.job_view import JobView, SubtaskView, VertexView, now_millis

Values = dict[str, float | str]
# Characters that separate names in ids of metrics, or that reporters reserve.
_RESERVED = re.compile(r"[^\w\-#>()]+")


def job_values(view: JobView) -> Values:
    """Return the metrics of a job."""
    checkpoints = view.job.checkpoints()
    counts, latest = checkpoints["counts"], checkpoints["latest"]
    restarts = view.job.restarts()
    overview = view.overview
    is_running = view.status is JobStatus.RUNNING
    running_since = view.timestamps.get("RUNNING", view.start)
    values: Values = {
        "numRestarts": restarts,
        "fullRestarts": restarts,
        "uptime": now_millis() - running_since if is_running else 0,
        "runningTime": now_millis() - running_since if is_running else 0,
        "downtime": 0 if is_running else _since(view, "FAILING"),
        "restartingTime": _since(view, "RESTARTING") if view.status is JobStatus.RESTARTING else 0,
        "numberOfCompletedCheckpoints": counts["completed"],
        "numberOfFailedCheckpoints": counts["failed"],
        "numberOfInProgressCheckpoints": counts["in_progress"],
        "totalNumberOfCheckpoints": counts["total"],
        # Firesteel's own: epochs and their durations, in milliseconds.
        "numEpochs": overview.get("epochs", 0),
        "lastEpochDuration": round(overview.get("last_epoch_seconds", 0.0) * 1000, 3),
        "longestEpochDuration": round(overview.get("longest_epoch_seconds", 0.0) * 1000, 3),
    }
    for name, seconds in overview.get("epoch_parts", {}).items():
        values[f"lastEpoch{name}Duration"] = round(seconds * 1000, 3)
    completed = latest["completed"] or latest["savepoint"]
    if completed is not None:
        values |= {
            "lastCheckpointDuration": completed["end_to_end_duration"],
            "lastCheckpointSize": completed["checkpointed_size"],
            "lastCheckpointFullSize": completed["state_size"],
            "lastCompletedCheckpointId": completed["id"],
            "lastCheckpointCompletedTimestamp": completed["trigger_timestamp"]
            + completed["end_to_end_duration"],
            "lastCheckpointExternalPath": completed["external_path"] or "n/a",
        }
    restored = latest["restored"]
    values["lastCheckpointRestoreTimestamp"] = (
        -1 if restored is None else restored["restore_timestamp"]
    )
    return values


def _since(view: JobView, status: str) -> int:
    at = view.timestamps.get(status)
    return 0 if at is None else max(0, now_millis() - at)


def task_values(subtask: SubtaskView) -> Values:
    """Return the metrics of a subtask as a whole."""
    return dict(subtask.figures.get("metrics", {}))


def operator_values(vertex: VertexView, subtask: SubtaskView) -> Iterator[tuple[str, Values]]:
    """Yield the name of each operator with its metrics, those of the user's functions included."""
    figures = subtask.figures
    of_operators = figures.get("operators", {})
    of_users = figures.get("user_metrics", {})
    for operator in vertex.description.operators:
        key = str(operator.node)
        values: Values = dict(of_operators.get(key, {}))
        prefix = f"{operator.name}."
        for name, metric in of_users.get(key, {}).items():
            values.update(_user_values(name.removeprefix(prefix), metric))
        yield operator.name, values


def _user_values(name: str, metric: Mapping[str, Any]) -> Values:
    kind = metric["kind"]
    if kind == "counter":
        return {name: metric["count"]}
    if kind == "meter":
        return {name: metric["rate"], f"{name}.count": metric["count"]}
    if kind == "gauge":
        value = metric["values"][0] if metric["values"] else None
        return {} if value is None else {name: value}
    return {
        f"{name}_{part}": value
        for part in ("count", "sum", "min", "max", "mean")
        if (value := metric[part]) is not None
    }


def subtask_values(vertex: VertexView, subtask: SubtaskView) -> Values:
    """Return all metrics of a subtask. Those of operators begin with the operator's name."""
    values = task_values(subtask)
    for operator, found in operator_values(vertex, subtask):
        scope = metric_scope(operator)
        values |= {f"{scope}.{name}": value for name, value in found.items()}
    return values


def metric_scope(name: str) -> str:
    """Return the name of an operator as it appears in ids of metrics.

    >>> metric_scope("Source: Kafka, orders")
    'Source__Kafka__orders'
    """
    return _RESERVED.sub(lambda found: "_" * len(found.group()), name)


def as_text(value: float | str) -> str:
    """Return a value as Flink's REST API writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.1f}"
    return str(value)


def skew(values: list[float]) -> float:
    """Return the average deviation from the average in percent of it, 100 at most, as Flink does.

    >>> skew([5.0, 5.0]), skew([10.0, 0.0]), skew([])
    (0.0, 100.0, 0.0)
    """
    average = sum(values) / len(values) if values else 0.0
    if not average:
        return 0.0
    deviation = sum(abs(average - value) for value in values) / len(values)
    return min(100.0, 100.0 * deviation / average)
