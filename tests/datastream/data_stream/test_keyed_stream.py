import pickle

import pytest

from firesteel.common import Types
from firesteel.datastream import (
    DataStream,
    FoldFunction,
    KeyedProcessFunction,
    KeyedStream,
    KeySelector,
    ProcessFunction,
    ReduceFunction,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph import operator_specs as specs
from firesteel.graph.partitioning import ShipStrategy

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class First(KeySelector):
    def get_key(self, value):
        return value[0]


class Keyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Plain(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Add(ReduceFunction, FoldFunction):
    def reduce(self, value1, value2):
        return value1

    def fold(self, accumulator, value):
        return accumulator


@pytest.fixture(name="pairs")
def _pairs(env):
    return env.from_collection([("a", 1)], PAIR)


@pytest.fixture(name="keyed")
def _keyed(pairs):
    return pairs.key_by(First(), Types.STRING())


FORBIDDEN = {
    "name": ("x",),
    "get_name": (),
    "uid": ("x",),
    "set_uid_hash": ("a" * 32,),
    "set_parallelism": (1,),
    "set_max_parallelism": (1,),
    "set_description": ("x",),
    "force_non_parallel": (),
    "set_buffer_timeout": (1,),
    "start_new_chain": (),
    "disable_chaining": (),
    "slot_sharing_group": ("x",),
    "cache": (),
    "shuffle": (),
    "rescale": (),
    "rebalance": (),
    "forward": (),
    "broadcast": (),
    "global_": (),
    "partition_custom": (abs, abs),
    "get_side_output": (None,),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_pyflink_forbids_is_an_error_that_says_why(keyed, name):
    with pytest.raises(InvalidProgramError, match="KeyedStream"):
        getattr(keyed, name)(*FORBIDDEN[name])


@pytest.mark.parametrize("name", FORBIDDEN)
def test_it_is_not_inherited_and_then_forbidden(keyed, name):
    assert not hasattr(KeyedStream, name)
    assert not hasattr(keyed, name)
    assert not issubclass(KeyedStream, DataStream)


def test_other_names_are_plain_attribute_errors(keyed):
    with pytest.raises(AttributeError, match="no attribute 'mpa'") as info:
        keyed.mpa
    assert not isinstance(info.value, InvalidProgramError)


def test_the_error_pickles(keyed):
    with pytest.raises(InvalidProgramError) as info:
        keyed.name("x")
    assert str(pickle.loads(pickle.dumps(info.value))) == str(info.value)


def test_key_by(env, keyed):
    selector = keyed.recorded.origins[0].partitioning.functions[0]
    keyed.map(lambda value: value)
    (edge,) = env._compile().stream_graph.edges
    assert edge.partitioning.strategy is ShipStrategy.HASH
    assert edge.partitioning.key_type == Types.STRING()
    assert edge.partitioning.key_selector(("a", 1)) == "a"
    assert edge.partitioning.functions == (selector,)


def test_key_by_again_starts_from_the_records(env, keyed):
    keyed.key_by(lambda value: value[1]).map(lambda value: value)
    (edge,) = env._compile().stream_graph.edges
    assert edge.partitioning.key_selector(("a", 1)) == 1


def test_key_by_after_union_and_repartitioning(env, pairs):
    pairs.rebalance().union(pairs).key_by(First()).map(lambda value: value)
    strategies = [edge.partitioning.strategy for edge in env._compile().stream_graph.edges]
    assert strategies == [ShipStrategy.HASH, ShipStrategy.HASH]


def test_key_by_wants_a_selector(pairs):
    with pytest.raises(TypeError, match="key_by expects a KeySelector or a callable"):
        pairs.key_by(0)


@pytest.mark.parametrize("operation", ["map", "flat_map", "filter"])
def test_record_operators(keyed, operation):
    assert isinstance(getattr(keyed, operation)(lambda value: value), DataStream)


def test_reduce_and_fold(keyed, node):
    assert keyed.reduce(lambda a, b: a).get_type() == PAIR
    assert isinstance(node("Reduce").spec, specs.ReduceSpec)
    folded = keyed.fold(0, lambda total, pair: total + pair[1], Types.LONG())
    assert folded.get_type() == Types.LONG()
    assert node("Fold").spec.initial_value == 0
    keyed.reduce(Add())
    keyed.fold("", Add())
    with pytest.raises(TypeError, match="reduce expects a ReduceFunction or a callable"):
        keyed.reduce(1)
    with pytest.raises(TypeError, match="fold expects a FoldFunction or a callable"):
        keyed.fold(0, Plain())


@pytest.mark.parametrize("kind", ["sum", "min", "max", "min_by", "max_by"])
def test_aggregations(keyed, node, kind):
    result = getattr(keyed, kind)(1)
    assert result.get_type() == PAIR
    assert result.get_name() == "Reduce"
    assert node("Reduce").spec == specs.AggregationSpec(kind, 1)
    with pytest.raises(TypeError, match=f"{kind}: the field must be"):
        getattr(keyed, kind)(1.5)


def test_aggregation_of_the_whole_record_by_default(env, node):
    env.from_sequence(1, 3).key_by(lambda n: 1).sum()
    assert node("Reduce").spec == specs.AggregationSpec("sum", 0)


def test_process(keyed, node):
    keyed.process(Keyed(), PAIR)
    assert node("KEYED PROCESS")
    with pytest.raises(TypeError, match="process on a KeyedStream expects a KeyedProcessFunction"):
        keyed.process(Plain())


def test_sinks_union_and_project_get_the_records_by_key(env, keyed):
    keyed.print("id")
    keyed.project(0)
    united = keyed.union(keyed)
    assert isinstance(united, DataStream)
    united.map(lambda value: value)
    strategies = {edge.partitioning.strategy for edge in env._compile().stream_graph.edges}
    assert strategies == {ShipStrategy.HASH}


def test_what_comes_after_an_operator_can_be_named(keyed):
    assert keyed.sum(1).name("total").set_parallelism(1).uid("total").get_name() == "total"
