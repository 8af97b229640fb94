"""The job around one operator under test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.state_backend import StateBackend
from firesteel.errors import InvalidProgramError
from firesteel.graph.stream_graph import StreamNode
from firesteel.testing.scripted_source import ScriptedSource

HARNESS_NAME = "operator harness"


def compile_operator(
    program: Callable[..., Any],
    parallelism: int,
    max_parallelism: int,
    input_types: Sequence[Any],
    batch: bool,
    state_backend: StateBackend,
) -> tuple[Any, list[int]]:
    """The job around the operator, and the nodes of its inputs."""
    environment = StreamExecutionEnvironment()
    environment.set_parallelism(parallelism).set_max_parallelism(max_parallelism)
    environment.disable_operator_chaining()
    environment.set_state_backend(state_backend)
    if batch:
        environment.set_runtime_mode(RuntimeExecutionMode.BATCH)
    parameters = inspect.signature(program).parameters.values()
    count = sum(parameter.default is parameter.empty for parameter in parameters)
    if count not in (1, 2):
        raise InvalidProgramError(
            f"the program of an OperatorHarness takes one or two streams, not {count}"
        )
    types = [*input_types, *[None] * (count - len(input_types))]
    streams = [
        environment.from_source(ScriptedSource([]), None, f"input {number}", types[number - 1])
        for number in range(1, count + 1)
    ]
    program(*streams)
    if not environment._transformations:
        raise InvalidProgramError("the program adds no operator to its streams")
    job = environment._compile(HARNESS_NAME)
    nodes = job.stream_graph.nodes.values()
    inputs = [
        node.id
        for number in range(1, count + 1)
        for node in nodes
        if node.name == f"Source: input {number}"
    ]
    return job, inputs


def the_operator(nodes: list[StreamNode], inputs: list[int]) -> StreamNode:
    operators = [node for node in nodes if node.id not in inputs]
    if len(operators) != 1:
        names = ", ".join(f"'{node.name}'" for node in operators)
        raise InvalidProgramError(
            f"an OperatorHarness tests one operator, but the program has {len(operators)}: {names}. "
            f"Use a JobHarness for whole programs."
        )
    return operators[0]
