import pytest

from firesteel.common import Types
from firesteel.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph import operator_specs as specs


class Both(CoMapFunction, CoFlatMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value

    def flat_map1(self, value):
        return [value]

    def flat_map2(self, value):
        return [value]


class Process(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


class KeyedProcess(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


@pytest.fixture(name="streams")
def _streams(env):
    return env.from_sequence(1, 3), env.from_collection(["a"], Types.STRING())


def _strategies(env):
    return [edge.partitioning.strategy.value for edge in env._compile().stream_graph.edges]


def test_map_and_flat_map(env, streams, node):
    first, second = streams
    first.connect(second).map(Both(), Types.LONG())
    first.connect(second).flat_map(Both())
    assert isinstance(node("Co-Map").spec, specs.CoMapSpec)
    assert isinstance(node("Co-Flat Map").spec, specs.CoFlatMapSpec)
    assert [edge.input_index for edge in env._compile().stream_graph.edges] == [0, 1, 0, 1]


def test_key_by_on_both(env, streams, node):
    first, second = streams
    first.connect(second).key_by(abs, len).process(KeyedProcess())
    assert _strategies(env) == ["HASH", "HASH"]
    assert node("Keyed Co-Process")


def test_two_keyed_streams(env, streams, node):
    first, second = streams
    first.key_by(abs).connect(second.key_by(len)).process(KeyedProcess())
    assert _strategies(env) == ["HASH", "HASH"]
    assert node("Keyed Co-Process")


def test_key_by_replaces_earlier_keys(env, streams):
    first, second = streams
    first.key_by(abs).connect(second).key_by(bool, len).map(Both())
    selectors = [e.partitioning.key_selector for e in env._compile().stream_graph.edges]
    assert selectors == [bool, len]


def test_keyed_function_needs_two_keyed_streams(streams, node):
    first, second = streams
    with pytest.raises(InvalidProgramError, match="needs two keyed streams"):
        first.key_by(abs).connect(second).process(KeyedProcess())
    first.connect(second).process(Process())
    assert node("Co-Process")


@pytest.mark.parametrize("operation", ["map", "flat_map", "process"])
def test_wrong_functions(streams, operation):
    first, second = streams
    with pytest.raises(TypeError, match=f"{operation} on ConnectedStreams expects a Co"):
        getattr(first.connect(second), operation)(abs)


def test_connect_wants_a_stream(streams):
    with pytest.raises(TypeError, match="connect expects a DataStream or a KeyedStream"):
        streams[0].connect(None)
