"""Pictures of a compiled job."""

from __future__ import annotations

from firesteel.datastream.stream_execution_environment.job_compiler import CompiledJob
from firesteel.errors import InvalidProgramError
from firesteel.graph import rendering

_STYLES = {
    "text": rendering.as_text,
    "mermaid": rendering.as_mermaid,
    "dot": rendering.as_dot,
}


def draw(job: CompiledJob, graph: str, style: str) -> str:
    pictures = {
        "stream": lambda: rendering.picture_of_stream_graph(job.stream_graph),
        "job": lambda: rendering.picture_of_job_graph(job.job_graph),
        "execution": lambda: rendering.picture_of_levels(job.levels),
    }
    if graph not in pictures or style not in _STYLES:
        raise InvalidProgramError(
            f"explain(graph={graph!r}, style={style!r}): graph is one of {', '.join(pictures)}; "
            f"style is one of {', '.join(_STYLES)}"
        )
    return _STYLES[style](pictures[graph]())
