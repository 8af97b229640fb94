"""Committing in the driver: what the tasks of a batch job prepared becomes visible at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from firesteel.graph.operator_specs import SinkSpec
from firesteel.graph.stream_graph import StreamGraph
from firesteel.task.errors import USER_ERRORS, user_function_error
from firesteel.task.operators.sink import commit
from firesteel.task.operators.two_phase_commit_sink import commit_in_driver


def commit_prepared(
    graph: StreamGraph, job_id: str, committables: Mapping[int, Sequence[Any]]
) -> None:
    """``committables`` by sink node. What a sink raises names its operator."""
    for node_id, prepared in committables.items():
        node = graph.nodes[node_id]
        call = partial(_call, node.name)
        if isinstance(node.spec, SinkSpec):
            commit(node.spec.sink, prepared, call)
        else:
            commit_in_driver(node, job_id, prepared, call)


def _call(operator: str, method: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except USER_ERRORS as error:
        raise user_function_error(error, operator, method, None, None) from error
