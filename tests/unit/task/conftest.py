"""Small pieces of graphs for the tests of the task side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.graph.operator_specs import MapSpec
from firesteel.graph.partitioning import Partitioning
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.graph.transformations import ChainingStrategy
from firesteel.protocol.rows import DATA, BufferRow
from firesteel.task.exchange.buffers import decode_buffer
from firesteel.task.exchange.record_writers import RecordWriter
from firesteel.task.slot_wiring import create_record_writer


def make_node(node_id: int, parallelism: int, buffer_timeout: int = 100) -> StreamNode:
    return StreamNode(
        id=node_id,
        operator_id=str(node_id),
        name=f"node {node_id}",
        description="",
        spec=MapSpec(str),
        parallelism=parallelism,
        max_parallelism=128,
        slot_sharing_group="default",
        chaining=ChainingStrategy.ALWAYS,
        buffer_timeout=buffer_timeout,
    )


class Sent:
    """A record writer with what it sent."""

    def __init__(
        self,
        partitioning: Partitioning,
        *,
        sources: int = 1,
        targets: int = 1,
        subtask: int = 0,
        first_slot: int = 0,
        buffer_timeout: int = 100,
        epoch: int = 0,
    ) -> None:
        self.rows: list[BufferRow] = []
        self.writer: RecordWriter = create_record_writer(
            StreamEdge(id=3, source=1, target=2, partitioning=partitioning),
            make_node(1, sources, buffer_timeout),
            make_node(2, targets),
            subtask,
            first_slot,
            self.rows.append,
        )
        self.writer.begin_epoch(epoch)

    def buffers(self) -> list[tuple[int, tuple[Any, Any, Any]]]:
        return [(r.target, decode_buffer(r.payload)) for r in self.rows if r.kind == DATA]

    def values(self) -> dict[int, list[Any]]:
        """What each slot got."""
        by_slot: dict[int, list[Any]] = {}
        for slot, (values, _, _) in self.buffers():
            by_slot.setdefault(slot, []).extend(values)
        return by_slot


@pytest.fixture
def sent() -> Callable[..., Sent]:
    return Sent
