"""The record writer of an edge, by the edge's ship strategy."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.task.hash_writer import HashWriter
from firesteel.task.record_writers import (
    BroadcastWriter,
    CustomWriter,
    OneTargetWriter,
    RecordWriter,
    RoundRobinWriter,
    ShuffleWriter,
)
from firesteel.task.rows import BufferRow

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
    """``first_slot`` is the slot of the target's subtask 0."""
    writer = _WRITERS[edge.partitioning.strategy]
    return writer(edge, source, target, subtask, first_slot, send)
