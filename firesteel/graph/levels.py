"""Levels: which vertices run in which Spark stage, and which subtask runs in which slot."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.graph.job_graph import JobGraph


@dataclass(frozen=True, slots=True)
class Levels:
    """``level_of[vertex]``; ``slot_offset[group]``; ``slots[level]`` is its number of partitions.

    Subtask i of a vertex in slot sharing group g runs in slot ``slot_offset[g] + i``.
    ``local_edges`` (ids) stay inside a slot, in memory; every other edge crosses an exchange.
    """

    job_graph: JobGraph
    level_of: dict[int, int]
    slot_offset: dict[str, int]
    slots: tuple[int, ...]
    local_edges: frozenset[int]

    @property
    def required_slots(self) -> int:
        return max(self.slots)
