"""Calls about metrics: values of one place, and aggregates over several."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from firesteel.rest import models
from firesteel.rest.calls import Call, RestError
from firesteel.rest.job_view import JobView
from firesteel.rest.metric_values import Values, as_text, job_values, skew, subtask_values

_AGGREGATES = ("min", "max", "avg", "sum", "skew")
_RANGES = re.compile(r"\d{1,9}(-\d{1,9})?")


def answer(call: Call, values: Values) -> list[models.Metric]:
    """Return the names of the metrics, or the values of those that ``get`` names."""
    wanted = call.words("get")
    if wanted is None:
        return [{"id": name} for name in sorted(values)]
    return [{"id": name, "value": as_text(values[name])} for name in wanted if name in values]


def answer_aggregated(call: Call, places: Sequence[Values]) -> list[models.AggregatedMetric]:
    """Return the names of the metrics, or aggregates over all places that have them."""
    wanted = call.words("get")
    names = sorted({name for values in places for name in values})
    if wanted is None:
        return [{"id": name} for name in names]
    kinds = [kind.lower() for kind in call.words("agg") or _AGGREGATES]
    for kind in kinds:
        if kind not in _AGGREGATES:
            raise RestError(400, f"There is no aggregation {kind!r}: {', '.join(_AGGREGATES)}.")
    found = []
    for name in wanted:
        numbers = list(_numbers(values[name] for values in places if name in values))
        if numbers:
            found.append(_aggregate(name, numbers, kinds))
    return found


def _numbers(values: Iterable[float | str]) -> Iterable[float]:
    for value in values:
        try:
            yield float(value)
        except ValueError:
            continue


def _aggregate(name: str, numbers: list[float], kinds: list[str]) -> models.AggregatedMetric:
    every: models.AggregatedMetric = {
        "id": name,
        "min": min(numbers),
        "max": max(numbers),
        "avg": sum(numbers) / len(numbers),
        "sum": sum(numbers),
        "skew": skew(numbers),
    }
    for kind in _AGGREGATES:
        if kind not in kinds:
            del every[kind]  # type: ignore[misc]  # all keys but the id are optional
    return every


def job_metrics(call: Call) -> list[models.Metric]:
    return answer(call, job_values(JobView(call.job())))


def all_job_metrics(call: Call) -> list[models.AggregatedMetric]:
    wanted = call.words("jobs")
    jobs = [job for job in call.dispatcher.jobs() if wanted is None or str(job.job_id) in wanted]
    return answer_aggregated(call, [job_values(JobView(job)) for job in jobs])


def vertex_metrics(call: Call) -> list[models.Metric]:
    vertex = JobView(call.job()).vertex(call)
    return answer(
        call,
        {
            f"{subtask.index}.{name}": value
            for subtask in vertex.subtasks
            for name, value in subtask_values(vertex, subtask).items()
        },
    )


def all_subtask_metrics(call: Call) -> list[models.AggregatedMetric]:
    vertex = JobView(call.job()).vertex(call)
    wanted = _ranges(call.words("subtasks"))
    return answer_aggregated(
        call,
        [
            subtask_values(vertex, subtask)
            for subtask in vertex.subtasks
            if wanted is None or any(subtask.index in one for one in wanted)
        ],
    )


def _ranges(words: list[str] | None) -> list[range] | None:
    """Read ranges such as ``0-3,5``."""
    if words is None:
        return None
    found = []
    for word in words:
        if not _RANGES.fullmatch(word):
            raise RestError(400, f"Subtasks are numbers and ranges such as 0-3,5; got {word!r}.")
        first, _, last = word.partition("-")
        found.append(range(int(first), int(last or first) + 1))
    return found


def subtask_metrics(call: Call) -> list[models.Metric]:
    vertex, index = JobView(call.job()).vertex(call), call.number("subtaskindex")
    if index >= len(vertex.subtasks):
        raise RestError(404, f"Vertex {vertex.id} has no subtask {index}")
    return answer(call, subtask_values(vertex, vertex.subtasks[index]))


def coordinator_metrics(call: Call) -> list[models.Metric]:
    """Return an empty list: no operator runs in the driver."""
    JobView(call.job()).vertex(call)
    return answer(call, {})
