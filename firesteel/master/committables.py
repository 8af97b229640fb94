"""What sinks have prepared: which of it waits for a checkpoint, and which may be committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.graph.job_graph import JobGraph
from firesteel.graph.operator_specs import TwoPhaseCommitSinkSpec
from firesteel.master.state_ledger import StateLedger
from firesteel.protocol.messages import AbandonedState, OperatorHandle, SubtaskHandle

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
    """``waiting`` for their checkpoint to complete; then ``due``; then carried by control rows."""

    _waiting: list[_Prepared] = field(default_factory=list)
    _due: list[_Prepared] = field(default_factory=list)
    _carried: list[_Prepared] = field(default_factory=list)

    def prepared(
        self, epoch: int, place: Place, by_node: Mapping[int, tuple[Any, ...]], *, wait: bool
    ) -> None:
        """A subtask has prepared something; without checkpoints it need not ``wait``."""
        into = self._waiting if wait else self._due
        into += [_Prepared(epoch, place, node, some) for node, some in by_node.items() if some]

    def confirm(self, epoch: int) -> None:
        """A checkpoint at the end of this epoch is complete."""
        self._due += [one for one in self._waiting if one.epoch <= epoch]
        self._waiting = [one for one in self._waiting if one.epoch > epoch]

    def carry(self) -> dict[Place, dict[int, tuple[Any, ...]]]:
        """All that is due, for the control rows of an epoch."""
        self._carried = [*self._due]
        by_place: dict[Place, dict[int, tuple[Any, ...]]] = {}
        for one in self._due:
            nodes = by_place.setdefault(one.place, {})
            nodes[one.node] = (*nodes.get(one.node, ()), *one.committables)
        return by_place

    def carried_out(self) -> None:
        """The epoch that carried them has ended well."""
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
        """What a checkpoint must keep: prepared, but not known to be committed."""
        return tuple(
            committable
            for one in (*self._due, *self._waiting)
            if one.place == (vertex, subtask) and one.node == node
            for committable in one.committables
        )

    def behind_checkpoints_of(self, vertex: int, subtask: int, node: int) -> tuple[Any, ...]:
        """What no completed checkpoint holds."""
        return tuple(
            committable
            for one in self._waiting
            if one.place == (vertex, subtask) and one.node == node
            for committable in one.committables
        )

    def by_node(self) -> dict[int, list[Any]]:
        """Everything, for a batch job: it commits in the driver."""
        prepared: dict[int, list[Any]] = {}
        for one in (*self._due, *self._waiting):
            prepared.setdefault(one.node, []).extend(one.committables)
        return prepared


@dataclass(frozen=True, slots=True)
class _Records:
    epoch: int
    node: int
    records: list[Any]


@dataclass(slots=True)
class CollectedOutput:
    """With checkpoints (``wait``), records are held until one confirms their epoch.

    A job that goes back to its last checkpoint makes what came after it again, so what was not
    confirmed is forgotten then. It outlives the attempts of a job.
    """

    wait: bool = False
    _waiting: list[_Records] = field(default_factory=list)
    _due: list[_Records] = field(default_factory=list)

    def add(self, epoch: int, node: int, records: list[Any]) -> None:
        into = self._waiting if self.wait else self._due
        into.append(_Records(epoch, node, records))

    def confirm(self, epoch: int) -> None:
        """A checkpoint at the end of this epoch is complete."""
        self._due += [one for one in self._waiting if one.epoch <= epoch]
        self._waiting = [one for one in self._waiting if one.epoch > epoch]

    def confirm_all(self) -> None:
        """The job has come to its end."""
        self._due += self._waiting
        self._waiting = []

    def go_back(self) -> None:
        """The job starts over from its last checkpoint."""
        self._waiting = []

    def take(self) -> list[tuple[int, list[Any]]]:
        """What may leave now, as pairs of a node and its records, in the order of epochs."""
        due, self._due = self._due, []
        return [(one.node, one.records) for one in due]


Abandoned = Mapping[Place, Mapping[int, tuple[AbandonedState, ...]]]
"""By (vertex, subtask) and node."""


def abandoned_states(
    graph: JobGraph, ledger: StateLedger, committables: Committables, completed: int
) -> Abandoned:
    """The transactions of all subtasks, as of the last epoch.

    ``completed`` is the newest checkpoint that is complete. A subtask that has not run an epoch
    has not undone what was there before it: that is handed on.
    """
    abandoned: dict[Place, dict[int, tuple[AbandonedState, ...]]] = {}
    for vertex in graph.vertices:
        for node in vertex.operators:
            if not isinstance(graph.nodes[node].spec, TwoPhaseCommitSinkSpec):
                continue
            for subtask in range(vertex.parallelism):
                handle = ledger.handle(vertex.id, subtask)
                last = AbandonedState(
                    handle.operators.get(node, OperatorHandle()).whole,
                    committables.behind_checkpoints_of(vertex.id, subtask, node),
                    completed,
                )
                before = handle.abandoned.get(node, ())
                # An attempt that ran no epoch has nothing to add: they may be many.
                states = before if last in before else (*before, last)
                abandoned.setdefault((vertex.id, subtask), {})[node] = states
    return abandoned


def with_abandoned(
    handles: Mapping[Place, SubtaskHandle], abandoned: Abandoned
) -> Mapping[Place, SubtaskHandle]:
    """What the next attempt begins with."""
    return {
        place: replace(
            handles.get(place, SubtaskHandle()), abandoned=dict(abandoned.get(place, {}))
        )
        for place in (*handles, *(place for place in abandoned if place not in handles))
    }
