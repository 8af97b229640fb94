"""Interfaces of file formats: reading the records of a part of a file, and records that are broken."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError
from firesteel.stability import public_evolving

__all__ = [
    "BrokenRecord",
    "BrokenRecordError",
    "BrokenRecords",
    "BulkFormat",
    "FileFormat",
    "FilePart",
    "RecordReader",
    "StreamFormat",
    "WatchedFile",
]


@public_evolving
@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record of a file that cannot be read. Not in PyFlink.

    Args:
        path: The file.
        line: The number of the line, from 1, or None if the format has no lines.
        reason: The cause.
        data: The bytes of the record, or None if the format cannot tell them.

    >>> from firesteel.datastream.connectors.file_system import BrokenRecord
    >>> print(BrokenRecord("/data/in.json", 7, "the line is not JSON", b"{"))
    /data/in.json, line 7: the line is not JSON
    """

    path: str
    line: int | None
    reason: str
    data: bytes | None = None

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{place}: {self.reason}"


@public_evolving
class BrokenRecordError(FiresteelError, ValueError):
    """A source fails because a record of a file cannot be read. Not in PyFlink.

    >>> from firesteel.datastream.connectors.file_system import BrokenRecord, BrokenRecordError
    >>> error = BrokenRecordError(BrokenRecord("/data/in.json", 7, "the line is not JSON"))
    >>> error.record.line
    7
    """

    def __init__(self, record: BrokenRecord) -> None:
        super().__init__(
            f"{record}. FileSourceBuilder.skip_broken_records() skips such records, and "
            "side_output_broken_records(tag) sends them to a side output."
        )
        self.record = record

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.record,)


class WatchedFile(io.RawIOBase):
    """A file that remembers an error of its storage.

    Formats raise the same kinds of errors for damaged data and for a storage that does not answer.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.failure: OSError | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        return self._watched(self._file.read, size)

    def readinto(self, buffer: Any) -> Any:
        return self._watched(self._file.readinto, buffer)  # type: ignore[attr-defined]  # all have it

    def seek(self, offset: int, whence: int = 0) -> Any:
        return self._watched(self._file.seek, offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()

    def _watched(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except OSError as error:
            self.failure = error
            raise


class BrokenRecords:
    """Takes the broken records of a reader: raises an error, or keeps them for the source."""

    def __init__(self, *, fail: bool = True) -> None:
        self._fail = fail
        self._kept: list[BrokenRecord] = []
        self._file: WatchedFile | None = None

    def watch(self, file: BinaryIO) -> BinaryIO:
        """Return a file to read instead. Errors of its storage are not taken for broken records."""
        self._file = WatchedFile(file)
        return cast(BinaryIO, self._file)

    def check_storage(self) -> None:
        """Raise the error of the storage, if there was one."""
        if self._file is not None and self._file.failure is not None:
            raise self._file.failure

    def add(self, record: BrokenRecord) -> None:
        """Take a record that cannot be read.

        Raises:
            BrokenRecordError: The source fails on broken records.
            OSError: The storage failed, so that nothing is known about the record.
        """
        self.check_storage()
        if self._fail:
            raise BrokenRecordError(record)
        self._kept.append(record)

    def __len__(self) -> int:
        return len(self._kept)

    def take(self) -> list[BrokenRecord]:
        """Return the records since the last call."""
        taken, self._kept = self._kept, []
        return taken


@dataclass(frozen=True, slots=True)
class FilePart:
    """A range of bytes of a file. A reader reads the records that begin in it.

    ``counted``: the file can only be read from its beginning, so positions count records.
    """

    path: str
    size: int
    start: int
    stop: int
    compression: str | None = None
    counted: bool = False


class RecordReader(ABC):
    """Reads the records of one part of a file, in order."""

    @abstractmethod
    def read(self, limit: int) -> list[Any]:
        """Return up to ``limit`` records. It may return none although there are more."""

    def read_columns(self, limit: int) -> pa.RecordBatch | list[Any] | None:
        """Return the same as columns, or None for none. Only for ``FileFormat.gives_columns``.

        Records that have no columns are returned as they are.
        """
        raise NotImplementedError

    @abstractmethod
    def at_end(self) -> bool: ...

    @abstractmethod
    def position(self) -> Any:
        """Return JSON from which ``FileFormat.create_reader`` continues after the last record."""

    @abstractmethod
    def close(self) -> None: ...


class FileFormat(ABC):
    """A format that a FileSource reads. The two kinds of PyFlink differ in their names only."""

    #: True if a file can be read from its middle, so that several subtasks can share it.
    is_splittable: bool = False
    #: True if several subtasks share a large file unless the program decides otherwise.
    splits_by_default: bool = False
    #: True if positions are offsets of bytes. Otherwise they count records from the start.
    has_byte_positions: bool = True
    #: True if an empty file is a file without records. Otherwise it is broken.
    allows_empty_files: bool = True
    #: True if files with the suffix of a compression are decompressed.
    decompresses: bool = False
    #: True if readers give columns too, which are those of the produced type.
    gives_columns: bool = False

    @abstractmethod
    def create_reader(
        self, file: BinaryIO, part: FilePart, position: Any, broken: BrokenRecords
    ) -> RecordReader:
        """Open a part of a file.

        Args:
            file: The file, which the reader closes.
            part: The part to read.
            position: A position of a reader of this part, or None for its beginning.
            broken: Takes broken records.

        >>> import io
        >>> from firesteel.formats.base import BrokenRecords, FilePart, StreamFormat
        >>> part = FilePart("words.txt", size=6, start=0, stop=6)
        >>> text = StreamFormat.text_line_format()
        >>> text.create_reader(io.BytesIO(b"be not"), part, None, BrokenRecords()).read(10)
        ['be not']
        """

    @abstractmethod
    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records. None means any Python object.

        >>> from firesteel.datastream.connectors.file_system import StreamFormat
        >>> StreamFormat.text_line_format().get_produced_type()
        String
        """


class StreamFormat(FileFormat):
    """The format of a file that is read record by record.

    ``text_line_format`` reads lines of text. The modules in ``firesteel.datastream.formats`` have
    the other formats.

    >>> from firesteel.datastream.connectors.file_system import StreamFormat
    >>> StreamFormat.text_line_format()
    StreamFormat.text_line_format('utf-8')
    """

    decompresses = True

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Return the format of lines of text.

        A line ends with a line feed, a carriage return, or both. As in Java, bytes that are not
        text in the character set become replacement characters.

        Args:
            charset_name: The name of the character set.
        """
        # The format of lines is a StreamFormat itself.
        from firesteel.formats.lines import TextLineFormat

        return TextLineFormat(charset_name)


class BulkFormat(FileFormat):
    """The format of a file that is read in batches, such as Parquet.

    >>> from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
    >>> columns = Types.ROW_NAMED(["id"], [Types.INT()])
    >>> ParquetColumnarRowInputFormat(columns).is_splittable
    True
    """

    splits_by_default = True
    allows_empty_files = False
