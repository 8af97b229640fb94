import pytest

from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import CollectSpec, SinkSpec
from firesteel.graph.partitioning import FORWARD, REBALANCE, RESCALE, ShipStrategy
from firesteel.graph.transformations import Origin, Transformation


def _strategies(graph):
    return [edge.partitioning.strategy for edge in graph.edges]


def test_nothing_to_run(program):
    with pytest.raises(InvalidProgramError, match="No operators defined in streaming topology"):
        program().stream_graph()


def test_nodes_are_numbered_in_program_order_from_one(program):
    p = program()
    source = p.source()
    second = p.map(source, name="second")
    p.print(second)
    graph = p.stream_graph()
    assert [(node.id, node.name) for node in graph.nodes.values()] == [
        (1, "Source: numbers"),
        (2, "second"),
        (3, "Sink: Print to Std. Out"),
    ]
    assert [(edge.id, edge.source, edge.target) for edge in graph.edges] == [(0, 1, 2), (1, 2, 3)]


def test_inputs_come_along_though_nobody_listed_them(program):
    p = program()
    sink = p.print(p.map(p.source()))
    p.transformations = [sink]
    assert len(p.stream_graph().nodes) == 3


def test_a_stream_with_itself_makes_two_edges(program):
    p = program()
    mapped = p.map(p.source())
    p.print(mapped, mapped)
    assert [(edge.source, edge.target) for edge in p.stream_graph().edges] == [
        (1, 2),
        (2, 3),
        (2, 3),
    ]


def test_the_second_input_has_index_one(program):
    p = program()
    p.co_map(p.source("a"), p.source("b"))
    assert [edge.input_index for edge in p.stream_graph().edges] == [0, 1]


def test_default_parallelism_and_explicit_one(program):
    p = program(parallelism=3)
    p.map(p.source(), parallelism=2)
    assert [node.parallelism for node in p.stream_graph().nodes.values()] == [3, 2]


def test_non_parallel_operator(program):
    p = program(parallelism=3)
    p.source(non_parallel=True)
    (node,) = p.stream_graph().nodes.values()
    assert node.parallelism == 1


def test_max_parallelism_from_operator_then_environment_then_rule(program):
    p = program(parallelism=2, max_parallelism=64)
    p.map(p.source(), max_parallelism=32)
    assert [node.max_parallelism for node in p.stream_graph().nodes.values()] == [64, 32]
    q = program(parallelism=100)
    q.source()
    assert [node.max_parallelism for node in q.stream_graph().nodes.values()] == [256]


def test_parallelism_above_max_parallelism(program):
    p = program(parallelism=8, max_parallelism=4)
    p.source("numbers")
    with pytest.raises(InvalidProgramError, match="'Source: numbers': the parallelism 8"):
        p.stream_graph()


def test_default_edge_is_forward_or_rebalance(program):
    p = program(parallelism=2)
    one = p.map(p.source(), name="same")
    p.map(one, parallelism=4, name="other")
    assert _strategies(p.stream_graph()) == [ShipStrategy.FORWARD, ShipStrategy.REBALANCE]


def test_explicit_partitioning_stays(program, shipped):
    p = program(parallelism=2)
    source = p.source()
    p.map(shipped(source, REBALANCE))
    p.map(shipped(source, RESCALE))
    p.map(shipped(source, FORWARD))
    assert _strategies(p.stream_graph()) == [
        ShipStrategy.REBALANCE,
        ShipStrategy.RESCALE,
        ShipStrategy.FORWARD,
    ]


def test_explicit_forward_needs_the_same_parallelism(program, shipped):
    p = program(parallelism=2)
    p.map(shipped(p.source(), FORWARD), parallelism=3)
    with pytest.raises(InvalidProgramError, match=r"parallelism 2, 'Map' has parallelism 3"):
        p.stream_graph()


def test_slot_sharing_group_is_inherited_where_all_inputs_agree(program):
    p = program()
    heavy = p.source("a", slot_sharing_group="heavy")
    also_heavy = p.source("b", slot_sharing_group="heavy")
    light = p.source("c", slot_sharing_group="light")
    p.map(heavy, name="one")
    p.map(heavy, also_heavy, name="both")
    p.map(heavy, light, name="mixed")
    p.map(heavy, name="own", slot_sharing_group="default")
    groups = {node.name: node.slot_sharing_group for node in p.stream_graph().nodes.values()}
    assert groups == {
        "Source: a": "heavy",
        "Source: b": "heavy",
        "Source: c": "light",
        "one": "heavy",
        "both": "heavy",
        "mixed": "default",
        "own": "default",
    }


def test_buffer_timeout_of_operator_and_environment(program):
    p = program(buffer_timeout=50)
    source = p.source()
    p.map(source, buffer_timeout=0, name="at once")
    p.map(source, buffer_timeout=-1, name="as the environment says")
    assert [node.buffer_timeout for node in p.stream_graph().nodes.values()] == [50, 0, 50]


def test_description_is_the_name_unless_set(program):
    p = program()
    p.map(p.source(), description="what it does")
    assert [node.description for node in p.stream_graph().nodes.values()] == [
        "Source: numbers",
        "what it does",
    ]


def test_display_names_of_sinks(program):
    p = program()
    source = p.source()
    p.transformations += [
        Transformation("Sink", SinkSpec(None), ((Origin(source),),)),
        Transformation("collect", CollectSpec(), ((Origin(source),),)),
    ]
    assert [node.name for node in p.stream_graph().nodes.values()][1:] == [
        "Sink: Writer",
        "Sink: collect",
    ]


def test_every_operator_needs_a_uid_if_none_is_generated(program):
    p = program(auto_generate_uids=False)
    p.map(p.source(uid="s"), name="without")
    with pytest.raises(InvalidProgramError, match="'without' has no uid"):
        p.stream_graph()


def test_driver_objects_are_kept_by_node(program):
    p = program()
    p.data_frame(driver_object="the frame")
    assert p.stream_graph().driver_objects == {1: "the frame"}


def test_side_output_edge(program):
    p = program()
    mapped = p.map(p.source())
    p.print(Origin(mapped, side_output="late"))
    assert [edge.side_output for edge in p.stream_graph().edges] == [None, "late"]
