"""Calls about the checkpoints of a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from statistics import fmean
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options, state_options
from firesteel.rest import models
from firesteel.rest.calls import Call, RestError
from firesteel.rest.vertices import percentile

_NONE = -1
# Flink's value for a job without periodic checkpoints.
_NEVER = (1 << 63) - 1


def checkpoints(call: Call) -> models.Checkpoints:
    found = call.job().checkpoints()
    summary, latest = found["summary"], found["latest"]
    restored = latest["restored"]
    return {
        "counts": found["counts"],
        "summary": {
            "checkpointed_size": _spread(summary["checkpointed_size"]),
            "state_size": _spread(summary["state_size"]),
            "end_to_end_duration": _spread(summary["end_to_end_duration"]),
            "alignment_buffered": _spread({}),
            "processed_data": _spread(summary.get("processed_data", {})),
            "persisted_data": _spread(summary.get("persisted_data", {})),
        },
        "latest": {
            "completed": _optional(latest["completed"]),
            "savepoint": _optional(latest["savepoint"]),
            "failed": _optional(latest["failed"]),
            "restored": None
            if restored is None
            else {
                "id": restored["id"],
                "restore_timestamp": restored["restore_timestamp"],
                "is_savepoint": restored["is_savepoint"],
                "external_path": restored["external_path"],
            },
        },
        "history": [_checkpoint(one, {}) for one in found["history"]],
    }


def _spread(values: Mapping[str, Any]) -> models.Spread:
    nan = "NaN"
    return {
        "min": values.get("min", 0),
        "max": values.get("max", 0),
        "avg": values.get("avg", 0),
        "p50": values.get("p50", nan),
        "p90": values.get("p90", nan),
        "p95": values.get("p95", nan),
        "p99": values.get("p99", nan),
        "p999": values.get("p999", nan),
    }


def _spread_of(values: Iterable[float]) -> models.Spread:
    ordered = sorted(values)
    if not ordered:
        return _spread({})
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
    return _spread(
        {
            "min": round(ordered[0]),
            "max": round(ordered[-1]),
            "avg": round(fmean(ordered)),
            **{name: percentile(ordered, share) for name, share in shares.items()},
        }
    )


def _optional(summary: Mapping[str, Any] | None) -> models.Checkpoint | None:
    return None if summary is None else _checkpoint(summary, {})


def _checkpoint(
    summary: Mapping[str, Any], tasks: dict[str, models.TaskCheckpoint]
) -> models.Checkpoint:
    status = summary["status"]
    is_savepoint = summary["is_savepoint"]
    body: models.Checkpoint = {
        "className": {"COMPLETED": "completed", "FAILED": "failed"}.get(status, "in_progress"),
        "id": summary["id"],
        "status": status,
        "is_savepoint": is_savepoint,
        "savepointFormat": summary["savepoint_format"],
        "trigger_timestamp": summary["trigger_timestamp"],
        "latest_ack_timestamp": _or_none(summary["latest_ack_timestamp"]),
        "checkpointed_size": summary["checkpointed_size"],
        "state_size": summary["state_size"],
        "end_to_end_duration": summary["end_to_end_duration"],
        "alignment_buffered": 0,
        "processed_data": summary.get("processed_data", 0),
        "persisted_data": summary.get("persisted_data", 0),
        "num_subtasks": summary["num_subtasks"],
        "num_acknowledged_subtasks": summary["num_acknowledged_subtasks"],
        "checkpoint_type": summary["checkpoint_type"],
        "tasks": tasks,
        "explanation": summary.get("explanation"),
        "epoch": summary.get("epoch", 0),
    }
    if status == "COMPLETED":
        body["external_path"] = (
            summary["external_path"] or "<checkpoint-not-externally-addressable>"
        )
        body["discarded"] = summary["discarded"]
    elif status == "FAILED":
        body["failure_timestamp"] = _or_none(summary["failure_timestamp"])
        body["failure_message"] = summary["failure_message"] or ""
    return body


def _or_none(value: int | None) -> int:
    return _NONE if value is None else value


def checkpoint_details(call: Call) -> models.Checkpoint:
    found = _find(call)
    vertices = {str(v.number): v for v in call.job().description().vertices}
    tasks = {
        vertex.id: _task(found, found["tasks"].get(number, {}).get("subtasks", []), count)
        for number, vertex in vertices.items()
        for count in (vertex.parallelism,)
    }
    return _checkpoint(found, tasks)


def _find(call: Call) -> Mapping[str, Any]:
    checkpoint_id = call.number("checkpointid")
    found = call.job().checkpoint_details(checkpoint_id)
    if found is None:
        raise RestError(
            404, f"Could not find checkpointing statistics for checkpoint {checkpoint_id}."
        )
    return found


def _task(
    checkpoint: Mapping[str, Any], subtasks: list[Mapping[str, Any]], parallelism: int
) -> models.TaskCheckpoint:
    acks = [subtask["ack_timestamp"] for subtask in subtasks]
    is_complete = len(subtasks) == parallelism
    status = checkpoint["status"]
    return {
        "id": checkpoint["id"],
        "status": "COMPLETED" if is_complete else status,
        "latest_ack_timestamp": max(acks, default=_NONE),
        "checkpointed_size": sum(subtask["checkpointed_size"] for subtask in subtasks),
        "state_size": sum(subtask["state_size"] for subtask in subtasks),
        "end_to_end_duration": max((s["end_to_end_duration"] for s in subtasks), default=_NONE),
        "alignment_buffered": 0,
        "processed_data": sum(_aligned(subtask, "processed") for subtask in subtasks),
        "persisted_data": sum(_aligned(subtask, "persisted") for subtask in subtasks),
        "num_subtasks": parallelism,
        "num_acknowledged_subtasks": len(subtasks),
    }


def _aligned(subtask: Mapping[str, Any], name: str) -> int:
    return int(subtask["alignment"].get(name, 0))


def checkpoint_subtasks(call: Call) -> models.TaskCheckpointDetails:
    found, vertex_id = _find(call), call.id("vertexid")
    vertex = next((v for v in call.job().description().vertices if v.id == vertex_id), None)
    if vertex is None:
        raise RestError(404, f"There is no vertex {vertex_id} in checkpoint {found['id']}.")
    subtasks = found["tasks"].get(str(vertex.number), {}).get("subtasks", [])
    by_index = {subtask["index"]: subtask for subtask in subtasks}
    return {
        **_task(found, subtasks, vertex.parallelism),
        "summary": {
            "checkpointed_size": _spread_of(s["checkpointed_size"] for s in subtasks),
            "state_size": _spread_of(s["state_size"] for s in subtasks),
            "end_to_end_duration": _spread_of(s["end_to_end_duration"] for s in subtasks),
            "checkpoint_duration": {
                "sync": _spread_of(s["checkpoint"]["sync"] for s in subtasks),
                "async": _spread_of(s["checkpoint"]["async"] for s in subtasks),
            },
            "alignment": {
                "buffered": _spread_of(0 for _ in subtasks),
                "processed": _spread_of(_aligned(s, "processed") for s in subtasks),
                "persisted": _spread_of(_aligned(s, "persisted") for s in subtasks),
                "duration": _spread_of(_aligned(s, "duration") for s in subtasks),
            },
            "start_delay": _spread_of(s["start_delay"] for s in subtasks),
        },
        "subtasks": [_subtask(index, by_index.get(index)) for index in range(vertex.parallelism)],
    }


def _subtask(index: int, found: Mapping[str, Any] | None) -> models.SubtaskCheckpoint:
    if found is None:
        return {"className": "pending", "index": index, "status": "pending_or_failed"}
    return {
        "className": "completed",
        "index": index,
        "status": "completed",
        "ack_timestamp": found["ack_timestamp"],
        "end_to_end_duration": found["end_to_end_duration"],
        "checkpointed_size": found["checkpointed_size"],
        "state_size": found["state_size"],
        "checkpoint": {
            "sync": found["checkpoint"]["sync"],
            "async": found["checkpoint"]["async"],
        },
        "alignment": {
            "buffered": 0,
            "processed": _aligned(found, "processed"),
            "persisted": _aligned(found, "persisted"),
            "duration": _aligned(found, "duration"),
        },
        "start_delay": found["start_delay"],
        "unaligned_checkpoint": bool(found.get("unaligned_checkpoint", False)),
        "aborted": False,
    }


def checkpoint_config(call: Call) -> models.CheckpointConfig:
    settings = Configuration.from_dict(call.job().configuration())
    o = checkpoint_options
    interval = settings.get(o.CHECKPOINTING_INTERVAL)
    retention = str(settings.get(o.EXTERNALIZED_RETENTION)).upper()
    directory = settings.get(o.CHECKPOINT_DIR)
    return {
        "mode": str(settings.get(o.CHECKPOINTING_MODE)).lower(),
        "interval": _millis(interval) if interval else _NEVER,
        "timeout": _millis(settings.get(o.CHECKPOINTING_TIMEOUT)),
        "min_pause": _millis(settings.get(o.CHECKPOINTING_MIN_PAUSE)),
        "max_concurrent": settings.get(o.MAX_CONCURRENT_CHECKPOINTS),
        "externalization": {
            "enabled": "NO_EXTERNALIZED" not in retention,
            "delete_on_cancellation": "DELETE_ON_CANCELLATION" in retention,
        },
        "state_backend": settings.get(state_options.STATE_BACKEND),
        "checkpoint_storage": directory or "memory",
        "unaligned_checkpoints": settings.get(o.UNALIGNED_CHECKPOINTS),
        "tolerable_failed_checkpoints": settings.get(o.TOLERABLE_FAILED_CHECKPOINTS),
        "aligned_checkpoint_timeout": _millis(settings.get(o.ALIGNED_TIMEOUT)),
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "changelog_storage": "",
        "changelog_periodic_materialization_interval": 0,
    }


def _millis(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)
