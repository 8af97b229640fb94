"""A job as it travels to the slots."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import cloudpickle

from firesteel.graph.levels import Levels
from firesteel.graph.stream_graph import StreamEdge
from firesteel.state.backend_settings import HASHMAP, StateBackendSettings


@dataclass(frozen=True, slots=True)
class JobProgram:
    """The graph with the user's functions.

    ``segment_directory`` is None where driver and slots share no directory.
    """

    job_id: str
    job_name: str
    attempt: int
    levels: Levels
    job_parameters: dict[str, str] = field(default_factory=dict)
    segment_directory: str | None = None
    inline_threshold: int = 64 * 1024
    batch: bool = False
    auto_watermark_interval: int = 200
    state_backend: StateBackendSettings = HASHMAP


@dataclass(frozen=True, slots=True)
class PackedProgram:
    """The bytes, and the module search path that the driver had.

    What the driver can import by name, a slot on the same machine can import too.
    """

    job_id: str
    attempt: int
    search_path: tuple[str, ...]
    # Specs and partitionings on their own, each: an operator never shares a function object with
    # another, whatever the user did.
    specs: dict[int, bytes]
    partitionings: dict[int, bytes]
    rest: bytes

    @staticmethod
    def pack(program: JobProgram) -> PackedProgram:
        graph = program.levels.job_graph
        edges = (*graph.edges, *graph.chained_edges)
        bare = _with_parts(
            program, dict.fromkeys(graph.nodes), dict.fromkeys(edge.id for edge in edges)
        )
        return PackedProgram(
            program.job_id,
            program.attempt,
            tuple(entry for entry in sys.path if entry),
            {node.id: _dumps(node.spec) for node in graph.nodes.values()},
            {edge.id: _dumps(edge.partitioning) for edge in edges},
            _dumps(bare),
        )

    def unpack(self) -> JobProgram:
        for entry in self.search_path:
            if entry not in sys.path:
                sys.path.append(entry)
        bare: JobProgram = cloudpickle.loads(self.rest)
        return _with_parts(
            bare,
            {node: cloudpickle.loads(spec) for node, spec in self.specs.items()},
            {edge: cloudpickle.loads(part) for edge, part in self.partitionings.items()},
        )


def _dumps(value: object) -> bytes:
    return bytes(cloudpickle.dumps(value, protocol=5))


def _with_parts(
    program: JobProgram, specs: Mapping[int, Any], partitionings: Mapping[int, Any]
) -> JobProgram:
    levels = program.levels
    graph = levels.job_graph

    def fitted(edges: tuple[StreamEdge, ...]) -> tuple[StreamEdge, ...]:
        return tuple(replace(edge, partitioning=partitionings[edge.id]) for edge in edges)

    nodes = {node.id: replace(node, spec=specs[node.id]) for node in graph.nodes.values()}
    whole = replace(
        graph, nodes=nodes, edges=fitted(graph.edges), chained_edges=fitted(graph.chained_edges)
    )
    return replace(program, levels=replace(levels, job_graph=whole))
