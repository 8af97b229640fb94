"""KafkaSource settings, also in the spelling of the Java client. Needs no broker."""

from __future__ import annotations

import importlib.util
import logging
import pickle

import cloudpickle
import pytest

from firesteel.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    RowFieldExtractorSchema,
    SimpleStringSchema,
)
from firesteel.common.typeinfo import Types
from firesteel.connectors.kafka.errors import (
    KafkaUnreachableError,
    NoCommittedOffsetError,
    OffsetOutOfRangeError,
    UnknownTopicError,
)
from firesteel.connectors.kafka.properties import admin_properties, check_properties, translate
from firesteel.datastream.connectors.base import Boundedness
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from firesteel.errors import ConfigurationError, InvalidProgramError

P = KafkaTopicPartition


def builder():
    return (
        KafkaSource.builder()
        .set_bootstrap_servers("nowhere:9092")
        .set_topics("clicks")
        .set_value_only_deserializer(SimpleStringSchema())
    )


def test_facts():
    source = builder().build()
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert source.get_produced_type() == Types.STRING()
    assert source.replayable
    latest = KafkaOffsetsInitializer.latest()
    assert builder().set_bounded(latest).build().get_boundedness() is Boundedness.BOUNDED
    unbounded = builder().set_unbounded(latest).build()
    assert unbounded.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert repr(cloudpickle.loads(cloudpickle.dumps(source))) == repr(source)


@pytest.mark.parametrize("left_out", ["bootstrap_servers", "set_topics", "deserializer"])
def test_what_is_needed_is_asked_for(left_out):
    steps = {
        "bootstrap_servers": lambda b: b.set_bootstrap_servers("nowhere:9092"),
        "set_topics": lambda b: b.set_topic_pattern("a.*"),
        "deserializer": lambda b: b.set_value_only_deserializer(ByteArraySchema()),
    }
    incomplete = KafkaSource.builder()
    for name, step in steps.items():
        if name != left_out:
            step(incomplete)
    with pytest.raises(InvalidProgramError, match=left_out):
        incomplete.build()


def test_topics_are_chosen_in_one_way_only():
    with pytest.raises(
        InvalidProgramError, match="topics like a cannot be set, because topics clicks"
    ):
        builder().set_topic_pattern("a")
    with pytest.raises(ValueError, match="not a valid regular expression"):
        KafkaSource.builder().set_topic_pattern("a(")
    with pytest.raises(TypeError, match="DeserializationSchema"):
        builder().set_value_only_deserializer(RowFieldExtractorSchema(0))


def test_committing_needs_a_group():
    committed = KafkaOffsetsInitializer.committed_offsets()
    for asking in (
        builder().set_starting_offsets(committed),
        builder().set_bounded(committed),
        builder().set_property("enable.auto.commit", "true"),
        builder().set_property("commit.offsets.on.checkpoint", "true"),
    ):
        with pytest.raises(ConfigurationError, match="set_group_id"):
            asking.build()
        asking.set_group_id("group").build()


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'firesteel\[kafka\]'"):
        builder().build()


def test_a_schema_that_ends_streams_is_warned_of(caplog):
    class Ending(DeserializationSchema):
        def deserialize(self, message):
            return message

        def is_end_of_stream(self, next_element):
            return True

    builder().set_value_only_deserializer(Ending()).build()
    assert "Ending.is_end_of_stream is not called" in caplog.text


def test_names_and_values_of_java_become_those_of_librdkafka():
    properties = {
        "bootstrap.servers": "nowhere:9092",
        "fetch.max.wait.ms": "50",
        "request.timeout.ms": "20000",
        "receive.buffer.bytes": "100000",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="a \\"b\\" c";',
        "ssl.endpoint.identification.algorithm": "",
        "queued.min.messages": "1000",
    }
    translated = translate(properties)
    assert translated == {
        "bootstrap.servers": "nowhere:9092",
        "fetch.wait.max.ms": "50",
        "socket.timeout.ms": "20000",
        "socket.receive.buffer.bytes": "100000",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "me",
        "sasl.password": 'a "b" c',
        "ssl.endpoint.identification.algorithm": "none",
        "queued.min.messages": "1000",
        # Where the two clients have other defaults, Java's hold.
        "isolation.level": "read_uncommitted",
        "enable.auto.commit": "false",
        "check.crcs": "true",
        "fetch.queue.backoff.ms": "10",
    }
    check_properties(translated)
    assert "queued.min.messages" not in admin_properties(translated)
    assert admin_properties(translated)["sasl.username"] == "me"


def test_what_has_no_meaning_here_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        translated = translate({"bootstrap.servers": "a", "max.poll.records": "500"})
    assert "max.poll.records has no effect: Firesteel reads as many records" in caplog.text
    assert "max.poll.records" not in translated


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("fetch.min.byte", "1", r"fetch\.min\.byte.*Did you mean fetch\.min\.bytes\?"),
        ("no.such.thing.at.all", "1", "No such configuration property"),
        ("fetch.min.bytes", "many", r'Invalid value.*"fetch\.min\.bytes"'),
        ("isolation.level", "read", r'Invalid value "read".*isolation\.level'),
        ("interceptor.classes", "com.example.Spy", "names a Java class"),
        ("ssl.truststore.location", "/a/trust.jks", "PEM"),
        ("ssl.keystore.location", "/a/key.jks", "PKCS12"),
        (
            "sasl.jaas.config",
            "com.sun.security.auth.module.Krb5LoginModule required;",
            "PlainLogin",
        ),
        ("partition.discovery.interval.ms", "soon", "milliseconds"),
        ("commit.offsets.on.checkpoint", "yes", "true or false"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_hint(name, value, message):
    with pytest.raises(ConfigurationError, match=message):
        builder().set_group_id("group").set_property(name, value).build()


@pytest.mark.parametrize(
    ("starting", "chosen", "reset"),
    [
        (KafkaOffsetsInitializer.earliest(), None, "error"),
        (KafkaOffsetsInitializer.latest(), None, "error"),
        (KafkaOffsetsInitializer.timestamp(0), None, "error"),
        (KafkaOffsetsInitializer.committed_offsets(), None, "error"),
        (
            KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST),
            None,
            "latest",
        ),
        (KafkaOffsetsInitializer.offsets({}), None, "earliest"),
        (KafkaOffsetsInitializer.earliest(), "latest", "latest"),
        (KafkaOffsetsInitializer.timestamp(0), "earliest", "earliest"),
        (KafkaOffsetsInitializer.offsets({}), "none", "error"),
    ],
)
def test_deleted_records_are_skipped_only_if_the_user_has_chosen_so(starting, chosen, reset):
    source = builder().set_group_id("group").set_starting_offsets(starting)
    if chosen is not None:
        source = source.set_property("auto.offset.reset", chosen)
    assert source.build().client_properties["auto.offset.reset"] == reset


def test_offsets_and_timestamps_are_not_negative():
    with pytest.raises(ValueError, match="clicks-0 must not be negative, got -2"):
        KafkaOffsetsInitializer.offsets({P("clicks", 0): -2})
    with pytest.raises(ValueError, match="-1"):
        KafkaOffsetsInitializer.timestamp(-1)
    with pytest.raises(ValueError, match="-3"):
        P("clicks", -3)


@pytest.mark.parametrize(
    "error",
    [
        OffsetOutOfRangeError(P("clicks", 3), "gone"),
        KafkaUnreachableError("nowhere:9092", "asked", "refused"),
        UnknownTopicError("no topic", ["clicks"]),
        NoCommittedOffsetError("group", [P("clicks", n) for n in range(7)]),
    ],
)
def test_errors_travel(error):
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
