"""The global committer of batch jobs: commits in the driver, once all tasks have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from firesteel.graph.operator_specs import SinkSpec
from firesteel.graph.stream_graph import StreamGraph
from firesteel.task.operators.sink import commit
from firesteel.task.operators.two_phase_commit_sink import commit_in_driver
from firesteel.usercode.failures import called


def commit_prepared(
    graph: StreamGraph, job_id: str, committables: Mapping[int, Sequence[Any]]
) -> None:
    """Commit ``committables``, by sink node. Errors name the operator of the sink."""
    for node_id, prepared in committables.items():
        node = graph.nodes[node_id]
        call = partial(called, node.name)
        if isinstance(node.spec, SinkSpec):
            commit(node.spec.sink, prepared, call)
        else:
            commit_in_driver(node, job_id, prepared, call)
