"""What the keys of operators are."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.common.typeinfo import TypeInformation
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge


def key_types_of(edges: Iterable[StreamEdge]) -> dict[int, TypeInformation | None]:
    """The types of the keys, by node; of a node with two keyed inputs, those of the first."""
    keyed = sorted(
        (edge for edge in edges if edge.partitioning.strategy is ShipStrategy.HASH),
        key=lambda edge: -edge.input_index,
    )
    return {edge.target: edge.partitioning.key_type for edge in keyed}
