"""Committables of sinks: those that wait for a checkpoint, and those that may be committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.graph.job_graph import JobGraph
from firesteel.graph.operator_specs import SinkSpec, TwoPhaseCommitSinkSpec
from firesteel.master.state_ledger import StateLedger
from firesteel.protocol.messages import (
    AbandonedState,
    OperatorHandle,
    SubtaskAck,
    SubtaskHandle,
    abandoned_by,
)

Place = tuple[int, int]
"""(vertex, subtask)"""


@dataclass(frozen=True, slots=True)
class _Prepared:
    epoch: int
    place: Place
    node: int
    committables: tuple[Any, ...]


@dataclass(slots=True)
class Committables:
    """Committables wait for their checkpoint, are due when it is complete, then travel to slots."""

    _waiting: list[_Prepared] = field(default_factory=list)
    _due: list[_Prepared] = field(default_factory=list)
    _carried: list[_Prepared] = field(default_factory=list)

    def prepared(
        self, epoch: int, place: Place, by_node: Mapping[int, tuple[Any, ...]], *, wait: bool
    ) -> None:
        """A subtask has prepared committables. Without checkpoints they do not ``wait``."""
        into = self._waiting if wait else self._due
        into += [_Prepared(epoch, place, node, some) for node, some in by_node.items() if some]

    def confirm(self, epoch: int) -> None:
        """A checkpoint at the end of this epoch is complete."""
        self._due += [one for one in self._waiting if one.epoch <= epoch]
        self._waiting = [one for one in self._waiting if one.epoch > epoch]

    def carry(self) -> dict[Place, dict[int, tuple[Any, ...]]]:
        """Return everything that is due, for the control rows of an epoch."""
        self._carried = [*self._due]
        by_place: dict[Place, dict[int, tuple[Any, ...]]] = {}
        for one in self._due:
            nodes = by_place.setdefault(one.place, {})
            nodes[one.node] = (*nodes.get(one.node, ()), *one.committables)
        return by_place

    def carried_out(self) -> None:
        """The epoch that carried committables has ended well."""
        carried = {id(one) for one in self._carried}
        self._due = [one for one in self._due if id(one) not in carried]
        self._carried = []

    @property
    def are_due(self) -> bool:
        return bool(self._due)

    @property
    def are_waiting(self) -> bool:
        return bool(self._waiting)

    def waiting_of(self, vertex: int, subtask: int, node: int) -> tuple[Any, ...]:
        """Return committables for a checkpoint: prepared, but not known to be committed."""
        return tuple(
            committable
            for one in (*self._due, *self._waiting)
            if one.place == (vertex, subtask) and one.node == node
            for committable in one.committables
        )

    def after_checkpoints_of(self, vertex: int, subtask: int, node: int) -> tuple[Any, ...]:
        """Return committables that no completed checkpoint holds."""
        return tuple(
            committable
            for one in self._waiting
            if one.place == (vertex, subtask) and one.node == node
            for committable in one.committables
        )

    def by_node(self) -> dict[int, list[Any]]:
        """Return everything by node, for a batch job, which commits in the driver."""
        prepared: dict[int, list[Any]] = {}
        for one in (*self._due, *self._waiting):
            prepared.setdefault(one.node, []).extend(one.committables)
        return prepared


Abandoned = Mapping[Place, Mapping[int, tuple[AbandonedState, ...]]]
"""By (vertex, subtask) and node."""


def abandoned_states(
    graph: JobGraph,
    ledger: StateLedger,
    committables: Committables,
    completed: int,
    *,
    has_newer_savepoint: bool,
    void: Sequence[SubtaskAck] = (),
) -> Abandoned:
    """Return the transactions and the open files of all subtasks, as of the last epoch.

    ``completed`` is the newest complete checkpoint. A subtask that has not run an epoch has not
    undone the transactions of the attempt before it, so they are passed on. A savepoint after the
    checkpoint may contain files of a sink, which must then stay. ``void`` are acks of an epoch that
    does not count.
    """
    specs = TwoPhaseCommitSinkSpec if has_newer_savepoint else TwoPhaseCommitSinkSpec | SinkSpec
    abandoned: dict[Place, dict[int, tuple[AbandonedState, ...]]] = {}
    # A subtask that has acknowledged an epoch has undone the work of the attempts before it.
    has_undone = {(ack.vertex, ack.subtask) for ack in void}
    for vertex in graph.vertices:
        for node in vertex.operators:
            if not isinstance(graph.nodes[node].spec, specs):
                continue
            for subtask in range(vertex.parallelism):
                handle = ledger.handle(vertex.id, subtask)
                last = AbandonedState(
                    handle.operators.get(node, OperatorHandle()).whole,
                    committables.after_checkpoints_of(vertex.id, subtask, node),
                    completed,
                )
                has_run = (vertex.id, subtask) in has_undone
                before = () if has_run else handle.abandoned.get(node, ())
                # An attempt that ran no epoch has nothing to add, and such attempts may be many.
                states = before if last in before else (*before, last)
                abandoned.setdefault((vertex.id, subtask), {})[node] = states
    transactional = {
        node for node, one in graph.nodes.items() if isinstance(one.spec, TwoPhaseCommitSinkSpec)
    }
    for ack in void:
        nodes = abandoned.setdefault((ack.vertex, ack.subtask), {})
        for node, work in abandoned_by(ack, transactional, completed).items():
            nodes[node] = (*nodes.get(node, ()), work)
    return abandoned


def with_abandoned(
    handles: Mapping[Place, SubtaskHandle], abandoned: Abandoned
) -> Mapping[Place, SubtaskHandle]:
    """Return the handles of the next attempt, with the transactions it has to undo."""
    return {
        place: replace(
            handles.get(place, SubtaskHandle()), abandoned=dict(abandoned.get(place, {}))
        )
        for place in (*handles, *(place for place in abandoned if place not in handles))
    }
