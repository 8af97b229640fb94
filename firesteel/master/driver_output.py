"""Output of a job in the driver: printed lines and collected records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from firesteel.graph.operator_specs import CollectSpec
from firesteel.graph.stream_graph import StreamGraph


class Collector(Protocol):
    """The driver object of a collected stream."""

    def add(self, records: list[Any]) -> None:
        """Take records. May wait for a slow reader."""

    def release(self) -> None:
        """Stop waiting for the reader, because the job is being canceled."""


@dataclass(frozen=True, slots=True)
class _Records:
    epoch: int
    node: int
    records: list[Any]


@dataclass(slots=True)
class CollectedOutput:
    """Records of collected streams in the driver. It outlives the attempts of a job.

    With checkpoints (``wait``), records are held until a checkpoint confirms their epoch. A job that
    goes back to its last checkpoint makes later records again, so unconfirmed ones are dropped then.
    """

    wait: bool = False
    #: The last epoch that a checkpoint has confirmed.
    confirmed: int = -1
    _waiting: list[_Records] = field(default_factory=list)
    _due: list[_Records] = field(default_factory=list)

    def add(self, epoch: int, node: int, records: list[Any]) -> None:
        into = self._waiting if self.wait else self._due
        into.append(_Records(epoch, node, records))

    def confirm(self, epoch: int) -> None:
        """Release the records up to this epoch, because its checkpoint is complete."""
        self.confirmed = epoch
        self._due += [one for one in self._waiting if one.epoch <= epoch]
        self._waiting = [one for one in self._waiting if one.epoch > epoch]

    def until(self, epoch: int) -> dict[int, list[Any]]:
        """Return the records by node that wait for a checkpoint up to this epoch."""
        found: dict[int, list[Any]] = {}
        for one in self._waiting:
            if one.epoch <= epoch:
                found.setdefault(one.node, []).extend(one.records)
        return found

    def confirm_all(self) -> None:
        """Release all records, because the job has finished."""
        self._due += self._waiting
        self._waiting = []

    def go_back(self) -> None:
        """Drop unconfirmed records, because the job returns to its last checkpoint."""
        self._waiting = []

    def take(self) -> list[tuple[int, list[Any]]]:
        """Return records that may leave now, as pairs of a node and its records, in epoch order."""
        due, self._due = self._due, []
        return [(one.node, one.records) for one in due]


def sort_output(
    outputs: Iterable[tuple[int, list[Any]]], graph: StreamGraph
) -> tuple[list[str], list[tuple[int, list[Any]]]]:
    """Return the lines of ``print()``, and pairs of a node and its collected records."""
    lines: list[str] = []
    records: list[tuple[int, list[Any]]] = []
    for node_id, content in outputs:
        if isinstance(graph.nodes[node_id].spec, CollectSpec):
            records.append((node_id, content))
        else:
            lines += content
    return lines, records


def collectors_of(graph: StreamGraph) -> dict[int, Collector]:
    """Return the driver objects of all collected streams by node."""
    return {
        node.id: graph.driver_objects[node.id]
        for node in graph.nodes.values()
        if isinstance(node.spec, CollectSpec)
    }
