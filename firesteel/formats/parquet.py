"""Parquet files: rows of a declared type, or Avro records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from firesteel.common.configuration import Configuration
from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.common.typeinfo import RowTypeInfo
from firesteel.errors import ConfigurationError
from firesteel.formats.base import FilePart
from firesteel.formats.columnar import (
    BATCH_ROWS,
    ColumnarRowInputFormat,
    ColumnarWriter,
    UnitFile,
)
from firesteel.table.types import RowType, row_type_info

__all__ = [
    "PARQUET",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
    "ParquetFile",
    "ParquetWriter",
    "compression_of",
]

PARQUET = "Parquet"


class ParquetFile(UnitFile):
    """A Parquet file. Its units are row groups. A row group belongs to the part it begins in."""

    def __init__(self, file: BinaryIO, wanted: Any, batch_rows: int) -> None:
        self._file = pq.ParquetFile(file)
        self._batch_rows = batch_rows
        self._columns = wanted(self.column_names())

    def column_names(self) -> list[str]:
        return list(self._file.schema_arrow.names)

    def units(self, part: FilePart) -> list[int]:
        metadata = self._file.metadata
        groups = range(metadata.num_row_groups)
        if part.start == 0 and part.stop >= part.size:
            return list(groups)
        return [
            group for group in groups if part.start <= _start(metadata.row_group(group)) < part.stop
        ]

    def batches(self, unit: int) -> Iterator[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = self._file.iter_batches(
            self._batch_rows, row_groups=[unit], columns=self._columns, use_threads=False
        )
        return batches


def _start(group: Any) -> int:
    """Return the offset of the first byte of a row group."""
    if not group.num_columns:
        return 0
    column = group.column(0)
    starts = [column.data_page_offset]
    if column.has_dictionary_page and column.dictionary_page_offset:
        starts.append(column.dictionary_page_offset)
    return int(min(starts))


class ParquetColumnarRowInputFormat(ColumnarRowInputFormat):
    """The format of Parquet files whose records are rows.

    Several subtasks share a large file by row groups. Only the columns of the row type are read. A
    column that a file lacks is None.

    Args:
        row_type: The columns, as ``DataTypes.ROW(...)`` or ``Types.ROW_NAMED(...)``.
        hadoop_config: Accepted for PyFlink's sake. No setting changes how files are read.
        batch_size: The number of rows to read at once.
        is_utc_timestamp: Accepted for PyFlink's sake. Timestamps with a time zone are read as UTC.
        is_case_sensitive: False if names of columns differ from the row type in case.

    >>> import pyarrow as pa, pyarrow.parquet
    >>> from firesteel.datastream.connectors.file_system import FileSource
    >>> from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
    >>> from firesteel.table import DataTypes
    >>> table = pa.table({"name": ["ada"], "age": [36], "city": ["London"]})
    >>> pa.parquet.write_table(table, "people.parquet")
    >>> person = DataTypes.ROW(
    ...     [DataTypes.FIELD("age", DataTypes.INT()), DataTypes.FIELD("name", DataTypes.STRING())]
    ... )
    >>> source = FileSource.for_bulk_file_format(
    ...     ParquetColumnarRowInputFormat(person), "people.parquet"
    ... ).build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "people")
    >>> list(stream.execute_and_collect())
    [Row(age=36, name='ada')]
    """

    _units = ParquetFile
    _kind = PARQUET

    def __init__(
        self,
        row_type: RowType | RowTypeInfo,
        hadoop_config: Configuration | None = None,
        batch_size: int = BATCH_ROWS,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        super().__init__(row_type, batch_size, is_case_sensitive=is_case_sensitive)


class ParquetBulkWriters:
    """Writers of Parquet files, for ``FileSink.for_bulk_format``.

    >>> from pathlib import Path
    >>> import pyarrow.parquet
    >>> from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
    >>> from firesteel.datastream.formats.parquet import ParquetBulkWriters
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> sink = (
    ...     FileSink.for_bulk_format("out", ParquetBulkWriters.for_row_type(person))
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .build()
    ... )
    >>> stream = env.from_collection([Row("ada", 36)], person).sink_to(sink)
    >>> result = env.execute()
    >>> [pyarrow.parquet.read_table(path).to_pylist() for path in Path("out").glob("part-*")]
    [[{'name': 'ada', 'age': 36}]]
    """

    @staticmethod
    def for_row_type(
        row_type: RowType | RowTypeInfo,
        hadoop_config: Configuration | None = None,
        utc_timestamp: bool = False,
    ) -> BulkWriterFactory:
        """Return the factory of writers for rows.

        Args:
            row_type: The columns, as ``DataTypes.ROW(...)`` or ``Types.ROW_NAMED(...)``.
            hadoop_config: ``parquet.compression`` is SNAPPY (the default), GZIP, ZSTD, LZ4, BROTLI
                or UNCOMPRESSED.
            utc_timestamp: Accepted for PyFlink's sake. Timestamps without a time zone are written
                as such, and an INSTANT is written in UTC.
        """
        type_info, schema = row_type_info(row_type, "ParquetBulkWriters.for_row_type")
        return ParquetWriterFactory(type_info, schema, compression_of(hadoop_config))


def compression_of(config: Configuration | None) -> str:
    """Return pyarrow's name for the compression that a Hadoop configuration sets."""
    text = "SNAPPY" if config is None else config.get_string("parquet.compression", "SNAPPY")
    known = {
        "SNAPPY": "snappy",
        "GZIP": "gzip",
        "ZSTD": "zstd",
        "LZ4": "lz4",
        "LZ4_RAW": "lz4",
        "BROTLI": "brotli",
        "UNCOMPRESSED": "none",
    }
    if text.upper() not in known:
        raise ConfigurationError(f"parquet.compression: {text!r} is not one of {', '.join(known)}")
    return known[text.upper()]


class ParquetWriter(pq.ParquetWriter):  # type: ignore[misc]  # pyarrow has no types
    """Writes a Parquet file. Only ``close`` writes its end."""

    def __del__(self) -> None:
        """Do nothing. pyarrow would write the end of a file that its sink has given up."""


class ParquetWriterFactory(BulkWriterFactory):
    def __init__(self, type_info: RowTypeInfo, schema: pa.Schema, compression: str) -> None:
        self._type_info = type_info
        self._schema = schema
        self._compression = compression

    def create(self, out: BinaryIO) -> BulkWriter:
        return _ParquetRowWriter(out, self._type_info, self._schema, self._compression)


class _ParquetRowWriter(ColumnarWriter):
    def __init__(
        self, out: BinaryIO, type_info: RowTypeInfo, schema: pa.Schema, compression: str
    ) -> None:
        super().__init__(type_info, schema)
        self._writer = ParquetWriter(out, schema, compression=compression)

    def write_unit(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=table.num_rows)

    def write_end(self) -> None:
        self._writer.close()
