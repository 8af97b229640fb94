"""KafkaSource, under PyFlink's import path. This version has no KafkaSink, and its import says so."""

from typing import TYPE_CHECKING

from firesteel.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from firesteel.connectors.kafka.source import KafkaSource, KafkaSourceBuilder
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition
from firesteel.gaps import gap_importer

__all__ = [
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
]

if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
