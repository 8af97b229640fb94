"""The rows that reach the driver at the end of an epoch, sorted by what they are for."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from firesteel import pickling
from firesteel.graph.operator_specs import CollectSpec
from firesteel.graph.stream_graph import StreamGraph
from firesteel.task.messages import SlotAck, SlotFailure, decode
from firesteel.task.rows import ACK, FAILURE, OUTPUT


@dataclass(slots=True)
class EpochRows:
    acks: list[SlotAck] = field(default_factory=list)
    failures: list[SlotFailure] = field(default_factory=list)
    # (node, subtask, lines or records)
    outputs: list[tuple[int, int, list[Any]]] = field(default_factory=list)

    @staticmethod
    def sort(rows: Iterable[Any]) -> EpochRows:
        sorted_rows = EpochRows()
        for row in rows:
            if row.kind == ACK:
                sorted_rows.acks.append(decode(row.payload))
            elif row.kind == FAILURE:
                sorted_rows.failures.append(decode(row.payload))
            elif row.kind == OUTPUT:
                sorted_rows.outputs.append((row.edge, row.channel, pickling.loads(row.payload)))
        return sorted_rows

    def deliver(self, graph: StreamGraph) -> None:
        """Print what print() sinks say, and hand collected records to whoever waits for them."""
        printed = False
        for node_id, _, content in self.outputs:
            if isinstance(graph.nodes[node_id].spec, CollectSpec):
                graph.driver_objects[node_id].add(content)
            else:
                sys.stdout.write("\n".join(content) + "\n")
                printed = True
        if printed:
            sys.stdout.flush()
