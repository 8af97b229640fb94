"""The order in which a slot of a batch job takes its rows.

Spark sorts the rows of a slot, on disk if they exceed its memory. The order has five ranks:

0. Headers and controls, and the news that an upstream slot has failed.
1. Broadcast sides. They are processed whole before the other side begins.
2. Rows of other inputs, and rows that pass through the slot.
3. KEYED rows, by key and first timestamp. Their payloads begin with their place in this order.
4. The other rows of keyed inputs, such as the ends of their channels.

Rows of ranks 1, 2 and 4 keep the order of their channels.
"""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.graph.job_graph import broadcast_edges, keyed_edges
from firesteel.graph.levels import Levels
from firesteel.protocol.rows import (
    ABORTED,
    CONTROL,
    DATA,
    END_OF_EPOCH,
    HEADER,
    IDLENESS,
    KEYED,
    WATERMARK,
    BufferRow,
)

FRONT, BROADCAST, REST, KEYED_RECORDS, KEYED_ENDS = (bytes([rank]) for rank in range(5))

CHANNEL_KINDS = (DATA, WATERMARK, IDLENESS, END_OF_EPOCH)
"""Kinds of rows whose ``edge`` is a stream edge."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order of the rows of one level.

    broadcast: ids of the edges that are processed first.
    keyed: ids of the edges that carry KEYED rows.
    """

    broadcast: frozenset[int]
    keyed: frozenset[int]

    @staticmethod
    def of_level(levels: Levels, level: int) -> RowOrder | None:
        """Return the order of a level, or None if its slots take rows in the order of arrival."""
        graph = levels.job_graph
        vertex_of = graph.vertex_of()
        arriving = frozenset(
            edge.id for edge in graph.edges if levels.level_of[vertex_of[edge.target].id] == level
        )
        order = RowOrder(arriving & broadcast_edges(graph), arriving & keyed_edges(graph))
        return order if order.broadcast or order.keyed else None

    def place(self, row: BufferRow) -> tuple[bytes, int, int, int]:
        """Return the place of a row, to sort by. Spark evaluates the same rule."""
        return self._rank(row), row.edge, row.channel, row.seq

    def _rank(self, row: BufferRow) -> bytes:
        if row.kind == KEYED:
            return row.payload
        if row.kind in (HEADER, CONTROL):
            return FRONT
        if row.kind in CHANNEL_KINDS:
            if row.kind == END_OF_EPOCH and row.payload == ABORTED:
                return FRONT
            if row.edge in self.broadcast:
                return BROADCAST
            if row.edge in self.keyed:
                return KEYED_ENDS
        return REST
