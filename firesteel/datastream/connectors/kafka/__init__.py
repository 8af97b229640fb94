"""KafkaSource and KafkaSink, under PyFlink's import path."""

from typing import TYPE_CHECKING

from firesteel.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from firesteel.connectors.kafka.record_serialization import (
    HeaderProvider,
    KafkaPartitioner,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from firesteel.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from firesteel.connectors.kafka.source import KafkaSource, KafkaSourceBuilder
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition
from firesteel.gaps import gap_importer

__all__ = [
    "HeaderProvider",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaPartitioner",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
]

if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
