"""Messages whose schemas are in a Confluent Schema Registry."""

from firesteel.formats.confluent_registry import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
    ConfluentRegistryJsonDeserializationSchema,
    ConfluentRegistryJsonSerializationSchema,
    SchemaRegistryError,
)

__all__ = [
    "ConfluentRegistryAvroDeserializationSchema",
    "ConfluentRegistryAvroSerializationSchema",
    "ConfluentRegistryJsonDeserializationSchema",
    "ConfluentRegistryJsonSerializationSchema",
    "SchemaRegistryError",
]
