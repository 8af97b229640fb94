"""Compares bodies with the facts of Flink's OpenAPI file that ``flink_replies.json`` lists.

A schema is a word (a type, ``id``, or ``string`` with its values), a list of one schema, an object
by field, ``{"*": schema}`` for a map, or ``#Name`` for a schema of that name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FACTS = json.loads((Path(__file__).parent / "flink_replies.json").read_text())

# Fields and schemas in which the replies of real Flink differ from the file.
REAL: dict[str, Any] = {
    "#ApplicationID": "string",
    "#SlotSharingGroupId": "string",
    "#ResourceID": "string",
    "#ProcessingMode": "string exactly_once|at_least_once",
    "#MetricCollectionResponseBody": ["#Metric"],
    "#AggregatedMetricsResponseBody": ["#AggregatedMetric"],
    "#AggregatedMetric": {
        "id": "string",
        "min": "number",
        "max": "number",
        "avg": "number",
        "sum": "number",
        "skew": "number",
    },
    "#RawJson": "object",
    # Numbers and texts, where Flink has serialized Java objects.
    "#SerializedValueOptionalFailureObject": "any",
    "#JobConfigInfo": {"jid": "id", "name": "string", "execution-config": "#ExecutionConfigInfo"},
    # The class of a checkpoint decides about its fields.
    "#CheckpointStatistics": "#CheckpointStatistics",
}
# Fields that real Flink leaves out or sends as null.
OPTIONAL = {
    "value",
    "min",
    "max",
    "avg",
    "sum",
    "skew",
    "other-concurrent-attempts",
    "stream-graph",
    "optimizer_properties",
    "inputs",
    "local_strategy",
    "caching",
    "slots-free-and-blocked",
    "taskmanagers-blocked",
    "savepointFormat",
    "completed",
    "failed",
    "savepoint",
    "restored",
    "taskName",
    "endpoint",
    "taskManagerId",
    "operation",
    "failure-cause",
    "failureCause",
    "job-execution-result",
    "serializedThrowable",
    "applicationId",
    "external_path",
    "data",
    "location",
    "checkpointId",
}
_NUMBERS = re.compile(r"NaN|-?Infinity")


def problems(body: Any, schema: Any, place: str = "") -> list[str]:
    """Return what a body lacks or has of a wrong type."""
    if isinstance(schema, str) and schema.startswith("#"):
        real = REAL.get(schema, FACTS["schemas"].get(schema[1:]))
        if real == schema:
            real = FACTS["schemas"][schema[1:]]
        return problems(body, real, place)
    if isinstance(schema, list):
        if not isinstance(body, list):
            return [f"{place}: expected a list, got {body!r}"]
        return [p for i, one in enumerate(body) for p in problems(one, schema[0], f"{place}[{i}]")]
    if isinstance(schema, dict):
        return _object_problems(body, schema, place)
    return [] if _matches(body, schema) else [f"{place}: expected {schema}, got {body!r}"]


def _object_problems(body: Any, schema: dict[str, Any], place: str) -> list[str]:
    if not isinstance(body, dict):
        return [f"{place}: expected an object, got {body!r}"]
    if "*" in schema:
        return [
            p for key, one in body.items() for p in problems(one, schema["*"], f"{place}.{key}")
        ]
    found = []
    for name, kind in schema.items():
        if body.get(name) is not None:
            found += problems(body[name], kind, f"{place}.{name}")
        elif name not in OPTIONAL:
            found.append(f"{place}.{name} is missing")
    return found


def _matches(body: Any, kind: str) -> bool:
    name, _, values = kind.partition(" ")
    if name == "id":
        return isinstance(body, str) and re.fullmatch("[0-9a-f]{32}", body) is not None
    if name == "string":
        return isinstance(body, str) and (not values or body in values.split("|"))
    if name == "boolean":
        return isinstance(body, bool)
    if isinstance(body, bool):
        return False
    if name == "integer":
        return isinstance(body, int)
    if name == "number":
        return isinstance(body, int | float) or (
            isinstance(body, str) and _NUMBERS.fullmatch(body) is not None
        )
    return isinstance(body, dict | list | str | int | float)
