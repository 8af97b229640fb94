"""Avro in files and messages, under PyFlink's import path."""

from firesteel.connectors.files.input_formats import AvroInputFormat
from firesteel.formats.avro import (
    AvroBulkWriters,
    AvroReaderFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroReaderFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]
