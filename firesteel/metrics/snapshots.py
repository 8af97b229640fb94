"""Snapshots of many subtasks become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Snapshot = Mapping[str, Mapping[str, Any]]


def merge_snapshots(snapshots: Iterable[Snapshot]) -> dict[str, Any]:
    """Merge what ``MetricRegistry.snapshot`` gave, in the order of the subtasks.

    Counters, meters and distributions are added up; a gauge becomes the list of all values. The
    result can be merged again, and the grouping does not matter.

    >>> merge_snapshots([{"n": {"kind": "counter", "count": 1}},
    ...                  {"n": {"kind": "counter", "count": 2}}])
    {'n': {'kind': 'counter', 'count': 3}}
    """
    merged: dict[str, Any] = {}
    for snapshot in snapshots:
        for name, value in snapshot.items():
            so_far = merged.get(name)
            merged[name] = dict(value) if so_far is None else _merge(name, so_far, value)
    return merged


def _merge(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    if a["kind"] != b["kind"]:
        raise ValueError(
            f"The metric '{name}' is a {a['kind']} in one subtask and a {b['kind']} in another; "
            "choose another name for one of them"
        )
    return _MERGERS[a["kind"]](a, b)


def _merge_counters(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "counter", "count": a["count"] + b["count"]}


def _merge_meters(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "meter", "count": a["count"] + b["count"], "rate": a["rate"] + b["rate"]}


def _merge_gauges(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "gauge", "values": [*a["values"], *b["values"]]}


def _merge_distributions(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    if a["count"] == 0 or b["count"] == 0:
        return dict(b if a["count"] == 0 else a)
    count = a["count"] + b["count"]
    total = a["sum"] + b["sum"]
    return {
        "kind": "distribution",
        "count": count,
        "sum": total,
        "min": min(a["min"], b["min"]),
        "max": max(a["max"], b["max"]),
        "mean": total / count,
    }


_MERGERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]] = {
    "counter": _merge_counters,
    "meter": _merge_meters,
    "gauge": _merge_gauges,
    "distribution": _merge_distributions,
}
