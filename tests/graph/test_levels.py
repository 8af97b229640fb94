import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.graph import stream_graph_generator
from firesteel.graph.job_graph import generate_job_graph
from firesteel.graph.levels import assign_levels
from firesteel.graph.operator_specs import MapSpec, SourceSpec
from firesteel.graph.partitioning import (
    FORWARD,
    GLOBAL,
    REBALANCE,
    Partitioning,
    ShipStrategy,
)
from firesteel.graph.settings import GraphSettings
from firesteel.graph.transformations import ChainingStrategy, Origin, Transformation
from tests.thoroughness import examples

HASH = Partitioning(ShipStrategy.HASH)


def test_one_chain_is_one_level(program):
    p = program(parallelism=3)
    p.print(p.map(p.source()))
    levels = p.levels()
    assert levels.level_of == {1: 0}
    assert levels.slots == (3,)
    assert levels.required_slots == 3


def test_a_level_for_each_exchange_on_the_longest_path(program, shipped):
    p = program(parallelism=2)
    source = p.source()
    keyed = p.map(shipped(source, HASH), name="keyed")
    again = p.map(shipped(keyed, REBALANCE), name="again")
    p.map(shipped(source, HASH), shipped(again, HASH), name="both")
    assert list(p.levels().level_of.values()) == [0, 1, 2, 3]
    assert p.levels().slots == (2, 2, 2, 2)


def test_forward_without_chaining_stays_in_the_slot(program):
    p = program(parallelism=2)
    p.map(p.source(), chaining=ChainingStrategy.NEVER)
    levels = p.levels()
    assert levels.level_of == {1: 0, 2: 0}
    assert levels.local_edges == {0}


def test_forward_to_another_group_crosses_an_exchange(program):
    p = program(parallelism=2)
    p.map(p.source(), slot_sharing_group="other")
    levels = p.levels()
    assert levels.level_of == {1: 0, 2: 1}
    assert levels.local_edges == frozenset()
    assert levels.slot_offset == {"default": 0, "other": 2}
    assert levels.slots == (2, 4)
    assert levels.required_slots == 4


def test_forward_to_a_later_level_crosses_an_exchange(program, shipped):
    p = program(parallelism=2)
    early = p.source("early")
    keyed = p.map(shipped(p.source("late"), HASH), name="keyed")
    p.co_map(early, keyed)
    levels = p.levels()
    assert levels.level_of == {1: 0, 2: 0, 3: 1, 4: 1}
    names = {
        (levels.job_graph.nodes[edge.source].name, levels.job_graph.nodes[edge.target].name): (
            edge.id in levels.local_edges
        )
        for edge in levels.job_graph.edges
    }
    assert names == {
        ("Source: late", "keyed"): False,
        ("Source: early", "Co-Map"): False,
        ("keyed", "Co-Map"): True,
    }


def test_a_data_frame_is_read_at_level_one(program):
    p = program(parallelism=2)
    p.map(p.data_frame())
    levels = p.levels()
    assert levels.level_of == {1: 1}
    assert levels.slots == (1, 2)


def test_groups_are_as_wide_as_their_widest_vertex(program, shipped):
    p = program(parallelism=1)
    wide = p.source("wide", parallelism=4, slot_sharing_group="a")
    p.map(shipped(wide, REBALANCE), parallelism=2, name="narrow")
    p.source("other", parallelism=3, slot_sharing_group="b")
    levels = p.levels()
    assert levels.slot_offset == {"a": 0, "b": 4}
    assert levels.slots == (7, 2)


@st.composite
def programs(draw):
    """Any graph: sources, unions, two inputs, groups, parallelisms, partitionings."""
    made = [
        Transformation("source", SourceSpec(None), parallelism=draw(st.integers(1, 3)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    for _ in range(draw(st.integers(1, 12))):
        inputs = tuple(
            tuple(
                Origin(
                    draw(st.sampled_from(made)),
                    partitioning=draw(st.sampled_from([None, HASH, REBALANCE, GLOBAL])),
                )
                for _ in range(draw(st.integers(1, 2)))
            )
            for _ in range(draw(st.integers(1, 2)))
        )
        made.append(
            Transformation(
                "map",
                MapSpec(abs),
                inputs,
                parallelism=draw(st.integers(1, 3)),
                chaining=draw(st.sampled_from(ChainingStrategy)),
                slot_sharing_group=draw(st.sampled_from([None, "a", "b"])),
            )
        )
    return made


@given(programs())
@settings(max_examples=examples(200), deadline=None)
def test_any_program_fits_its_levels(made):
    defaults = GraphSettings()
    stream_graph = stream_graph_generator.generate(made, defaults)
    job_graph = generate_job_graph(stream_graph, defaults)
    levels = assign_levels(job_graph)
    operators = [node for vertex in job_graph.vertices for node in vertex.operators]
    assert sorted(operators) == sorted(stream_graph.nodes)
    assert sorted(edge.id for edge in (*job_graph.edges, *job_graph.chained_edges)) == list(
        range(len(stream_graph.edges))
    )
    vertex_of = job_graph.vertex_of()
    for edge in job_graph.edges:
        upstream, downstream = vertex_of[edge.source], vertex_of[edge.target]
        source_level, target_level = levels.level_of[upstream.id], levels.level_of[downstream.id]
        if edge.id in levels.local_edges:
            assert source_level == target_level
            assert edge.partitioning == FORWARD
            assert upstream.slot_sharing_group == downstream.slot_sharing_group
        else:
            assert source_level < target_level
    for vertex in job_graph.vertices:
        last = levels.slot_offset[vertex.slot_sharing_group] + vertex.parallelism
        assert last <= levels.slots[levels.level_of[vertex.id]]
    taken = sorted(
        (
            levels.slot_offset[group],
            levels.slot_offset[group]
            + max(v.parallelism for v in job_graph.vertices if v.slot_sharing_group == group),
        )
        for group in levels.slot_offset
    )
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(taken))
