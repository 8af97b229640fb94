"""Records on their way to execute_and_collect: they leave when nothing can call them back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
