"""Generates the StreamGraph from transformations. It decides every setting of operators and edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from firesteel.errors import InvalidProgramError
from firesteel.graph import iterations, operator_ids
from firesteel.graph.operator_specs import SINK_SPECS, SOURCE_SPECS, SinkSpec
from firesteel.graph.parallelism import resolve_max_parallelism
from firesteel.graph.partitioning import FORWARD, REBALANCE, Partitioning, ShipStrategy
from firesteel.graph.settings import GraphSettings
from firesteel.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from firesteel.graph.transformations import Origin, Transformation

DEFAULT_SLOT_SHARING_GROUP = "default"


def generate(transformations: Iterable[Transformation], settings: GraphSettings) -> StreamGraph:
    """Generate the graph of the transformations and all of their inputs.

    Nodes are numbered from 1 in the order of the program, so they are the same in every process.
    """
    program = _reachable(transformations)
    if not program:
        raise InvalidProgramError(
            "No operators defined in streaming topology. Cannot execute. Add an operator or a "
            "sink, for example print(), before you call execute()."
        )
    iterations.check_closed(program)
    program = iterations.with_settings_of_heads(program)
    ids = {transformation.id: number for number, transformation in enumerate(program, start=1)}
    by_id = {ids[transformation.id]: transformation for transformation in program}
    inputs = {
        node: [ids[origin.transformation.id] for origin in _origins(transformation)]
        for node, transformation in by_id.items()
    }
    _check_uids(program, settings)
    ids_of_operators = operator_ids.assign(by_id, inputs)
    feedback = iterations.feedback_edges(by_id, ids)
    head_of = {edge.tail: edge.head for edge in feedback}
    nodes: dict[int, StreamNode] = {}
    for node_id, transformation in by_id.items():
        model = iterations.as_parallel_as(node_id, transformation, inputs[node_id], head_of)
        nodes[node_id] = _node(
            node_id,
            transformation,
            ids_of_operators[node_id],
            [nodes[source].slot_sharing_group for source in inputs[node_id]],
            _parallelism(transformation, settings) if model is None else nodes[model].parallelism,
            settings,
        )
    edges = _edges(by_id, ids, nodes)
    iterations.check_parallelism(nodes, edges, feedback)
    return StreamGraph(
        job_name=settings.job_name,
        nodes=nodes,
        edges=edges,
        feedback_edges=feedback,
        driver_objects={
            node_id: transformation.driver_object
            for node_id, transformation in by_id.items()
            if transformation.driver_object is not None
        },
    )


def _origins(transformation: Transformation) -> list[Origin]:
    return [origin for origins in transformation.inputs for origin in origins]


def _reachable(transformations: Iterable[Transformation]) -> list[Transformation]:
    """The transformations and all of their inputs, each once, in the order of creation.

    An input is always created before its consumer, so this order is topological.
    """
    found: dict[int, Transformation] = {}
    waiting = list(transformations)
    while waiting:
        transformation = waiting.pop()
        if transformation.id in found:
            continue
        found[transformation.id] = transformation
        waiting.extend(origin.transformation for origin in _origins(transformation))
        waiting.extend(transformation.tails)
    return [found[key] for key in sorted(found)]


def _check_uids(program: Iterable[Transformation], settings: GraphSettings) -> None:
    if settings.auto_generate_uids:
        return
    for transformation in program:
        if transformation.uid is None and transformation.uid_hash is None:
            raise InvalidProgramError(
                f"Operator '{transformation.name}' has no uid, and pipeline.auto-generate-uids is "
                f"off. Give it one with uid()."
            )


def _node(
    node_id: int,
    transformation: Transformation,
    operator_id: str,
    input_groups: list[str],
    parallelism: int,
    settings: GraphSettings,
) -> StreamNode:
    name = _display_name(transformation)
    return StreamNode(
        id=node_id,
        operator_id=operator_id,
        name=name,
        description=transformation.description or name,
        spec=transformation.spec,
        parallelism=parallelism,
        max_parallelism=resolve_max_parallelism(
            name,
            parallelism,
            transformation.max_parallelism,
            settings.max_parallelism,
        ),
        max_parallelism_is_set=(
            transformation.max_parallelism is not None or settings.max_parallelism is not None
        ),
        slot_sharing_group=_slot_sharing_group(transformation.slot_sharing_group, input_groups),
        chaining=transformation.chaining,
        buffer_timeout=_buffer_timeout(transformation.buffer_timeout, settings),
        output_type=transformation.output_type,
        uid=transformation.uid,
        side_output_types=dict(transformation.side_output_types),
    )


def _display_name(transformation: Transformation) -> str:
    """The name in plans and task names, as in Flink."""
    spec = transformation.spec
    if isinstance(spec, SOURCE_SPECS):
        return f"Source: {transformation.name}"
    if isinstance(spec, SinkSpec):
        return f"{transformation.name}: Writer"
    if isinstance(spec, SINK_SPECS):
        return f"Sink: {transformation.name}"
    return transformation.name


def _parallelism(transformation: Transformation, settings: GraphSettings) -> int:
    if transformation.non_parallel:
        return 1
    if transformation.parallelism is not None:
        return transformation.parallelism
    return settings.parallelism


def _slot_sharing_group(specified: str | None, input_groups: list[str]) -> str:
    """The user's group, else the common group of all inputs, else the default group."""
    if specified is not None:
        return specified
    groups = set(input_groups)
    return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_SHARING_GROUP


def _buffer_timeout(specified: int | None, settings: GraphSettings) -> int:
    """The buffer timeout. For an operator, -1 selects the timeout of the environment."""
    if specified is None or specified < 0:
        return settings.buffer_timeout
    return specified


def _edges(
    by_id: Mapping[int, Transformation], ids: Mapping[int, int], nodes: Mapping[int, StreamNode]
) -> tuple[StreamEdge, ...]:
    edges: list[StreamEdge] = []
    for target_id, transformation in by_id.items():
        for input_index, origins in enumerate(transformation.inputs):
            for origin in origins:
                source = nodes[ids[origin.transformation.id]]
                edges.append(
                    StreamEdge(
                        id=len(edges),
                        source=source.id,
                        target=target_id,
                        partitioning=_partitioning(origin, source, nodes[target_id]),
                        input_index=input_index,
                        side_output=origin.side_output,
                    )
                )
    return tuple(edges)


def _partitioning(origin: Origin, source: StreamNode, target: StreamNode) -> Partitioning:
    same_parallelism = source.parallelism == target.parallelism
    if origin.partitioning is None:
        return FORWARD if same_parallelism else REBALANCE
    if origin.partitioning.strategy is ShipStrategy.FORWARD and not same_parallelism:
        raise InvalidProgramError(
            f"Forward partitioning does not allow change of parallelism: '{source.name}' has "
            f"parallelism {source.parallelism}, '{target.name}' has parallelism "
            f"{target.parallelism}. Use rebalance(), rescale(), broadcast(), shuffle() or "
            f"global_() instead of forward()."
        )
    return origin.partitioning
