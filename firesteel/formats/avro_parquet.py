"""Parquet files whose records are Avro records."""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.common.typeinfo import TypeInformation
from firesteel.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from firesteel.formats.base import BrokenRecords, FilePart, RecordReader, StreamFormat
from firesteel.formats.columnar import BATCH_ROWS, ColumnarReader, UnitFile
from firesteel.formats.parquet import PARQUET, ParquetFile, ParquetWriter

__all__ = ["AvroParquetReaders", "AvroParquetWriters"]

_ROWS_AT_ONCE = 64 * 1024


class AvroParquetReaders:
    """The format of Parquet files whose records are dicts.

    >>> import pyarrow as pa, pyarrow.parquet
    >>> from firesteel.datastream.connectors.file_system import FileSource
    >>> from firesteel.datastream.formats.avro import AvroSchema
    >>> from firesteel.datastream.formats.parquet import AvroParquetReaders
    >>> pa.parquet.write_table(pa.table({"age": [36]}), "people.parquet")
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> source = FileSource.for_record_stream_format(
    ...     AvroParquetReaders.for_generic_record(AvroSchema.parse_string(text)), "people.parquet"
    ... ).build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "people")
    >>> list(stream.execute_and_collect())
    [{'age': 36}]
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Return the format for a schema. Its fields are the columns to read.

        Args:
            schema: The schema of the records.
        """
        return _AvroParquetFormat(schema)


class _AvroParquetFormat(StreamFormat):
    is_splittable = splits_by_default = True
    allows_empty_files = decompresses = False

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._type_info = GenericRecordAvroTypeInfo(schema)
        self._columns = {field.name: field for field in _fields(schema)}

    def create_reader(
        self, file: BinaryIO, part: FilePart, position: Any, broken: BrokenRecords
    ) -> RecordReader:
        def open_units(opened: BinaryIO) -> UnitFile:
            return ParquetFile(opened, self._wanted, BATCH_ROWS)

        return ColumnarReader(file, part, position, broken, PARQUET, open_units, self._records)

    def _wanted(self, columns: list[str]) -> list[str]:
        return [name for name in columns if name in self._columns]

    def _records(self, batch: pa.RecordBatch) -> list[Any]:
        missing = [name for name in self._columns if name not in batch.schema.names]
        records: list[Any] = batch.to_pylist(maps_as_pydicts="strict")
        if missing:
            nothing = dict.fromkeys(missing)
            records = [record | nothing for record in records]
        return records

    def get_produced_type(self) -> TypeInformation:
        return self._type_info


class AvroParquetWriters:
    """Writers of Parquet files for Avro records, for ``FileSink.for_bulk_format``.

    >>> from pathlib import Path
    >>> import pyarrow.parquet
    >>> from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
    >>> from firesteel.datastream.formats.avro import AvroSchema
    >>> from firesteel.datastream.formats.parquet import AvroParquetWriters
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> schema = AvroSchema.parse_string(text)
    >>> sink = (
    ...     FileSink.for_bulk_format("out", AvroParquetWriters.for_generic_record(schema))
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .build()
    ... )
    >>> stream = env.from_collection([{"age": 36}]).sink_to(sink)
    >>> result = env.execute()
    >>> [pyarrow.parquet.read_table(path).to_pylist() for path in Path("out").glob("part-*")]
    [[{'age': 36}]]
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Return the factory of writers for dicts that match a schema.

        Args:
            schema: The schema of the records.
        """
        return _AvroParquetWriterFactory(schema)


class _AvroParquetWriterFactory(BulkWriterFactory):
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = pa.schema(_fields(schema))

    def create(self, out: BinaryIO) -> BulkWriter:
        return _AvroParquetWriter(out, self._schema)


class _AvroParquetWriter(BulkWriter):
    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = ParquetWriter(out, schema)
        self._records: list[Any] = []

    def add_element(self, element: Any) -> None:
        self._records.append(element)
        if len(self._records) >= _ROWS_AT_ONCE:
            self._write()

    def _write(self) -> None:
        records, self._records = self._records, []
        if records:
            self._writer.write_table(pa.Table.from_pylist(records, self._schema))

    def finish(self) -> None:
        self._write()
        self._writer.close()


def _fields(schema: AvroSchema) -> list[pa.Field]:
    arrow_type = GenericRecordAvroTypeInfo(schema).to_arrow_type()
    if not pa.types.is_struct(arrow_type):
        raise TypeError(f"Parquet needs the schema of a record, got {schema}")
    return list(arrow_type)
