"""Input formats of files, for ``env.create_input``."""

from __future__ import annotations

from typing import Any

from firesteel.common.io import InputFormat
from firesteel.connectors.files.source import FileSource
from firesteel.formats.avro import AvroReaderFormat, AvroSchema, GenericRecordAvroTypeInfo

__all__ = ["AvroInputFormat"]


class AvroInputFormat(InputFormat):
    """Reads Avro files. Records are dicts.

    Args:
        path: A file, a directory or a glob pattern.
        schema: The schema of the records in the stream.

    >>> import fastavro
    >>> from firesteel.datastream.formats.avro import AvroInputFormat, AvroSchema
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> schema = AvroSchema.parse_string(text)
    >>> with open("people.avro", "wb") as file:
    ...     fastavro.writer(file, schema.definition, [{"age": 36}])
    >>> stream = env.create_input(AvroInputFormat("people.avro", schema))
    >>> list(stream.execute_and_collect())
    [{'age': 36}]
    """

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self._path = path
        self._schema = schema

    def to_source(self) -> Any:
        avro = AvroReaderFormat.for_generic_record(self._schema)
        return FileSource.for_bulk_file_format(avro, self._path).build()

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """Return the type of the records.

        >>> from firesteel.datastream.formats.avro import AvroInputFormat, AvroSchema
        >>> AvroInputFormat("people.avro", AvroSchema.parse_string('"int"')).get_produced_type()
        GenericRecordAvroTypeInfo("int")
        """
        return GenericRecordAvroTypeInfo(self._schema)
