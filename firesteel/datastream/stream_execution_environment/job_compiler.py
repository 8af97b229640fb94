"""The job compiler: makes graphs and settings for the launcher from the recorded operators."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options, options
from firesteel.connectors.base import Boundedness
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.stream_execution_environment import shipped_files
from firesteel.errors import InvalidProgramError
from firesteel.graph import rendering, stream_graph_generator
from firesteel.graph.column_flow import forms_of_edges, with_column_flow
from firesteel.graph.iterations import iterations_of
from firesteel.graph.job_graph import JobGraph, generate_job_graph
from firesteel.graph.levels import Levels, assign_levels
from firesteel.graph.operator_specs import (
    DataFrameSourceSpec,
    KeyedAggregationSpec,
    OperatorSpec,
    SinkSpec,
    SourceSpec,
    TwoPhaseCommitSinkSpec,
)
from firesteel.graph.settings import DEFAULT_JOB_NAME, GraphSettings, JobSettings
from firesteel.graph.stream_graph import StreamGraph, StreamNode
from firesteel.graph.transformations import Transformation


def unbounded_sources(stream_graph: StreamGraph) -> list[str]:
    """Return the names of the sources that do not end by themselves."""
    return [node.name for node in stream_graph.nodes.values() if _is_unbounded(node.spec)]


def check_final_results(stream_graph: StreamGraph) -> None:
    """Refuse output mode ``append`` where results never become final."""
    for node in stream_graph.nodes.values():
        if isinstance(node.spec, KeyedAggregationSpec) and node.spec.output_mode == "append":
            endless = _unbounded_source_of(stream_graph, node)
            if endless is not None:
                raise InvalidProgramError(
                    f"'{node.name}': output_mode('append') on a keyed stream emits results at the "
                    f"end of the input, when no record can change them anymore, but '{endless}' "
                    f"never ends. Use windows, or output_mode('update')."
                )


def _unbounded_source_of(stream_graph: StreamGraph, node: StreamNode) -> str | None:
    waiting, seen = [node.id], {node.id}
    while waiting:
        current = waiting.pop()
        if _is_unbounded(stream_graph.nodes[current].spec):
            return stream_graph.nodes[current].name
        sources = {edge.source for edge in stream_graph.in_edges(current)} - seen
        waiting += sources
        seen |= sources
    return None


def _is_unbounded(spec: OperatorSpec) -> bool:
    if isinstance(spec, DataFrameSourceSpec):
        return not spec.bounded
    if isinstance(spec, SourceSpec):
        return bool(spec.source.get_boundedness() is not Boundedness.BOUNDED)
    return False


NO_BUFFER_TIMEOUT = -1

_STYLES = {
    "text": rendering.as_text,
    "mermaid": rendering.as_mermaid,
    "dot": rendering.as_dot,
}

_log = logging.getLogger("firesteel")


@dataclass(frozen=True, slots=True)
class CompiledJob:
    """The graphs and settings of a job."""

    stream_graph: StreamGraph
    job_graph: JobGraph
    levels: Levels
    settings: JobSettings

    def draw(self, graph: str, style: str) -> str:
        """Return a drawing of the stream graph, the job graph or the execution graph."""
        note = rendering.note_on_slots(self.levels, batch=self.settings.is_batch)
        forms = forms_of_edges(self.stream_graph, batch=self.settings.is_batch)
        pictures = {
            "stream": lambda: rendering.picture_of_stream_graph(self.stream_graph, forms),
            "job": lambda: replace(
                rendering.picture_of_job_graph(self.job_graph, forms), notes=(note,)
            ),
            "execution": lambda: replace(rendering.picture_of_levels(self.levels), notes=(note,)),
        }
        if graph not in pictures or style not in _STYLES:
            raise InvalidProgramError(
                f"explain(graph={graph!r}, style={style!r}): graph is one of "
                f"{', '.join(pictures)}; style is one of {', '.join(_STYLES)}"
            )
        return _STYLES[style](pictures[graph]())


def compile_job(
    transformations: Iterable[Transformation],
    configuration: Configuration,
    parallelism: int,
    job_name: str | None = None,
) -> CompiledJob:
    graph_settings = settings_of_graph(configuration, parallelism, job_name)
    stream_graph = with_configuration(
        stream_graph_generator.generate(transformations, graph_settings), configuration
    )
    unbounded = unbounded_sources(stream_graph)
    runtime_mode = resolve_runtime_mode(configuration, unbounded)
    stream_graph = with_column_flow(stream_graph, batch=runtime_mode is RuntimeExecutionMode.BATCH)
    job_graph = generate_job_graph(stream_graph, graph_settings)
    check_frames(stream_graph, runtime_mode)
    check_iterations(stream_graph, runtime_mode)
    check_final_results(stream_graph)
    settings = JobSettings(
        job_name=graph_settings.job_name,
        configuration=Configuration(configuration),
        runtime_mode=runtime_mode,
        bounded=not unbounded,
        buffer_timeout=graph_settings.buffer_timeout,
        python_files=shipped_files.python_files(configuration),
        requirements=shipped_files.requirements(configuration),
        python_archives=shipped_files.python_archives(configuration),
        cached_files=shipped_files.cached_files(configuration),
    )
    return CompiledJob(stream_graph, job_graph, assign_levels(job_graph), settings)


def with_configuration(stream_graph: StreamGraph, configuration: Configuration) -> StreamGraph:
    """Return the graph with sources and sinks that know the configuration of the job."""
    nodes = {}
    for number, node in stream_graph.nodes.items():
        spec = node.spec
        if isinstance(spec, SourceSpec):
            spec = replace(spec, source=spec.source.with_configuration(configuration))
        elif isinstance(spec, SinkSpec):
            spec = replace(spec, sink=spec.sink.with_configuration(configuration))
        nodes[number] = node if spec is node.spec else replace(node, spec=spec)
    return replace(stream_graph, nodes=nodes)


def settings_of_graph(
    configuration: Configuration, parallelism: int, job_name: str | None = None
) -> GraphSettings:
    max_parallelism = configuration.get(options.MAX_PARALLELISM)
    return GraphSettings(
        job_name=job_name or configuration.get(options.PIPELINE_NAME) or DEFAULT_JOB_NAME,
        parallelism=parallelism,
        max_parallelism=None if max_parallelism < 1 else max_parallelism,
        buffer_timeout=buffer_timeout(configuration),
        chaining_enabled=configuration.get(options.OPERATOR_CHAINING),
        chain_operators_with_different_max_parallelism=configuration.get(
            options.CHAIN_DIFFERENT_MAX_PARALLELISM
        ),
        auto_generate_uids=configuration.get(options.AUTO_GENERATE_UIDS),
    )


def buffer_timeout(configuration: Configuration) -> int:
    """Return the buffer timeout in milliseconds, or -1 if only full buffers are sent."""
    if not configuration.get(options.BUFFER_TIMEOUT_ENABLED):
        return NO_BUFFER_TIMEOUT
    return configuration.get(options.BUFFER_TIMEOUT) // timedelta(milliseconds=1)


def warn_of_sinks_that_never_commit(job: CompiledJob) -> None:
    """Warn about an unbounded job without checkpoints, which never commits its transactions."""
    if job.settings.bounded:
        return
    if job.settings.configuration.get_optional(checkpoint_options.CHECKPOINTING_INTERVAL):
        return
    for node in job.stream_graph.nodes.values():
        if isinstance(node.spec, TwoPhaseCommitSinkSpec):
            _log.warning(
                "'%s' commits its transactions when a checkpoint completes, but the job never ends "
                "and has no checkpoints. Its output will never become visible. Set "
                "execution.checkpointing.interval.",
                node.name,
            )


def resolve_runtime_mode(
    configuration: Configuration, unbounded: list[str]
) -> RuntimeExecutionMode:
    mode = RuntimeExecutionMode[configuration.get(options.RUNTIME_MODE)]
    if mode is RuntimeExecutionMode.AUTOMATIC:
        return RuntimeExecutionMode.STREAMING if unbounded else RuntimeExecutionMode.BATCH
    if mode is RuntimeExecutionMode.BATCH and unbounded:
        raise InvalidProgramError(
            f"Detected an UNBOUNDED source with the 'execution.runtime-mode' set to 'BATCH': "
            f"{', '.join(unbounded)}. Set it to STREAMING or AUTOMATIC, or bound the source."
        )
    return mode


def check_frames(stream_graph: StreamGraph, mode: RuntimeExecutionMode) -> None:
    """Refuse a batch DataFrame in a streaming job, which a streaming query cannot read."""
    if mode is RuntimeExecutionMode.BATCH:
        return
    for node in stream_graph.nodes.values():
        if isinstance(node.spec, DataFrameSourceSpec) and node.spec.bounded:
            raise InvalidProgramError(
                f"'{node.name}' reads a batch DataFrame, but the job is a streaming job. Use "
                "env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC), or a DataFrame of "
                "spark.readStream."
            )


def check_iterations(stream_graph: StreamGraph, mode: RuntimeExecutionMode) -> None:
    """Refuse a loop in a batch job: a loop needs one epoch after the other."""
    iterations = iterations_of(stream_graph)
    if mode is RuntimeExecutionMode.BATCH and iterations:
        raise InvalidProgramError(
            f"Iterations are not supported in BATCH execution mode: '{iterations[0]}'. Set "
            "'execution.runtime-mode' to STREAMING."
        )
