import pytest

from firesteel.common import Types
from firesteel.datastream import (
    DataStream,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.base import Sink
from firesteel.errors import InvalidProgramError
from firesteel.graph import operator_specs as specs
from firesteel.graph.partitioning import ShipStrategy

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Identity(MapFunction, FlatMapFunction, FilterFunction, ProcessFunction):
    def map(self, value):
        return value

    def flat_map(self, value):
        return [value]

    def filter(self, value):
        return True

    def process_element(self, value, ctx):
        yield value


class Keyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Discard(SinkFunction):
    def invoke(self, value, context):
        pass


class NoSink(Sink):
    def create_writer(self, context, state=None):
        raise NotImplementedError


@pytest.fixture(name="numbers")
def _numbers(env):
    return env.from_sequence(1, 10)


def _edges_into(env, name):
    graph = env._compile().stream_graph
    return [edge for edge in graph.edges if graph.nodes[edge.target].name == name]


def _strategy(env, stream):
    stream.map(lambda value: value).name("target")
    (edge,) = _edges_into(env, "target")
    return edge.partitioning


@pytest.mark.parametrize(
    ("apply", "name", "spec"),
    [
        (lambda s, f: s.map(f), "Map", specs.MapSpec),
        (lambda s, f: s.flat_map(f), "FlatMap", specs.FlatMapSpec),
        (lambda s, f: s.filter(f), "Filter", specs.FilterSpec),
    ],
)
@pytest.mark.parametrize("function", [Identity(), lambda value: value])
def test_operators_take_functions_and_callables(numbers, node, apply, name, spec, function):
    assert isinstance(apply(numbers, function), DataStream)
    assert node(name).spec == spec(function)


@pytest.mark.parametrize("operation", ["map", "flat_map", "filter"])
@pytest.mark.parametrize("wrong", [1, None, Discard(), Identity])
def test_wrong_functions_are_found_at_once(numbers, operation, wrong):
    with pytest.raises(TypeError, match=f"{operation} expects a .*Function or a callable") as info:
        getattr(numbers, operation)(wrong)
    assert isinstance(info.value, InvalidProgramError)


def test_a_class_instead_of_an_object_gets_a_hint(numbers):
    with pytest.raises(TypeError, match=r"Pass an object: Identity\(\.\.\.\)"):
        numbers.map(Identity)


def test_types(numbers):
    assert numbers.get_type() == Types.LONG()
    assert numbers.map(str).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert numbers.map(str, Types.STRING()).get_type() == Types.STRING()
    assert numbers.map(str, [Types.INT(), Types.INT()]).get_type() == Types.ROW(
        [Types.INT(), Types.INT()]
    )
    assert numbers.filter(bool).get_type() == Types.LONG()


def test_wrong_output_type(numbers):
    with pytest.raises(TypeError, match="map: the output type must be a TypeInformation"):
        numbers.map(str, output_type=str)


def test_process(numbers, node):
    numbers.process(Identity(), Types.LONG())
    assert isinstance(node("PROCESS").spec, specs.ProcessSpec)
    with pytest.raises(TypeError, match=r"needs key_by\(\)"):
        numbers.process(Keyed())


def test_project(env, node):
    pairs = env.from_collection([("a", 1)], PAIR)
    assert pairs.project(1, 0).get_type() == Types.TUPLE([Types.INT(), Types.STRING()])
    assert node("Projection").spec == specs.ProjectSpec((1, 0))
    with pytest.raises(InvalidProgramError, match="no field 2"):
        pairs.project(2)
    with pytest.raises(InvalidProgramError, match="no field -1"):
        pairs.project(-1)
    with pytest.raises(InvalidProgramError, match="at least one"):
        pairs.project()
    with pytest.raises(InvalidProgramError, match="Only Tuple DataStreams"):
        env.from_sequence(1, 2).project(0)


@pytest.mark.parametrize(
    ("method", "strategy"),
    [
        ("forward", ShipStrategy.FORWARD),
        ("rebalance", ShipStrategy.REBALANCE),
        ("rescale", ShipStrategy.RESCALE),
        ("shuffle", ShipStrategy.SHUFFLE),
        ("broadcast", ShipStrategy.BROADCAST),
        ("global_", ShipStrategy.GLOBAL),
    ],
)
def test_partitioning(env, numbers, method, strategy):
    assert _strategy(env, getattr(numbers, method)()).strategy is strategy


def test_the_last_partitioning_wins(env, numbers):
    assert _strategy(env, numbers.rebalance().shuffle()).strategy is ShipStrategy.SHUFFLE


def test_partitioning_leaves_the_stream_itself_alone(env, numbers):
    numbers.rebalance()
    assert _strategy(env, numbers).strategy is ShipStrategy.FORWARD


def test_partition_custom(env, numbers):
    class Modulo(Partitioner):
        def partition(self, key, num_partitions):
            return key % num_partitions

    modulo = Modulo()
    how = _strategy(env, numbers.partition_custom(modulo, lambda value: value + 1))
    assert how.strategy is ShipStrategy.CUSTOM
    assert how.partitioner(7, 4) == 3
    assert how.key_selector(7) == 8
    assert how.functions == (modulo,)
    with pytest.raises(TypeError, match="partition_custom expects a Partitioner or a callable"):
        numbers.partition_custom(1, abs)
    with pytest.raises(TypeError, match="partition_custom expects a KeySelector or a callable"):
        numbers.partition_custom(modulo, 1)


def test_union_with_itself_reads_every_record_twice(env, numbers):
    mapped = numbers.map(abs)
    assert isinstance(mapped.union(mapped), DataStream)
    mapped.union(mapped).map(abs).name("both")
    assert [edge.source for edge in _edges_into(env, "both")] == [2, 2]


def test_union_keeps_each_partitioning(env, numbers):
    numbers.rebalance().union(numbers.shuffle(), numbers.key_by(abs)).map(abs).name("all")
    assert [edge.partitioning.strategy.value for edge in _edges_into(env, "all")] == [
        "REBALANCE",
        "SHUFFLE",
        "HASH",
    ]


def test_union_of_what_does_not_fit(numbers, launcher):
    with pytest.raises(InvalidProgramError, match="different types"):
        numbers.union(numbers.map(str, Types.STRING()))
    with pytest.raises(TypeError, match="union expects a DataStream"):
        numbers.union([1, 2])
    other = StreamExecutionEnvironment().from_sequence(1, 2)
    with pytest.raises(InvalidProgramError, match="same StreamExecutionEnvironment"):
        numbers.union(other)


def test_side_output(env, numbers):
    late = OutputTag("late", Types.STRING())
    processed = numbers.process(Identity())
    side = processed.get_side_output(late)
    assert side.get_type() == Types.STRING()
    side.map(len).name("late ones")
    (edge,) = _edges_into(env, "late ones")
    assert edge.side_output == "late"
    assert env._compile().stream_graph.nodes[2].side_output_types == {"late": Types.STRING()}
    with pytest.raises(InvalidProgramError, match="'late' of 'PROCESS' is read with two types"):
        processed.get_side_output(OutputTag("late", Types.INT()))
    with pytest.raises(TypeError, match="expects an OutputTag"):
        processed.get_side_output("late")


def test_sinks(numbers, node):
    discard, sink = Discard(), NoSink()
    numbers.print("id")
    numbers.add_sink(discard)
    numbers.sink_to(sink)
    assert node("Sink: Print to Std. Out").spec == specs.PrintSpec("id", Types.LONG())
    assert node("Sink: Unnamed").spec == specs.SinkFunctionSpec(discard)
    assert node("Sink: Writer").spec == specs.SinkSpec(sink)


def test_named_sinks(numbers, node):
    numbers.add_sink(Discard()).name("mine")
    numbers.sink_to(NoSink()).name("files")
    assert node("Sink: mine")
    assert node("files: Writer")


def test_sinks_mixed_up(numbers):
    with pytest.raises(TypeError, match=r"use sink_to\(\)"):
        numbers.add_sink(NoSink())
    with pytest.raises(TypeError, match=r"use add_sink\(\)"):
        numbers.sink_to(Discard())


def test_to_dataframe(env, numbers, node):
    def write(data_frame, epoch):
        pass

    numbers.to_dataframe(write)
    sink = node("Sink: DataFrame")
    assert sink.spec == specs.DataFrameSinkSpec(Types.LONG())
    assert env._compile().stream_graph.driver_objects == {sink.id: write}
    with pytest.raises(InvalidProgramError, match="this stream has no type"):
        numbers.map(str).to_dataframe(write)
    with pytest.raises(TypeError, match="write"):
        numbers.to_dataframe(None)


def test_environment_of_a_stream(env, numbers):
    assert numbers.get_execution_environment() is env
    assert numbers.get_execution_config().get_parallelism() == 2
