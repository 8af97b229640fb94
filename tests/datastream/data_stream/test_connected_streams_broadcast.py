import pytest

from firesteel.common import Types
from firesteel.datastream import (
    BroadcastConnectedStream,
    BroadcastProcessFunction,
    BroadcastStream,
    KeyedBroadcastProcessFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor
from firesteel.errors import InvalidProgramError
from firesteel.graph import operator_specs as specs

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
OTHERS = MapStateDescriptor("others", Types.STRING(), Types.LONG())


class Plain(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        yield value


class Keyed(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        yield value


def _edges(env):
    return [
        (edge.input_index, edge.partitioning.strategy.value)
        for edge in env._compile().stream_graph.edges
    ]


def test_a_stream_with_a_broadcast_one(env, node):
    records, rules = env.from_sequence(1, 3), env.from_sequence(1, 2)
    broadcast = rules.broadcast(RULES, OTHERS)
    assert isinstance(broadcast, BroadcastStream)
    connected = records.rebalance().connect(broadcast)
    assert isinstance(connected, BroadcastConnectedStream)
    result = connected.process(Plain(), Types.LONG())
    assert result.get_type() == Types.LONG()
    spec = node("Co-Process-Broadcast").spec
    assert isinstance(spec, specs.BroadcastProcessSpec)
    assert [descriptor.get_name() for descriptor in spec.descriptors] == ["rules", "others"]
    assert _edges(env) == [(0, "REBALANCE"), (1, "BROADCAST")]


def test_a_keyed_stream_with_a_broadcast_one(env, node):
    records, rules = env.from_sequence(1, 3), env.from_sequence(1, 2)
    records.key_by(abs).connect(rules.broadcast(RULES)).process(Keyed())
    assert node("Co-Process-Broadcast-Keyed")
    assert _edges(env) == [(0, "HASH"), (1, "BROADCAST")]


def test_the_function_must_fit_the_stream(env):
    records, rules = env.from_sequence(1, 3), env.from_sequence(1, 2).broadcast(RULES)
    with pytest.raises(InvalidProgramError, match="only be used on a keyed stream"):
        records.connect(rules).process(Keyed())
    with pytest.raises(InvalidProgramError, match="only be used on a stream without a key"):
        records.key_by(abs).connect(rules).process(Plain())
    with pytest.raises(TypeError, match="a BroadcastProcessFunction or a KeyedBroadcastProcess"):
        records.connect(rules).process(abs)


def test_descriptors_are_of_maps_and_have_names_of_their_own(env):
    rules = env.from_sequence(1, 2)
    with pytest.raises(TypeError, match="broadcast expects MapStateDescriptors"):
        rules.broadcast(ListStateDescriptor("rules", Types.STRING()))
    with pytest.raises(InvalidProgramError, match="must be unique, got rules, rules"):
        rules.broadcast(RULES, RULES)


def test_both_streams_are_of_one_environment(env):
    other = StreamExecutionEnvironment().from_sequence(1, 2).broadcast(RULES)
    with pytest.raises(InvalidProgramError, match="same StreamExecutionEnvironment"):
        env.from_sequence(1, 2).connect(other)
