"""The metrics of a job in the driver, merged over subtasks, with a unique name per operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

Snapshot = Mapping[str, Mapping[str, Any]]


def merge_snapshots(snapshots: Iterable[Snapshot]) -> dict[str, Any]:
    """Merge results of ``MetricRegistry.snapshot``, in the order of the subtasks.

    Counters, meters and distributions are summed. A gauge becomes the list of all values. Results
    can be merged again, in any grouping.

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
            f"The metric '{name}' is a {a['kind']} in one subtask and a {b['kind']} in a different "
            "subtask; choose a different name for one of them"
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


OperatorSnapshots = Mapping[int, Snapshot]
"""The snapshots of one subtask by operator id."""


def job_report(names: Mapping[int, str], subtasks: Iterable[OperatorSnapshots]) -> dict[str, Any]:
    """Merge the snapshots of each operator over its subtasks.

    ``names`` has all operators in the order of the program. Among operators with metrics and the
    same name, the first one keeps the name, and the others get a number.

    >>> seen = {"Map.seen": {"kind": "counter", "count": 1}}
    >>> list(job_report({1: "Map", 2: "Map"}, [{1: seen, 2: seen}]))
    ['Map.seen', 'Map #2.seen']
    """
    by_operator = _by_operator(subtasks)
    reporting = {operator: name for operator, name in names.items() if operator in by_operator}
    report: dict[str, Any] = {}
    for operator, label in operator_labels(reporting).items():
        length = len(reporting[operator])
        merged = merge_snapshots(by_operator[operator])
        report.update({label + name[length:]: value for name, value in merged.items()})
    return report


def counter_totals(
    names: Mapping[int, str], subtasks: Iterable[OperatorSnapshots]
) -> dict[str, int]:
    """Return only the counters. Metrics of other kinds with the same name are ignored."""
    counters = [
        {
            operator: {name: value for name, value in snapshot.items() if _is_counter(value)}
            for operator, snapshot in subtask.items()
        }
        for subtask in subtasks
    ]
    return {name: metric["count"] for name, metric in job_report(names, counters).items()}


def operator_labels(names: Mapping[int, str]) -> dict[int, str]:
    """Return a label for each operator: its name, or ``name #2`` for the second one of a name.

    >>> operator_labels({1: "Map", 2: "Map #2", 3: "Map"})
    {1: 'Map', 2: 'Map #2', 3: 'Map #3'}
    """
    labels: dict[int, str] = {}
    taken = set[str]()
    # The user may have chosen a name such as "Map #2".
    given = set(names.values())
    for operator, name in names.items():
        label = name
        if name in taken:
            numbered = (f"{name} #{number}" for number in count(2))
            label = next(one for one in numbered if one not in taken and one not in given)
        taken.add(label)
        labels[operator] = label
    return labels


def _by_operator(subtasks: Iterable[OperatorSnapshots]) -> dict[int, list[Snapshot]]:
    found: dict[int, list[Snapshot]] = {}
    for subtask in subtasks:
        for operator, snapshot in subtask.items():
            found.setdefault(operator, []).append(snapshot)
    return found


def _is_counter(metric: Mapping[str, Any]) -> bool:
    return bool(metric["kind"] == "counter")
