"""Rows of files with columns: the parts that Parquet and ORC share.

A file consists of units that can be read on their own: row groups of Parquet, stripes of ORC. A
position is the number of a unit, and the number of rows that were read from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, BinaryIO

import pyarrow as pa

from firesteel.common.arrow_values import MISFITS, arrow_reader, arrow_writer, misfit
from firesteel.common.columns import reason_for_rows
from firesteel.common.serialization import BulkWriter
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.common.types import RowKind, new_rows
from firesteel.formats.base import (
    BrokenRecord,
    BrokenRecords,
    BulkFormat,
    FilePart,
    RecordReader,
)
from firesteel.table.types import RowType, row_type_info

__all__ = [
    "BATCH_ROWS",
    "ColumnarReader",
    "ColumnarRowInputFormat",
    "ColumnarWriter",
    "UnfitColumnError",
    "UnitFile",
]

BATCH_ROWS = 2048

# A unit is written when it has this many rows or bytes.
_UNIT_ROWS = 1024 * 1024
_UNIT_BYTES = 128 * 1024 * 1024
# Rows that become columns at once.
_ROWS_AT_ONCE = 8192

# pyarrow raises these for files that are cut short or contain garbage.
_DAMAGES = (pa.ArrowException, OSError, EOFError, ValueError)


class UnfitColumnError(ValueError):
    """A column of a file has values that the declared type of the rows does not have."""


class UnitFile(ABC):
    """A file of units, opened for reading."""

    @abstractmethod
    def units(self, part: FilePart) -> list[int]:
        """Return the numbers of the units that belong to a part of the file."""

    @abstractmethod
    def batches(self, unit: int) -> Iterator[pa.RecordBatch]:
        """Read the needed columns of a unit."""

    @abstractmethod
    def column_names(self) -> list[str]:
        """Return the names of all columns in the file."""


class ColumnarReader(RecordReader):
    """Reads units one after the other. A damaged file or unit is a broken record."""

    def __init__(
        self,
        file: BinaryIO,
        part: FilePart,
        position: Sequence[int] | None,
        broken: BrokenRecords,
        kind: str,
        open_units: Callable[[BinaryIO], UnitFile],
        to_records: Callable[[pa.RecordBatch], list[Any]],
        to_columns: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
    ) -> None:
        self._file = file
        self._path = part.path
        self._broken = broken
        self._kind = kind
        self._to_records = to_records
        self._to_columns = to_columns
        self._unit, skip = position or (0, 0)
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._batch: pa.RecordBatch | None = None
        self._records: list[Any] | None = None
        self._columns: pa.RecordBatch | None = None
        self._taken = self._count = 0
        # The rows of the unit before ``_batch``.
        self._before = 0
        self._units: list[int] = []
        try:
            self._source = open_units(file)
            self._units = [unit for unit in self._source.units(part) if unit >= self._unit]
        except _DAMAGES as error:
            broken.check_storage()
            # One part reports the file. The others have nothing to read.
            if part.start == 0:
                self._report(f"the file is not a whole {kind} file", error)
        if self._units:
            if self._unit != self._units[0]:
                self._unit, skip = self._units[0], 0
            self._skip(skip)

    def read(self, limit: int) -> list[Any]:
        while self._taken < self._count or self._load():
            if self._records is None:
                try:
                    self._records = self._to_records(self._batch)
                except UnfitColumnError as error:
                    self._leave_unit(error)
                    continue
            records = self._records[self._taken : self._taken + limit]
            self._taken += len(records)
            return records
        return []

    def read_columns(self, limit: int) -> pa.RecordBatch | None:
        while self._taken < self._count or self._load():
            if self._columns is None:
                try:
                    self._columns = self._to_columns(self._batch)
                except UnfitColumnError as error:
                    self._leave_unit(error)
                    continue
            columns = self._columns.slice(self._taken, limit)
            self._taken += columns.num_rows
            return columns
        return None

    def _begin(self, batch: pa.RecordBatch | None) -> None:
        self._batch, self._records, self._columns = batch, None, None
        self._taken, self._count = 0, 0 if batch is None else batch.num_rows

    def _load(self) -> bool:
        """Load the next batch. Return False at the end."""
        while self._units:
            self._before += self._count
            self._begin(None)
            batch = self._next_batch()
            if batch is None:
                self._end_unit()
                continue
            self._begin(batch)
            if self._count:
                return True
        return False

    def _end_unit(self) -> None:
        self._units.pop(0)
        self._batches, self._before = None, 0
        if self._units:
            self._unit = self._units[0]

    def _leave_unit(self, error: UnfitColumnError) -> None:
        """Report a unit whose columns do not fit the rows, and leave out the rest of it."""
        self._begin(None)
        self._report(f"the {self._kind} file does not fit the declared type", error)
        self._end_unit()

    def _next_batch(self) -> pa.RecordBatch | None:
        try:
            if self._batches is None:
                self._batches = self._source.batches(self._unit)
            return next(self._batches, None)
        except _DAMAGES as error:
            self._report(f"the {self._kind} file is damaged", error)
            return None

    def _skip(self, rows: int) -> None:
        """Continue a unit after some of its rows."""
        while rows > 0:
            batch = self._next_batch()
            if batch is None:
                raise EOFError("the file has fewer rows than the job has already read from it")
            if batch.num_rows > rows:
                self._begin(batch)
                self._taken = rows
                return
            rows -= batch.num_rows
            self._before += batch.num_rows

    def _report(self, problem: str, error: BaseException) -> None:
        reason = f"{problem}: {error}".rstrip(".")
        self._broken.add(BrokenRecord(self._path, None, reason))

    def at_end(self) -> bool:
        return not self._units

    def position(self) -> list[int]:
        return [self._unit, self._before + self._taken]

    def close(self) -> None:
        self._file.close()


class _RowsFromColumns:
    """Makes rows of batches. Columns that a file lacks are None."""

    def __init__(self, type_info: RowTypeInfo, *, is_case_sensitive: bool = True) -> None:
        self._names = type_info.get_field_names()
        self._types = [kind.to_arrow_type() for kind in type_info.get_field_types()]
        self._readers = list(map(arrow_reader, type_info.get_field_types()))
        self._is_case_sensitive = is_case_sensitive

    def wanted(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of a file that are needed."""
        wanted = set(map(self._key, self._names))
        return [name for name in columns if self._key(name) in wanted]

    def _key(self, name: str) -> str:
        return name if self._is_case_sensitive else name.lower()

    def __call__(self, batch: pa.RecordBatch) -> list[Any]:
        columns = [
            repeat(None, batch.num_rows) if array is None else read(array)
            for array, read in zip(self._arrays(batch), self._readers, strict=True)
        ]
        records = map(list, zip(*columns, strict=False))
        return new_rows(records, self._names, repeat(RowKind.INSERT))

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that the rows would have."""
        arrays = [
            pa.nulls(batch.num_rows, wanted) if array is None else array
            for array, wanted in zip(self._arrays(batch), self._types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=self._names)

    def _arrays(self, batch: pa.RecordBatch) -> Iterator[pa.Array | None]:
        """Yield the array of each field, or None for a column that the file lacks."""
        places = {self._key(name): place for place, name in enumerate(batch.schema.names)}
        for name, wanted in zip(self._names, self._types, strict=True):
            place = places.get(self._key(name))
            yield None if place is None else _fitting(batch.column(place), wanted, name)


def _fitting(array: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    """Return the column in the type that the rows need."""
    is_decimal = pa.types.is_decimal
    # A decimal keeps the scale that it has in the file.
    if array.type == wanted or (is_decimal(array.type) and is_decimal(wanted)):
        return array
    try:
        # Timestamps of nanoseconds lose their last digits, which Python has no place for.
        return array.cast(wanted, safe=not pa.types.is_timestamp(array.type))
    except pa.ArrowException as error:
        raise UnfitColumnError(
            f"the column {name!r} has the type {array.type}, which cannot be read as {wanted}: "
            f"{error}"
        ) from error


class ColumnarRowInputFormat(BulkFormat):
    """The format of files with columns whose records are rows of a declared type."""

    is_splittable = True
    #: Opens a file: the file, a function that chooses the columns, and the rows of a batch.
    _units: Callable[[BinaryIO, Callable[[Sequence[str]], list[str]], int], UnitFile]
    #: The name of the format, for errors.
    _kind: str

    def __init__(
        self, row_type: RowType | RowTypeInfo, batch_size: int, *, is_case_sensitive: bool
    ) -> None:
        if batch_size <= 0:
            raise ValueError(f"batch_size must be positive, got {batch_size}")
        self._type_info, _ = row_type_info(row_type, type(self).__name__)
        self.gives_columns = reason_for_rows(self._type_info) is None
        self._batch_size = batch_size
        self._is_case_sensitive = is_case_sensitive

    def create_reader(
        self, file: BinaryIO, part: FilePart, position: Any, broken: BrokenRecords
    ) -> RecordReader:
        rows = _RowsFromColumns(self._type_info, is_case_sensitive=self._is_case_sensitive)

        def open_units(opened: BinaryIO) -> UnitFile:
            return self._units(opened, rows.wanted, self._batch_size)

        return ColumnarReader(
            file, part, position, broken, self._kind, open_units, rows, rows.columns
        )

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._type_info})"


class ColumnarWriter(BulkWriter):
    """Collects rows as columns, and writes them unit by unit."""

    def __init__(self, type_info: RowTypeInfo, schema: pa.Schema) -> None:
        self._type_info = type_info
        self._schema = schema
        self._to_columns = arrow_writer(type_info)
        self._rows: list[Any] = []
        self._batches: list[pa.RecordBatch] = []
        self._batch_rows = self._batch_bytes = 0

    @abstractmethod
    def write_unit(self, table: pa.Table) -> None:
        """Write a row group or stripe."""

    @abstractmethod
    def write_end(self) -> None:
        """Write the footer of the file."""

    def add_element(self, element: Any) -> None:
        self.add_elements([element])

    def add_elements(self, elements: list[Any]) -> None:
        self._rows += elements
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._convert()

    def _convert(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        rows = self._type_info.convert_batch(rows)
        try:
            batch = pa.RecordBatch.from_struct_array(self._to_columns(rows))
            if batch.schema != self._schema:
                batch = batch.cast(self._schema)
        except MISFITS as error:
            raise misfit(rows, self._type_info, self._to_columns) or error from error
        self._batches.append(batch)
        self._batch_rows += batch.num_rows
        self._batch_bytes += batch.nbytes
        if self._batch_rows >= _UNIT_ROWS or self._batch_bytes >= _UNIT_BYTES:
            self._write_unit()

    def _write_unit(self) -> None:
        table = pa.Table.from_batches(self._batches, self._schema)
        self._batches, self._batch_rows, self._batch_bytes = [], 0, 0
        self.write_unit(table)

    def finish(self) -> None:
        self._convert()
        if self._batches:
            self._write_unit()
        self.write_end()
