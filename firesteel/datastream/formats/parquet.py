"""Parquet files, under PyFlink's import path."""

from firesteel.formats.avro_parquet import AvroParquetReaders, AvroParquetWriters
from firesteel.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
]
