"""Copies of a Kafka topic with a map in between: ``python -m benchmarks.peers.topic_to_topic``.

Each function is a program of one peer, with its imports, because each peer has its own environment.
It reads a topic of text from its beginning, and writes the text in upper case. Programs do not have
to end: the section kills them when all records are written.

All of them have one task, acknowledge or checkpoint every second, and keep the defaults otherwise.
"""

import sys
from collections.abc import Callable
from typing import Any


def handwritten(servers: str, source: str, target: str) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "loop"})
    consumer.assign([TopicPartition(source, 0, 0)])
    producer = Producer({"bootstrap.servers": servers, "delivery.report.only.error": True})
    while True:
        for message in consumer.consume(10_000, 0.1):
            if message.error() is None:
                text = (message.value() or b"").decode().upper()
                while True:
                    try:
                        producer.produce(target, text)
                    except BufferError:
                        producer.poll(0.1)
                    else:
                        break
        producer.poll(0)


def firesteel(servers: str, source: str, target: str, guarantee: str) -> None:
    from firesteel.common import Configuration, Types, WatermarkStrategy
    from firesteel.common.serialization import SimpleStringSchema
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors.base import DeliveryGuarantee
    from firesteel.datastream.connectors.kafka import (
        KafkaRecordSerializationSchema,
        KafkaSink,
        KafkaSource,
    )

    _copy(
        StreamExecutionEnvironment.get_execution_environment(Configuration()),
        KafkaSource,
        KafkaSink,
        KafkaRecordSerializationSchema,
        DeliveryGuarantee[guarantee],
        (Types, WatermarkStrategy, SimpleStringSchema),
        (servers, source, target),
    )


def pyflink(servers: str, source: str, target: str, guarantee: str, jar: str) -> None:
    import os
    import sysconfig

    # Flink starts its workers with the first `python` of the path.
    os.environ["PATH"] = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]
    from pyflink.common import Types, WatermarkStrategy
    from pyflink.common.serialization import SimpleStringSchema
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.datastream.connectors.base import DeliveryGuarantee
    from pyflink.datastream.connectors.kafka import (
        KafkaRecordSerializationSchema,
        KafkaSink,
        KafkaSource,
    )

    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_jars(f"file://{jar}")
    _copy(
        env,
        KafkaSource,
        KafkaSink,
        KafkaRecordSerializationSchema,
        DeliveryGuarantee[guarantee],
        (Types, WatermarkStrategy, SimpleStringSchema),
        (servers, source, target),
    )


def _copy(
    env: Any,
    source_class: Any,
    sink_class: Any,
    schema_class: Any,
    guarantee: Any,
    names: tuple[Any, Any, Any],
    place: tuple[str, str, str],
) -> None:
    """Run the program that Firesteel and PyFlink share."""
    types, strategy, text = names
    servers, source, target = place
    env.set_parallelism(1)
    env.enable_checkpointing(1000)
    records = (
        source_class.builder()
        .set_bootstrap_servers(servers)
        .set_topics(source)
        .set_value_only_deserializer(text())
        .build()
    )
    schema = schema_class.builder().set_topic(target).set_value_serialization_schema(text())
    sink = (
        sink_class.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(schema.build())
        .set_delivery_guarantee(guarantee)
        .set_transactional_id_prefix(target)
        .set_property("transaction.timeout.ms", "600000")
        .build()
    )
    stream = env.from_source(records, strategy.no_watermarks(), "topic")
    stream.map(str.upper, types.STRING()).sink_to(sink)
    env.execute("topic to topic")


def bytewax(servers: str, source: str, target: str) -> None:
    import bytewax.operators as op
    from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
    from bytewax.dataflow import Dataflow
    from bytewax.testing import run_main

    flow = Dataflow("copy")
    records = op.input("in", flow, KafkaSource([servers], [source]))
    copies = op.map(
        "map",
        records,
        lambda one: KafkaSinkMessage(one.key, one.value.decode().upper().encode()),
    )
    op.output("out", copies, KafkaSink([servers], target))
    run_main(flow)


def quix(servers: str, source: str, target: str) -> None:
    from quixstreams import Application

    app = Application(
        broker_address=servers,
        consumer_group=f"copy to {target}",
        auto_offset_reset="earliest",
        auto_create_topics=False,
        commit_interval=1.0,
        loglevel="ERROR",
    )
    records = app.dataframe(app.topic(source, value_deserializer="string"))
    records.apply(str.upper).to_topic(app.topic(target, value_serializer="string"))
    app.run()


PROGRAMS: dict[str, Callable[..., None]] = {
    one.__name__: one for one in (handwritten, firesteel, pyflink, bytewax, quix)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
