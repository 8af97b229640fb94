"""The driver's part of sinks: recovery before an attempt, and the commits of batch jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from firesteel.connectors.base import Sink
from firesteel.graph.operator_specs import SinkSpec, TwoPhaseCommitSinkSpec
from firesteel.graph.stream_graph import StreamGraph, StreamNode
from firesteel.metrics import MetricRegistry
from firesteel.task.operators.sink import commit
from firesteel.task.operators.two_phase_commit_sink import Transaction
from firesteel.task.runtime_context import SubtaskInfo, TaskRuntimeContext
from firesteel.usercode import pickling, value_pickler
from firesteel.usercode.failures import called


def commit_prepared(
    graph: StreamGraph, job_id: str, committables: Mapping[int, Sequence[Any]]
) -> None:
    """Commit ``committables``, by sink node. Errors name the operator of the sink."""
    for node_id, prepared in committables.items():
        node = graph.nodes[node_id]
        if isinstance(node.spec, SinkSpec):
            commit(node.spec.sink, prepared, partial(called, node.name))
        else:
            _commit_transactions(node, job_id, prepared)


def recover_sinks(
    graph: StreamGraph,
    committables: Mapping[tuple[int, int], Mapping[int, Sequence[Any]]],
    io_thread: Callable[[str], Executor],
    check: Callable[[], None],
) -> dict[int, Future[Any]]:
    """Let sinks prepare their systems for an attempt, each in a thread of its own.

    Args:
        graph: The graph of the job.
        committables: The committables of the restored checkpoint, by (vertex, subtask) and node.
        io_thread: Makes a thread.
        check: Raises LeadershipLostError if a different master leads.

    Returns:
        The end of the work by node.
    """
    recovering: dict[int, Future[Any]] = {}
    for node in graph.nodes.values():
        spec = node.spec
        if not isinstance(spec, SinkSpec) or type(spec.sink).recover is Sink.recover:
            continue
        prepared = [one for by_node in committables.values() for one in by_node.get(node.id, ())]
        thread = io_thread(f"firesteel-sink-{node.name}")
        recover = partial(spec.sink.recover_in_term, check=check)
        recovering[node.id] = thread.submit(called, node.name, recover, prepared)
        thread.shutdown(wait=False)
    return recovering


def _commit_transactions(
    node: StreamNode, job_id: str, transactions: Sequence[Transaction]
) -> None:
    """Commit the transactions of a TwoPhaseCommitSinkFunction with a copy of the function."""
    assert isinstance(node.spec, TwoPhaseCommitSinkSpec)
    function = pickling.loads(value_pickler.dumps(node.spec.function))
    context = TaskRuntimeContext(node, SubtaskInfo(job_id, 0, batch=True), MetricRegistry())
    called(node.name, function.open, context)
    try:
        for transaction in transactions:
            called(node.name, function.recover_and_commit, transaction.handle)
    finally:
        function.close()
