"""ORC files: rows of a declared type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import orc

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
from firesteel.stability import public_evolving
from firesteel.table.types import RowType, row_type_info

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]

_COMPRESSIONS = ("ZLIB", "SNAPPY", "LZO", "LZ4", "ZSTD", "NONE")


class OrcFile(UnitFile):
    """An ORC file. Its units are stripes.

    pyarrow does not tell where stripes begin. The file is divided as if they had the same size,
    which gives each stripe to exactly one part.
    """

    def __init__(self, file: BinaryIO, wanted: Any, batch_rows: int) -> None:
        self._file = orc.ORCFile(file)
        self._batch_rows = batch_rows
        # Without any column, pyarrow does not tell the number of rows.
        self._columns = wanted(self.column_names()) or self.column_names()[:1]

    def column_names(self) -> list[str]:
        return list(self._file.schema.names)

    def units(self, part: FilePart) -> list[int]:
        count = self._file.nstripes
        return [
            stripe
            for stripe in range(count)
            if part.start <= part.size * stripe // count < max(part.stop, 1)
        ]

    def batches(self, unit: int) -> Iterator[pa.RecordBatch]:
        stripe = self._file.read_stripe(unit, columns=self._columns)
        for start in range(0, stripe.num_rows, self._batch_rows):
            yield stripe.slice(start, self._batch_rows)


@public_evolving
class OrcColumnarRowInputFormat(ColumnarRowInputFormat):
    """The format of ORC files whose records are rows. Not in PyFlink.

    Several subtasks share a large file by stripes. Only the columns of the row type are read. A
    column that a file lacks is None.

    Args:
        row_type: The columns, as ``DataTypes.ROW(...)`` or ``Types.ROW_NAMED(...)``.
        batch_size: The number of rows to convert at once.
        is_case_sensitive: False if names of columns differ from the row type in case.

    >>> import pyarrow as pa
    >>> from pyarrow import orc
    >>> from firesteel.datastream.connectors.file_system import FileSource
    >>> from firesteel.datastream.formats.orc import OrcColumnarRowInputFormat
    >>> orc.write_table(pa.table({"name": ["ada"], "age": [36]}), "people.orc")
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> source = FileSource.for_bulk_file_format(
    ...     OrcColumnarRowInputFormat(person), "people.orc"
    ... ).build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "people")
    >>> list(stream.execute_and_collect())
    [Row(name='ada', age=36)]
    """

    _units = OrcFile
    _kind = "ORC"

    def __init__(
        self,
        row_type: RowType | RowTypeInfo,
        batch_size: int = BATCH_ROWS,
        is_case_sensitive: bool = True,
    ) -> None:
        super().__init__(row_type, batch_size, is_case_sensitive=is_case_sensitive)


class OrcBulkWriters:
    """Writers of ORC files, for ``FileSink.for_bulk_format``.

    >>> from pathlib import Path
    >>> from pyarrow import orc
    >>> from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
    >>> from firesteel.datastream.formats.orc import OrcBulkWriters
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> sink = (
    ...     FileSink.for_bulk_format("out", OrcBulkWriters.for_row_type(person))
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .build()
    ... )
    >>> stream = env.from_collection([Row("ada", 36)], person).sink_to(sink)
    >>> result = env.execute()
    >>> [orc.read_table(path).to_pylist() for path in Path("out").glob("part-*")]
    [[{'name': 'ada', 'age': 36}]]
    """

    @staticmethod
    def for_row_type(
        row_type: RowType | RowTypeInfo,
        writer_properties: Configuration | None = None,
        hadoop_config: Configuration | None = None,
    ) -> BulkWriterFactory:
        """Return the factory of writers for rows.

        Args:
            row_type: The columns, as ``DataTypes.ROW(...)`` or ``Types.ROW_NAMED(...)``.
            writer_properties: ``orc.compress`` is ZLIB (the default), SNAPPY, LZ4, ZSTD or NONE.
            hadoop_config: Accepted for PyFlink's sake. It has no effect.
        """
        type_info, schema = row_type_info(row_type, "OrcBulkWriters.for_row_type")
        text = "ZLIB"
        if writer_properties is not None:
            text = writer_properties.get_string("orc.compress", text).upper()
        if text not in _COMPRESSIONS:
            raise ConfigurationError(
                f"orc.compress: {text!r} is not one of {', '.join(_COMPRESSIONS)}"
            )
        return _OrcWriterFactory(type_info, schema, "UNCOMPRESSED" if text == "NONE" else text)


class _OrcWriterFactory(BulkWriterFactory):
    def __init__(self, type_info: RowTypeInfo, schema: pa.Schema, compression: str) -> None:
        self._type_info = type_info
        self._schema = schema
        self._compression = compression

    def create(self, out: BinaryIO) -> BulkWriter:
        return _OrcRowWriter(out, self._type_info, self._schema, self._compression)


class _OrcRowWriter(ColumnarWriter):
    def __init__(
        self, out: BinaryIO, type_info: RowTypeInfo, schema: pa.Schema, compression: str
    ) -> None:
        super().__init__(type_info, schema)
        self._out = out
        self._writer = orc.ORCWriter(out, compression=compression)
        self._is_empty = True

    def write_unit(self, table: pa.Table) -> None:
        self._writer.write(table)
        self._is_empty = False

    def write_end(self) -> None:
        if self._is_empty:
            # A file without rows still has its columns.
            self._writer.write(self._schema.empty_table())
        self._writer.close()
