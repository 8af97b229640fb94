"""The program of a job, and its packed form that travels to the slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import TwoPhaseCommitSinkSpec
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge
from firesteel.leader.fence import Fence
from firesteel.state.backend_factory import HASHMAP, StateBackendSettings
from firesteel.state.changelog import SegmentStore
from firesteel.usercode import pickling, value_pickler
from firesteel.usercode.loading import PackedPart
from firesteel.usercode.resources import JobResources, PlacedResources
from firesteel.usercode.search_path import SearchPath

# The partitionings that contain functions of the user.
_OPERATIONS = {ShipStrategy.HASH: "key_by", ShipStrategy.CUSTOM: "partition_custom"}

_ATTEMPTS_PER_RUN = 1 << 20


def first_attempt(run: int) -> int:
    """Return the number of the first attempt of a run: the work of one master on a job.

    So no two attempts of a job have the same number, and a sink can tell its own work from that of
    an earlier master.
    """
    return run * _ATTEMPTS_PER_RUN


def attempt_in_run(attempt: int) -> int:
    """Return the number of an attempt as users see it."""
    return attempt % _ATTEMPTS_PER_RUN


@dataclass(frozen=True, slots=True)
class JobProgram:
    """The graph with the functions of the user, and the settings that slots need.

    ``segment_directory`` is a path or a location in an object store. It is None if driver and slots
    share no storage.
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
    # The files that travel with the job, and the paths of the cached files on the machine of a task.
    resources: JobResources = field(default_factory=JobResources)
    cached_files: Mapping[str, str] = field(default_factory=dict)
    # True if the job takes periodic checkpoints; their mode; the access to their storage.
    checkpointed: bool = False
    exactly_once: bool = True
    # Barriers of checkpoints may overtake records that wait. Until ``aligned_seconds`` after its
    # trigger a checkpoint tries to do without.
    unaligned: bool = False
    aligned_seconds: float = 0.0
    # The time that the rows on their way to a live slot may take it, or None for no limit.
    in_flight_seconds: float | None = 1.0
    file_systems: FileSystemOptions | None = None
    # The fence of the master's term, if there are several masters. Sinks look at it first.
    fence: Fence | None = None

    @property
    def epochs_are_exact(self) -> bool:
        """Every epoch ends at a consistent state of all slots, to which a live job may return.

        Without periodic checkpoints there is nothing else to return to. Otherwise slots that do not
        align let records overtake, and with unaligned checkpoints only those are consistent.
        """
        return not self.checkpointed or (self.exactly_once and not self.unaligned)

    @property
    def transactional_nodes(self) -> frozenset[int]:
        """The sinks whose state has their transactions."""
        nodes = self.levels.job_graph.nodes.values()
        return frozenset(one.id for one in nodes if isinstance(one.spec, TwoPhaseCommitSinkSpec))

    def open_segment_store(self) -> SegmentStore:
        """Open the store for state segments, in the process that calls this."""
        shared = None
        if self.segment_directory is not None:
            shared = open_storage(self.segment_directory, self.file_systems)
        return StorageSegmentStore(shared, self.inline_threshold, self.file_systems)


@dataclass(frozen=True, slots=True)
class PackedProgram:
    """A program as bytes, with the module search path of the driver.

    A slot on the same machine can import every module that the driver can import. ``placed`` has
    the paths of the job's resources on the machine of a task.
    """

    job_id: str
    job_name: str
    attempt: int
    search_path: SearchPath
    # Each spec and partitioning is packed on its own, so operators never share a function object,
    # even if the user passed one object to two of them.
    specs: dict[int, PackedPart]
    partitionings: dict[int, PackedPart]
    rest: bytes
    resources: JobResources = field(default_factory=JobResources)
    placed: PlacedResources = field(default_factory=PlacedResources)

    @staticmethod
    def pack(program: JobProgram) -> PackedProgram:
        """Pickle the program, in the driver."""
        graph = program.levels.job_graph
        edges = (*graph.edges, *graph.chained_edges)
        search_path = SearchPath.of_driver()
        bare = _with_parts(
            program, dict.fromkeys(graph.nodes), dict.fromkeys(edge.id for edge in edges)
        )
        return PackedProgram(
            program.job_id,
            program.job_name,
            program.attempt,
            search_path,
            {
                node.id: PackedPart.pack(node.spec, node.name, search_path)
                for node in graph.nodes.values()
            },
            {
                edge.id: PackedPart.pack(
                    edge.partitioning,
                    f"{_OPERATIONS.get(edge.partitioning.strategy, 'edge')} after "
                    f"{graph.nodes[edge.source].name}",
                    search_path,
                )
                for edge in edges
            },
            value_pickler.dumps(bare),
            program.resources,
        )

    def unpack(self) -> JobProgram:
        """Unpickle the program with new function objects, in a slot."""
        self.search_path.adopt()
        bare: JobProgram = replace(pickling.loads(self.rest), attempt=self.attempt)
        if self.placed.cached_files:
            bare = replace(bare, cached_files=self.placed.cached_files)
        return _with_parts(
            bare,
            {node: part.load(self.job_name) for node, part in self.specs.items()},
            {edge: part.load(self.job_name) for edge, part in self.partitionings.items()},
        )


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
