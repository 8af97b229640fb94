"""The rows that reach the driver at the end of an epoch, sorted by what they are for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from firesteel.errors import JobExecutionError
from firesteel.graph.operator_specs import CollectSpec
from firesteel.graph.stream_graph import StreamGraph
from firesteel.protocol.messages import SlotAck, SlotFailure, decode
from firesteel.protocol.rows import ACK, FAILURE, OUTPUT
from firesteel.usercode import pickling


def print_lines(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


@dataclass(slots=True)
class EpochRows:
    """``outputs`` are pairs of a node and its lines or records."""

    acks: list[SlotAck] = field(default_factory=list)
    failures: list[SlotFailure] = field(default_factory=list)
    outputs: list[tuple[int, list[Any]]] = field(default_factory=list)

    @staticmethod
    def sort(rows: Iterable[Any]) -> EpochRows:
        """BufferRows, or Spark's rows of the same fields, without those of DataFrame sinks."""
        result = EpochRows()
        for row in rows:
            if row.kind == ACK:
                result.acks.append(decode(row.payload))
            elif row.kind == FAILURE:
                result.failures.append(decode(row.payload))
            elif row.kind == OUTPUT:
                result.outputs.append((row.edge, pickling.loads(row.payload)))
            else:
                raise JobExecutionError(f"a row of kind {row.kind} reached the driver")
        return result

    def deliver(
        self,
        graph: StreamGraph,
        print_lines: Callable[[list[str]], None],
        collect: Callable[[int, list[Any]], None],
    ) -> None:
        """The lines of print() go to a printer; ``collect`` takes a node and records of it."""
        lines: list[str] = []
        for node_id, content in self.outputs:
            if isinstance(graph.nodes[node_id].spec, CollectSpec):
                collect(node_id, content)
            else:
                lines += content
        if lines:
            print_lines(lines)


def hand_out(graph: StreamGraph, collected: Iterable[tuple[int, list[Any]]]) -> None:
    """Give records to whoever collects them; that may have to wait for a slow reader."""
    for node_id, records in collected:
        graph.driver_objects[node_id].add(records)
