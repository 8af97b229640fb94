"""Builds the subtasks of a slot and connects them to each other and to the exchanges."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import repeat

from firesteel.graph.job_graph import JobGraph, key_types_of, keyed_edges
from firesteel.graph.partitioning import ShipStrategy, source_subtasks
from firesteel.graph.stream_graph import FeedbackEdge, StreamEdge, StreamNode
from firesteel.protocol.program import JobProgram
from firesteel.protocol.rows import BufferRow
from firesteel.state.backend_factory import create_keyed_state
from firesteel.task.chain import LocalEdge
from firesteel.task.exchange.buffers import decode_buffer
from firesteel.task.exchange.hash_writer import HashWriter
from firesteel.task.exchange.keys import key_selection
from firesteel.task.exchange.record_writers import (
    BroadcastWriter,
    CustomWriter,
    OneTargetWriter,
    RecordWriter,
    RoundRobinWriter,
    ShuffleWriter,
)
from firesteel.task.exchange.sorted_exchange import SortingWriter
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.iteration import (
    IterationHeadOperator,
    IterationTailOperator,
    Records,
    uniform_batches,
)
from firesteel.task.runtime_context import SubtaskInfo
from firesteel.task.subtask import Subtask
from firesteel.usercode import pickling, value_pickler

_WRITERS: dict[ShipStrategy, type[RecordWriter]] = {
    ShipStrategy.FORWARD: OneTargetWriter,
    ShipStrategy.GLOBAL: OneTargetWriter,
    ShipStrategy.REBALANCE: RoundRobinWriter,
    ShipStrategy.RESCALE: RoundRobinWriter,
    ShipStrategy.SHUFFLE: ShuffleWriter,
    ShipStrategy.BROADCAST: BroadcastWriter,
    ShipStrategy.HASH: HashWriter,
    ShipStrategy.CUSTOM: CustomWriter,
}


def create_record_writer(
    edge: StreamEdge,
    source: StreamNode,
    target: StreamNode,
    subtask: int,
    first_slot: int,
    send: Callable[[BufferRow], None],
) -> RecordWriter:
    """Create the writer of an edge. ``first_slot`` is the slot of the target's subtask 0."""
    writer = _WRITERS[edge.partitioning.strategy]
    return writer(edge, source, target, subtask, first_slot, send)


Send = Callable[[BufferRow], None]

# The deepest way from one operator to the next: a watermark that passes a gate.
_CALLS_PER_OPERATOR = 10
_CALLS_OF_USERS = 1000


@dataclass(frozen=True, slots=True)
class SlotWiring:
    """The subtasks of a slot, and the subtask that takes the rows of an edge or a node.

    subtasks: by vertex, in topological order.
    """

    subtasks: dict[int, Subtask]
    by_edge: dict[int, Subtask]
    by_node: dict[int, Subtask]
    level_of_edge: dict[int, int]
    level_of_node: dict[int, int]


def wire_slot(program: JobProgram, level: int, slot: int, send: Send) -> SlotWiring:
    levels = program.levels
    graph = levels.job_graph
    vertex_of = {node: vertex.id for vertex in graph.vertices for node in vertex.operators}
    wiring = SlotWiring(
        subtasks={},
        by_edge={},
        by_node={},
        level_of_edge={e.id: levels.level_of[vertex_of[e.target]] for e in graph.edges},
        level_of_node={node: levels.level_of[vertex] for node, vertex in vertex_of.items()},
    )
    for vertex in graph.vertices:
        index = slot - levels.slot_offset[vertex.slot_sharing_group]
        if levels.level_of[vertex.id] == level and 0 <= index < vertex.parallelism:
            info = SubtaskInfo(
                job_id=program.job_id,
                index=index,
                attempt=program.attempt,
                job_parameters=program.job_parameters,
                batch=program.batch,
                cached_files=program.cached_files,
                checkpointed=program.checkpointed,
                file_systems=program.file_systems,
                auto_watermark_interval=program.auto_watermark_interval,
                fence=program.fence,
            )
            to_driver = _to_driver(send, slot, index)
            key_types = key_types_of(graph)
            keyed_state = partial(create_keyed_state, program.state_backend)
            subtask = Subtask(vertex, graph.nodes, info, to_driver, key_types, keyed_state)
            wiring.subtasks[vertex.id] = subtask
            wiring.by_node.update(dict.fromkeys(vertex.operators, subtask))
    _connect_iterations(wiring, graph)
    # From the last to the first, because a loop may continue into a local subtask.
    for subtask in reversed(wiring.subtasks.values()):
        outgoing = [edge for edge in graph.edges if edge.source in subtask.operators]
        subtask.connect(
            chained=[edge for edge in graph.chained_edges if edge.source in subtask.operators],
            writers=[
                _create_writer(program, edge, subtask, send)
                for edge in outgoing
                if edge.id not in levels.local_edges
            ],
            local=[
                _local_edge(edge, subtask.index, wiring.subtasks[vertex_of[edge.target]])
                for edge in outgoing
                if edge.id in levels.local_edges
            ],
        )
        for edge in graph.edges:
            if edge.target in subtask.operators:
                wiring.by_edge[edge.id] = subtask
                _add_channels(program, edge, subtask)
    _make_room_for_calls(len(wiring.by_node))
    return wiring


def producer_of(program: JobProgram, edge: int, upstream: int) -> tuple[int, int]:
    """Return the level and the slot of the subtask that sends on a channel."""
    levels = program.levels
    graph = levels.job_graph
    source = next(one.source for one in graph.edges if one.id == edge)
    vertex = next(one for one in graph.vertices if source in one.operators)
    return levels.level_of[vertex.id], levels.slot_offset[vertex.slot_sharing_group] + upstream


def _make_room_for_calls(operators: int) -> None:
    """Raise Python's recursion limit: the operators of a slot call each other."""
    needed = _CALLS_OF_USERS + _CALLS_PER_OPERATOR * operators
    if needed > sys.getrecursionlimit():
        sys.setrecursionlimit(needed)


def _connect_iterations(wiring: SlotWiring, graph: JobGraph) -> None:
    """Register tails. If both ends are in this slot, records go round within the epoch."""
    into = {edge.target: edge for edge in graph.edges}
    for edge in graph.feedback_edges:
        if edge.head in wiring.by_node and edge.tail in into:
            head = _head_of(edge, wiring)
            head.shares[edge.tail] = partial(_share_of, head.context, graph, into[edge.tail])
        if edge.tail not in wiring.by_node:
            continue
        subtask = wiring.by_node[edge.tail]
        tail = subtask.operators[edge.tail]
        assert isinstance(tail, IterationTailOperator)
        subtask.tails[edge.tail] = tail
        if edge.head in wiring.by_node:
            _head_of(edge, wiring).tails.append(tail)


def _head_of(edge: FeedbackEdge, wiring: SlotWiring) -> IterationHeadOperator:
    head = wiring.by_node[edge.head].operators[edge.head]
    assert isinstance(head, IterationHeadOperator)
    return head


def _share_of(
    context: OperatorContext, graph: JobGraph, edge: StreamEdge, records: Records
) -> Records:
    """Return the records that an edge into a tail would bring to the subtask of ``context``.

    After rescaling all subtasks divide the same records, each for itself. A partitioner that uses
    Python's random numbers therefore has to draw the same ones in all of them.
    """
    # Functions of their own: a subtask in this slot may use those of the edge.
    edge = pickling.loads(value_pickler.dumps(edge))
    rows: list[BufferRow] = []
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    writer = create_record_writer(edge, source, target, 0, 0, rows.append)
    functions = edge.partitioning.functions
    drawn = random.getstate()
    random.seed(0)
    try:
        for function in functions:
            function.open(context.bare_runtime_context())
        for batch in uniform_batches(*records):
            writer.emit(batch)
        writer.flush()
        for function in functions:
            function.close()
    finally:
        random.setstate(drawn)
    batches = [decode_buffer(row.payload) for row in rows if row.target == context.subtask.index]
    values = [value for batch in batches for value in batch.values]
    timestamps: list[int | None] = [
        stamp for batch in batches for stamp in batch.timestamps or repeat(None, len(batch.values))
    ]
    return values, timestamps


def _to_driver(send: Send, slot: int, subtask: int) -> Callable[[int, int, bytes], None]:
    """Return a function that sends rows to the driver, marked with node and subtask."""
    return lambda node, kind, payload: send(BufferRow(slot, node, subtask, 0, kind, payload))


def _add_channels(program: JobProgram, edge: StreamEdge, subtask: Subtask) -> None:
    nodes = program.levels.job_graph.nodes
    source, target = nodes[edge.source], nodes[edge.target]
    if edge.input_index == 0:
        process = subtask.consumers[edge.target].emit
    else:
        process = subtask.operators[edge.target].process_second
    strategy = edge.partitioning.strategy
    selection = key_selection(edge, f"key_by after {source.name}")
    subtask.in_flight.add_edge(edge, source, target, selection)
    for upstream in source_subtasks(
        strategy, subtask.index, source.parallelism, target.parallelism
    ):
        subtask.gate.add_channel(
            edge.id,
            upstream,
            process,
            selection,
            input_index=0 if target.spec.has_one_time else edge.input_index,
        )


def _local_edge(edge: StreamEdge, upstream: int, receiver: Subtask) -> LocalEdge:
    entrance = receiver.gate.accept_local(edge.id, upstream)
    return LocalEdge(edge, entrance, receiver.consumers[edge.target])


def _create_writer(
    program: JobProgram, edge: StreamEdge, subtask: Subtask, send: Send
) -> RecordWriter:
    levels = program.levels
    nodes = levels.job_graph.nodes
    target = nodes[edge.target]
    first_slot = levels.slot_offset[target.slot_sharing_group]
    create: Callable[..., RecordWriter] = create_record_writer
    if program.batch and edge.id in keyed_edges(levels.job_graph):
        create = SortingWriter
    return create(edge, nodes[edge.source], target, subtask.index, first_slot, send)
