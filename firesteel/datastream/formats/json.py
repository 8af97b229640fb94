"""JSON in files and messages, under PyFlink's import path."""

from firesteel.formats.json import (
    JsonEncoder,
    JsonReaderFormat,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)

__all__ = [
    "JsonEncoder",
    "JsonReaderFormat",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
]
