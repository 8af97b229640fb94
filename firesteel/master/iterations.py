"""Iterations: the loops of a job, their records under way, and their end.

Pure, like the job master. Records that a tail reports with one epoch go to the head in the next, so
the content of a loop is known exactly between two epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from firesteel.graph.job_graph import JobGraph
from firesteel.graph.operator_specs import IterationHeadSpec
from firesteel.master.state_ledger import StateLedger
from firesteel.protocol.messages import OperatorHandle, SlotAck

# A loop that waits forever has an epoch this often.
_FOREVER_SECONDS = 1.0


@dataclass(slots=True)
class Loop:
    """Heads and tails whose records can meet: loops within loops end together.

    ``feeders`` are the nodes outside of the loop that send records into it. ``max_wait`` is None for
    a loop that never ends. ``empty_since`` is None while records may still come.
    """

    heads: frozenset[int]
    tails: frozenset[int]
    feeders: frozenset[int]
    max_wait: float | None
    pending: bool = False
    empty_since: float | None = None
    ended: bool = False

    def ends_at(self) -> float | None:
        if self.empty_since is None or self.max_wait is None or self.ended:
            return None
        return self.empty_since + self.max_wait


class Iterations:
    def __init__(self, graph: JobGraph, ledger: StateLedger) -> None:
        self._ledger = ledger
        self._vertex_of = {node: vertex.id for node, vertex in graph.vertex_of().items()}
        self._tails: dict[int, list[int]] = {}
        for edge in graph.feedback_edges:
            self._tails.setdefault(edge.head, []).append(edge.tail)
        self._loops = _loops_of(graph)

    def feedback(self, vertex: int, subtask: int) -> dict[int, dict[int, OperatorHandle]]:
        """Return the records for the heads in a subtask, as states of their tails."""
        return {
            head: {
                tail: handle
                for tail in tails
                if (handle := self._handle_of(tail, subtask)) is not None
            }
            for head, tails in self._tails.items()
            if self._vertex_of[head] == vertex
        }

    def _handle_of(self, tail: int, subtask: int) -> OperatorHandle | None:
        return self._ledger.handle(self._vertex_of[tail], subtask).operators.get(tail)

    def epoch_ended(
        self, acks: Iterable[SlotAck], finished: Mapping[tuple[int, int], bool], now: float
    ) -> None:
        """Note the records under way. ``finished`` is by vertex and subtask."""
        if not self._loops:
            return
        pending = {
            tail
            for slot in acks
            for ack in slot.subtasks
            for tail, feedback in ack.feedback.items()
            if feedback.records
        }
        going_on = {vertex for (vertex, _), ended in finished.items() if not ended}
        for loop in self._loops:
            loop.pending = bool(pending & loop.tails)
            if loop.pending or any(self._vertex_of[node] in going_on for node in loop.feeders):
                loop.empty_since = None
            elif loop.empty_since is None:
                loop.empty_since = now

    def due_at(self, now: float) -> Iterable[float]:
        """Yield the times at which the loops need an epoch."""
        for loop in self._loops:
            if loop.ended:
                continue
            if loop.pending:
                yield now
            elif (ends_at := loop.ends_at()) is not None:
                yield ends_at
            elif loop.empty_since is not None:
                yield now + _FOREVER_SECONDS

    def plan(self, now: float) -> frozenset[int]:
        """Return the heads whose loops are over in the epoch that is planned."""
        for loop in self._loops:
            ends_at = loop.ends_at()
            if ends_at is not None and ends_at <= now:
                loop.ended = True
        return frozenset(head for loop in self._loops if loop.ended for head in loop.heads)


def _loops_of(graph: JobGraph) -> list[Loop]:
    successors: dict[int, set[int]] = {node: set() for node in graph.nodes}
    for edge in (*graph.chained_edges, *graph.edges):
        successors[edge.source].add(edge.target)
    for feedback in graph.feedback_edges:
        successors[feedback.tail].add(feedback.head)
    heads = dict.fromkeys(edge.head for edge in graph.feedback_edges)
    reached = {node: _reachable(node, successors) for node in graph.nodes} if heads else {}
    loops: list[Loop] = []
    for head in heads:
        # Nodes that the head reaches and that reach the head.
        members = {node for node in reached[head] if head in reached[node]}
        if any(head in loop.heads for loop in loops):
            continue
        loops.append(_loop(members, graph, successors))
    return loops


def _loop(members: set[int], graph: JobGraph, successors: Mapping[int, set[int]]) -> Loop:
    heads = frozenset(edge.head for edge in graph.feedback_edges if edge.head in members)
    waits = [
        spec.max_wait
        for head in heads
        if isinstance(spec := graph.nodes[head].spec, IterationHeadSpec)
    ]
    return Loop(
        heads=heads,
        tails=frozenset(edge.tail for edge in graph.feedback_edges if edge.tail in members),
        feeders=frozenset(
            node for node in graph.nodes if node not in members and successors[node] & members
        ),
        max_wait=None if 0 in waits else max(waits) / 1000,
    )


def _reachable(start: int, successors: Mapping[int, set[int]]) -> set[int]:
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for node in successors[waiting.pop()] - found:
            found.add(node)
            waiting.append(node)
    return found
