"""Changes of parallelism: chains stay, limits hold, and one-to-one streams keep both ends equal."""

from __future__ import annotations

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import InvalidProgramError
from firesteel.graph.levels import Levels
from firesteel.graph.rescaling import (
    highest_parallelism,
    rescale,
    rescaled_stream_graph,
    uniform_parallelism,
)


def keyed_job(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([1, 2, 3]).name("numbers")
    mapped = numbers.rebalance().map(lambda number: number).name("mapped")
    keyed = mapped.key_by(lambda number: number).map(lambda number: number).name("keyed")
    keyed.set_max_parallelism(6).print()


def levels_of(parallelism: int = 2, *, chaining: bool = True) -> Levels:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    if not chaining:
        env.disable_operator_chaining()
    keyed_job(env)
    return env.program.compile(parallelism, "job").levels


def parallelism_by_name(levels: Levels) -> dict[str, int]:
    return {vertex.name: vertex.parallelism for vertex in levels.job_graph.vertices}


def test_each_vertex_gets_the_parallelism_or_its_limit() -> None:
    levels = levels_of()
    wanted = uniform_parallelism(levels.job_graph, 8)
    rescaled = rescale(levels, wanted)
    assert parallelism_by_name(rescaled) == {
        # A collection is read by one subtask.
        "Source: numbers": 1,
        "mapped": 8,
        # Its maximum parallelism is 6.
        "keyed -> Sink: Print to Std. Out": 6,
    }
    assert rescaled.slots == (1, 8, 6)
    assert {node.parallelism for node in rescaled.job_graph.nodes.values()} == {1, 6, 8}


def test_a_vertex_without_a_new_parallelism_keeps_its_own() -> None:
    levels = levels_of()
    mapped = next(vertex for vertex in levels.job_graph.vertices if vertex.name == "mapped")
    rescaled = rescale(levels, {mapped.id: 5})
    assert sorted(parallelism_by_name(rescaled).values()) == [1, 2, 5]


def test_chains_do_not_change() -> None:
    # With the same parallelism, the source and the map would be chained by a new compilation.
    levels = levels_of(parallelism=3)
    rescaled = rescale(levels, uniform_parallelism(levels.job_graph, 1))
    before = [vertex.operators for vertex in levels.job_graph.vertices]
    assert [vertex.operators for vertex in rescaled.job_graph.vertices] == before


def test_the_maximum_parallelism_is_a_limit() -> None:
    levels = levels_of()
    keyed = next(v for v in levels.job_graph.vertices if v.name.startswith("keyed"))
    assert highest_parallelism(levels.job_graph)[keyed.id] == 6
    with pytest.raises(InvalidProgramError, match=r"parallelism 7: it can have 1 to 6"):
        rescale(levels, {keyed.id: 7})
    with pytest.raises(InvalidProgramError, match=r"parallelism 0"):
        rescale(levels, {keyed.id: 0})


def test_vertices_with_a_stream_one_to_one_change_together() -> None:
    levels = levels_of(chaining=False)
    by_name = {vertex.name: vertex for vertex in levels.job_graph.vertices}
    keyed, sink = by_name["keyed"], by_name["Sink: Print to Std. Out"]
    rescaled = rescale(levels, {keyed.id: 4, sink.id: sink.parallelism})
    assert parallelism_by_name(rescaled)["Sink: Print to Std. Out"] == 4
    with pytest.raises(InvalidProgramError, match="must have the same parallelism"):
        rescale(levels, {keyed.id: 4, sink.id: 5})


def test_the_stream_graph_follows() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    keyed_job(env)
    job = env.program.compile(2, "job")
    levels = rescale(job.levels, uniform_parallelism(job.levels.job_graph, 4))
    graph = rescaled_stream_graph(job.stream_graph, levels)
    assert {node.id: node.parallelism for node in graph.nodes.values()} == {
        node.id: node.parallelism for node in levels.job_graph.nodes.values()
    }
