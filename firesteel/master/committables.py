"""What sinks have prepared: which of it waits for a checkpoint, and which may be committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
