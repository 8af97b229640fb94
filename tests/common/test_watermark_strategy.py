"""Descriptions that the runtime reads: watermark and restart strategies, schemas, encoders."""

import pickle
from datetime import timedelta
from io import BytesIO

import pytest

from firesteel.common import (
    ByteArraySchema,
    DeserializationSchema,
    Duration,
    Encoder,
    RestartStrategies,
    Row,
    SimpleStringSchema,
    TimestampAssigner,
    Types,
    TypeSerializer,
    WatermarkStrategy,
)
from firesteel.common.serialization import RowFieldExtractorSchema
from firesteel.common.watermark_strategy import (
    BoundedOutOfOrderness,
    CustomGenerator,
    MonotonousTimestamps,
    NoWatermarks,
    WatermarkAlignment,
    WatermarkGenerator,
)
from firesteel.config import check_keys


class First(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0]


class Silent(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        pass


def test_the_generators():
    second = Duration.of_seconds(1)
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(second)
    assert bounded.generator == BoundedOutOfOrderness(second)
    assert WatermarkStrategy.for_monotonous_timestamps().generator == MonotonousTimestamps()
    assert WatermarkStrategy.no_watermarks().generator == NoWatermarks()
    assert WatermarkStrategy.for_generator(Silent).generator == CustomGenerator(Silent)
    with pytest.raises(ValueError, match="negative"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1))


def test_enriching_a_strategy_keeps_the_rest():
    strategy = (
        WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(First())
        .with_idleness(Duration.of_minutes(1))
        .with_watermark_alignment("group", Duration.of_seconds(5))
    )
    assert strategy.generator == MonotonousTimestamps()
    assert isinstance(strategy.timestamp_assigner, First)
    assert strategy.timestamp_assigner.extract_timestamp((7,), -1) == 7
    assert strategy.idle_timeout == Duration.of_minutes(1)
    assert strategy.alignment == WatermarkAlignment(
        "group", Duration.of_seconds(5), Duration.of_seconds(1)
    )


def test_the_assigner_is_set_on_the_strategy_itself_as_in_pyflink():
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    strategy.with_timestamp_assigner(First())
    assert isinstance(strategy.timestamp_assigner, First)
    strategy.with_timestamp_assigner(lambda value, timestamp: value + timestamp)
    assert strategy.timestamp_assigner.extract_timestamp(1, 2) == 3
    with pytest.raises(TypeError):
        strategy.with_timestamp_assigner(5)  # type: ignore[arg-type]  # refused


def test_idleness_must_be_longer_than_zero():
    with pytest.raises(ValueError, match="greater than zero"):
        WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(0))


def test_a_strategy_pickles():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    assert pickle.loads(pickle.dumps(strategy)) == strategy


def test_restart_strategies_keep_their_figures():
    fixed = RestartStrategies.fixed_delay_restart(3, 1500)
    assert fixed.get_restart_attempts() == 3
    assert fixed.get_delay_between_attempts_interval() == timedelta(milliseconds=1500)
    assert fixed == RestartStrategies.fixed_delay_restart(3, timedelta(seconds=1.5))
    assert "1500 ms" in fixed.get_description()
    rate = RestartStrategies.failure_rate_restart(2, 60_000, timedelta(seconds=1))
    assert rate.get_max_failure_rate() == 2
    assert rate.get_failure_interval() == timedelta(minutes=1)
    assert rate.get_delay_between_attempts_interval() == timedelta(seconds=1)
    assert RestartStrategies.no_restart() == RestartStrategies.no_restart()
    fall_back: object = RestartStrategies.fall_back_restart()
    assert fall_back != RestartStrategies.no_restart()
    with pytest.raises(TypeError, match="milliseconds or a timedelta"):
        RestartStrategies.fixed_delay_restart(3, "1 s")  # type: ignore[arg-type]  # refused


def test_restart_strategies_translate_to_declared_keys(caplog):
    for strategy in (
        RestartStrategies.no_restart(),
        RestartStrategies.fall_back_restart(),
        RestartStrategies.fixed_delay_restart(3, 10),
        RestartStrategies.failure_rate_restart(2, 3, 4),
    ):
        check_keys(strategy.to_settings())
        assert pickle.loads(pickle.dumps(strategy)) == strategy


def test_string_schema():
    schema = SimpleStringSchema("ISO-8859-1")
    assert schema.serialize("ü") == b"\xfc"
    assert schema.deserialize(b"\xfc") == "ü"
    assert schema.get_produced_type() == Types.STRING()
    assert SimpleStringSchema().deserialize(b"\xff") == "\ufffd"
    with pytest.raises(TypeError, match="got int"):
        schema.serialize(1)
    with pytest.raises(ValueError, match="Unknown character set"):
        SimpleStringSchema("no-such-charset")


def test_bytes_and_field_schemas():
    assert ByteArraySchema().serialize(bytearray(b"a")) == b"a"
    assert ByteArraySchema().deserialize(b"a") == b"a"
    assert RowFieldExtractorSchema(1).serialize(Row(1, b"x")) == b"x"
    with pytest.raises(TypeError, match="must be bytes"):
        RowFieldExtractorSchema(0).serialize(Row(1, b"x"))
    with pytest.raises(ValueError, match="must not be negative"):
        RowFieldExtractorSchema(-1)


def test_a_schema_of_the_users_own():
    class Number(DeserializationSchema):
        def deserialize(self, message):
            return int(message)

    assert Number().deserialize(b"12") == 12
    assert Number().get_produced_type().is_pickled
    assert not Number().is_end_of_stream(12)


def test_the_string_encoder_writes_java_text_once_it_knows_the_type():
    encoder = Encoder.simple_string_encoder()
    assert encoder.encode(("a", True)) == b"('a', True)\n"
    typed = encoder.with_type(Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))
    assert typed.encode(("a", True)) == b"(a,true)\n"
    assert Encoder.simple_string_encoder("UTF-16LE").encode("a") == b"a\x00\n\x00"


def test_type_serializers_compare_by_class_and_fields():
    class Text(TypeSerializer[str]):
        def serialize(self, element, stream):
            stream.write(element.encode())

        def deserialize(self, stream):
            return stream.read().decode()

    stream = BytesIO()
    Text().serialize("x", stream)
    stream.seek(0)
    assert Text().deserialize(stream) == "x"
    assert Text() == Text()
    assert hash(Text()) == hash(Text())
    assert repr(Text()) == "Text()"
