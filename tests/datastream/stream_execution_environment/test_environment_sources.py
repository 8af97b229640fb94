import types

import pytest

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import ReaderContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import TypeMismatchError
from firesteel.graph.operator_specs import DataFrameSourceSpec, SourceSpec


def _elements(stream):
    source = stream.recorded.origins[0].transformation.spec.source
    reader = source.create_reader(ReaderContext(subtask_index=0, parallelism=1))
    reader.add_splits(source.create_enumerator(1).discover_splits())
    return list(reader.read(100_000))


@pytest.mark.parametrize(
    "collection", [[1, 2], (1, 2), range(1, 3), {1: "a", 2: "b"}, iter([1, 2])]
)
def test_any_iterable(env, collection):
    stream = env.from_collection(collection)
    assert _elements(stream) == [1, 2]
    assert stream.get_type() == Types.PICKLED_BYTE_ARRAY()


def test_typed_elements_are_converted(env):
    stream = env.from_collection([("a", 1)], Types.ROW([Types.STRING(), Types.INT()]))
    assert _elements(stream) == [Row(f0="a", f1=1)]
    assert isinstance(_elements(stream)[0], Row)


def test_typed_generators_are_converted_in_chunks(env):
    row = Types.ROW([Types.INT()])
    stream = env.from_collection(((i,) for i in range(10_000)), row)
    assert _elements(stream) == [Row(f0=i) for i in range(10_000)]


def test_a_typed_range_stays_a_range(env):
    stream = env.from_collection(range(10**9), Types.LONG())
    assert len(stream.recorded.origins[0].transformation.spec.source) == 10**9
    assert _elements(env.from_collection(range(0), Types.LONG())) == []


def test_elements_that_do_not_fit(env):
    with pytest.raises(TypeMismatchError):
        env.from_collection(["a"], Types.INT())


def test_not_a_collection(env):
    with pytest.raises(TypeError, match="from_collection expects an iterable"):
        env.from_collection(1)


def test_from_source(env):
    source = NumberSequenceSource(1, 3)
    stream = env.from_source(source, None, "numbers")
    assert stream.get_name() == "numbers"
    assert stream.get_type() == Types.LONG()
    assert stream.recorded.origins[0].transformation.spec == SourceSpec(source, None)
    assert env.from_source(source, None, "n", Types.INT()).get_type() == Types.INT()
    with pytest.raises(TypeError, match="from_source expects a Source"):
        env.from_source([1], None, "n")


def test_a_source_takes_a_watermark_strategy(env):
    source = NumberSequenceSource(1, 3)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_source(source, strategy, "n")
    assert stream.recorded.origins[0].transformation.spec == SourceSpec(source, strategy)
    with pytest.raises(TypeError, match="from_source expects a WatermarkStrategy"):
        env.from_source(source, "n", "n")


def test_socket(env, node):
    env.socket_text_stream("localhost", 9999).map(str)
    source = node("Source: Socket Stream")
    assert (source.parallelism, source.output_type) == (1, Types.STRING())


def _spark_type(name, **fields):
    return types.SimpleNamespace(typeName=lambda: name, **fields)


def _field(name, data_type):
    return types.SimpleNamespace(name=name, dataType=data_type)


def test_from_dataframe(env, node):
    struct = _spark_type("struct", fields=[_field("x", _spark_type("double"))])
    frame = types.SimpleNamespace(
        columns=["id", "tags", "weights", "inner", "odd", "price"],
        isStreaming=True,
        schema=types.SimpleNamespace(
            fields=[
                _field("id", _spark_type("long")),
                _field("tags", _spark_type("array", elementType=_spark_type("string"))),
                _field(
                    "weights",
                    _spark_type(
                        "map", keyType=_spark_type("string"), valueType=_spark_type("float")
                    ),
                ),
                _field("inner", struct),
                _field("odd", _spark_type("interval")),
                _field("price", _spark_type("decimal(10,2)")),
            ]
        ),
    )
    stream = env.from_dataframe(frame)
    assert stream.get_type() == Types.ROW_NAMED(
        ["id", "tags", "weights", "inner", "odd", "price"],
        [
            Types.LONG(),
            Types.LIST(Types.STRING()),
            Types.MAP(Types.STRING(), Types.FLOAT()),
            Types.ROW_NAMED(["x"], [Types.DOUBLE()]),
            Types.PICKLED_BYTE_ARRAY(),
            Types.BIG_DEC(),
        ],
    )
    stream.print()
    source = node("Source: DataFrame")
    assert source.spec == DataFrameSourceSpec(stream.get_type(), None, bounded=False)
    job = env._compile()
    assert job.stream_graph.driver_objects[source.id] is frame
    assert job.levels.level_of[source.id] == 1
    assert not job.settings.bounded


def test_not_a_dataframe(env):
    with pytest.raises(TypeError, match="expects a Spark DataFrame"):
        env.from_dataframe([1, 2])


def test_sources_need_no_spark():
    import subprocess
    import sys

    code = "import sys, firesteel.datastream; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_environments_are_independent(launcher):
    first, second = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    first.from_sequence(1, 2).print()
    assert second.program._transformations == []
