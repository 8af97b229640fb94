"""DynamicKafkaSource, under PyFlink's import path."""

from firesteel.connectors.dynamic_kafka.metadata import (
    ClusterMetadata,
    KafkaMetadataService,
    KafkaStream,
    KafkaStreamSetSubscriber,
    KafkaStreamSubscriber,
    SingleClusterTopicMetadataService,
    StreamPatternSubscriber,
)
from firesteel.connectors.dynamic_kafka.source import (
    DynamicKafkaSource,
    DynamicKafkaSourceBuilder,
    KafkaRecordDeserializationSchema,
)

__all__ = [
    "ClusterMetadata",
    "DynamicKafkaSource",
    "DynamicKafkaSourceBuilder",
    "KafkaMetadataService",
    "KafkaRecordDeserializationSchema",
    "KafkaStream",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "SingleClusterTopicMetadataService",
    "StreamPatternSubscriber",
]
