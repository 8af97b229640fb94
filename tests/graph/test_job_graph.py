import pytest

from firesteel.graph.partitioning import (
    BROADCAST,
    FORWARD,
    GLOBAL,
    REBALANCE,
    RESCALE,
    SHUFFLE,
    Partitioning,
    ShipStrategy,
)
from firesteel.graph.transformations import ChainingStrategy, Origin

CHAINED = ["Source: numbers -> Map"]
APART = ["Source: numbers", "Map"]


def test_source_chains_with_what_follows(program):
    p = program()
    p.print(p.map(p.source()))
    assert p.chains() == ["Source: numbers -> Map -> Sink: Print to Std. Out"]
    graph = p.job_graph()
    assert graph.edges == ()
    assert len(graph.chained_edges) == 2
    assert graph.vertices[0].operators == (1, 2, 3)


def test_forks_are_in_one_chain(program):
    p = program()
    mapped = p.map(p.source())
    p.print(mapped)
    p.print(p.map(mapped, name="B"))
    assert p.chains() == [
        "Source: numbers -> Map -> (Sink: Print to Std. Out, B -> Sink: Print to Std. Out)"
    ]
    assert p.job_graph().vertices[0].operators == (1, 2, 3, 4, 5)


def test_every_operator_comes_after_its_input(program):
    p = program()
    a = p.source()
    b = p.map(a)
    c = p.map(a)
    p.map(b)
    p.map(c)
    graph = p.job_graph()
    (vertex,) = graph.vertices
    place = {node: index for index, node in enumerate(vertex.operators)}
    assert all(place[edge.source] < place[edge.target] for edge in graph.chained_edges)


@pytest.mark.parametrize(
    "how",
    [
        REBALANCE,
        RESCALE,
        SHUFFLE,
        BROADCAST,
        GLOBAL,
        Partitioning(ShipStrategy.HASH),
        Partitioning(ShipStrategy.CUSTOM),
    ],
    ids=lambda how: how.strategy.value,
)
def test_only_forward_edges_chain(program, shipped, how):
    p = program()
    p.map(shipped(p.source(), how))
    assert p.chains() == APART


def test_explicit_forward_chains(program, shipped):
    p = program()
    p.map(shipped(p.source(), FORWARD))
    assert p.chains() == CHAINED


def test_different_parallelism(program):
    p = program(parallelism=2)
    p.map(p.source(), parallelism=1)
    assert p.chains() == APART


def test_different_slot_sharing_group(program):
    p = program()
    p.map(p.source(), slot_sharing_group="other")
    assert p.chains() == APART


def test_chaining_disabled_for_the_job(program):
    p = program(chaining_enabled=False)
    p.map(p.source())
    assert p.chains() == APART


@pytest.mark.parametrize(
    ("upstream", "downstream", "expected"),
    [
        (ChainingStrategy.ALWAYS, ChainingStrategy.ALWAYS, CHAINED),
        (ChainingStrategy.HEAD, ChainingStrategy.ALWAYS, CHAINED),
        (ChainingStrategy.NEVER, ChainingStrategy.ALWAYS, APART),
        (ChainingStrategy.ALWAYS, ChainingStrategy.HEAD, APART),
        (ChainingStrategy.ALWAYS, ChainingStrategy.NEVER, APART),
    ],
)
def test_chaining_strategies(program, upstream, downstream, expected):
    p = program()
    p.map(p.source(chaining=upstream), chaining=downstream)
    assert p.chains() == expected


def test_different_max_parallelism_chains_unless_forbidden(program):
    p = program()
    p.map(p.source(max_parallelism=4))
    assert p.chains() == CHAINED
    q = program(chain_operators_with_different_max_parallelism=False)
    q.map(q.source(max_parallelism=4))
    assert q.chains() == APART


def test_a_union_is_never_chained_to_what_comes_before(program):
    p = program()
    mapped = p.map(p.source())
    p.map(mapped, mapped, name="both")
    assert p.chains() == ["Source: numbers -> Map", "both"]
    q = program()
    q.map(q.source("a"), q.source("b"), name="both")
    assert q.chains() == ["Source: a", "Source: b", "both"]


def test_two_inputs_are_never_chained_to_what_comes_before(program):
    p = program()
    p.print(p.co_map(p.source("a"), p.source("b")))
    assert p.chains() == ["Source: a", "Source: b", "Co-Map -> Sink: Print to Std. Out"]


def test_side_outputs_chain(program):
    p = program()
    mapped = p.map(p.source())
    p.map(Origin(mapped, side_output="late"), name="late")
    assert p.chains() == ["Source: numbers -> Map -> late"]


def test_vertex_has_the_settings_of_its_head(program):
    p = program(parallelism=2)
    p.map(p.source(max_parallelism=8), name="tail")
    (vertex,) = p.job_graph().vertices
    assert (vertex.id, vertex.parallelism, vertex.max_parallelism) == (1, 2, 8)
    assert vertex.slot_sharing_group == "default"


def test_a_chain_longer_than_the_stack(program):
    p = program()
    last = p.source()
    for _ in range(3000):
        last = p.map(last)
    assert len(p.job_graph().vertices) == 1
