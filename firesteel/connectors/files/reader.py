r"""Reader of a file source: lines of text from whole files, byte ranges, and compressed files.

A line ends with ``\n``, ``\r`` or ``\r\n``. It belongs to the byte range in which it begins.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, BinaryIO, cast

import pyarrow as pa

from firesteel.connectors.base import SourceReader, SourceSplit
from firesteel.connectors.files.paths import SourcePaths
from firesteel.filesystems.file_systems import without_password
from firesteel.stability import public_evolving

# Codecs in which the end of a line cannot be found by its bytes.
_STATEFUL_CODECS = ("iso2022", "hz", "utf-7", "utf_7", "utf-8-sig", "punycode", "idna")


class StreamFormat:
    """The format of a file that is read record by record. There is one format: lines of text.

    A line ends with a line feed, a carriage return, or both. As in Java, bytes that are not text in
    the character set become replacement characters.

    Args:
        charset_name: The name of the character set.

    >>> from firesteel.datastream.connectors.file_system import StreamFormat
    >>> StreamFormat.text_line_format()
    StreamFormat.text_line_format('utf-8')
    """

    def __init__(self, charset_name: str) -> None:
        try:
            self._codec = codecs.lookup(charset_name).name
        except LookupError:
            raise ValueError(f"Unknown character set {charset_name!r}") from None

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Return the format of lines of text.

        Args:
            charset_name: The name of the character set.
        """
        return StreamFormat(charset_name)

    @property
    @public_evolving
    def codec(self) -> str:
        """Python's name of the character set. Not in PyFlink.

        >>> from firesteel.datastream.connectors.file_system import StreamFormat
        >>> StreamFormat.text_line_format("ISO-8859-1").codec
        'iso8859-1'
        """
        return self._codec

    @property
    @public_evolving
    def is_splittable(self) -> bool:
        """True if a reader can find lines from the middle of a file. Not in PyFlink.

        This needs a character set in which the bytes of line ends mean nothing else.

        >>> from firesteel.datastream.connectors.file_system import StreamFormat
        >>> StreamFormat.text_line_format().is_splittable
        True
        >>> StreamFormat.text_line_format("UTF-16").is_splittable
        False
        """
        if self._codec.startswith(_STATEFUL_CODECS):
            return False
        return "\n\r".encode(self._codec, errors="replace") == b"\n\r"

    def __repr__(self) -> str:
        return f"StreamFormat.text_line_format({self._codec!r})"


_BLOCK_BYTES = 512 * 1024
_SKIP_LINES = 8192
_LINE_END = re.compile(rb"\r\n?|\n")
_COMPRESSIONS = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".zst": "zstd",
}
# In these codecs a block of lines can be decoded at once, because decoding keeps line ends.
_BLOCKWISE_CODECS = ("utf-8", "ascii", "iso8859", "cp125")


def compression_of(path: str) -> str | None:
    """Return the compression that the suffix of a file name stands for, as in Flink."""
    lowered = path.lower()
    return next((name for suffix, name in _COMPRESSIONS.items() if lowered.endswith(suffix)), None)


class TextLineReader(SourceReader):
    """Reads its splits one after the other."""

    def __init__(
        self, stream_format: StreamFormat, paths: SourcePaths, block_bytes: int = _BLOCK_BYTES
    ) -> None:
        self._format = stream_format
        self._paths = paths
        self._block_bytes = block_bytes
        self._splits: deque[SourceSplit] = deque()
        self._lines: _Lines | None = None
        self._current: str | None = None

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        self._splits.extend(splits)

    def read(self, limit: int) -> list[Any]:
        try:
            return self._read(limit)
        except EOFError as error:
            path = without_password(self._splits[0].properties["path"])
            raise EOFError(f"{path}: {error}") from error

    def _read(self, limit: int) -> list[Any]:
        while self._splits and limit > 0:
            if self._lines is None:
                self._lines = self._open(self._splits[0])
            records = self._lines.read(limit)
            self._current = self._splits[0].split_id
            if self._lines.at_end():
                self.close()
                self._splits.popleft()
            if records:
                return cast(list[Any], records)
        return []

    def snapshot_splits(self) -> list[SourceSplit]:
        if self._lines is None:
            return list(self._splits)
        first, *rest = self._splits
        return [first.at(self._lines.position()), *rest]

    def current_split(self) -> str | None:
        return self._current

    def next_read_delay(self) -> float:
        return 0.0 if self._splits else 0.1

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None

    def _open(self, split: SourceSplit) -> _Lines:
        properties = split.properties
        file = self._paths.open(properties["path"])
        if properties["counted"]:
            compression = properties["compression"]
            return _CountedLines(file, compression, self._format.codec, split.position or 0)
        return _ByteRangeLines(
            file,
            properties["size"],
            (properties["start"], properties["stop"]),
            split.position,
            self._format.codec,
            self._block_bytes,
        )


class _Lines(ABC):
    """The lines of one split."""

    @abstractmethod
    def read(self, limit: int) -> list[str]: ...

    @abstractmethod
    def at_end(self) -> bool: ...

    @abstractmethod
    def position(self) -> Any: ...

    @abstractmethod
    def close(self) -> None: ...


class _ByteRangeLines(_Lines):
    """Lines that begin within a byte range; the position is the byte where the next one begins.

    Bytes after ``size`` were appended after the file was discovered. They are not read, so a second
    reading gives the same lines.
    """

    def __init__(
        self,
        file: BinaryIO,
        size: int,
        byte_range: tuple[int, int],
        position: int | None,
        codec: str,
        block_bytes: int,
    ) -> None:
        self._file = file
        self._size = size
        self._codec = codec
        self._blockwise = codec.startswith(_BLOCKWISE_CODECS)
        self._block_bytes = block_bytes
        start, stop = byte_range
        self._next_block = self._first_line_from(start) if position is None else position
        self._stop = self._first_line_from(stop)
        self._block = b""
        self._block_start = self._next_block
        self._lines: list[str] = []
        self._taken = 0

    def read(self, limit: int) -> list[str]:
        if self._taken == len(self._lines):
            self._load_block()
        lines = self._lines[self._taken : self._taken + limit]
        self._taken += len(lines)
        return lines

    def at_end(self) -> bool:
        return self._taken == len(self._lines) and self._next_block >= self._stop

    def position(self) -> int:
        if self._taken == len(self._lines):
            return self._next_block
        raw_lines = self._block.splitlines(keepends=True)
        return self._block_start + sum(map(len, raw_lines[: self._taken]))

    def close(self) -> None:
        self._file.close()

    def _load_block(self) -> None:
        self._block = self._read_block()
        self._block_start = self._next_block
        self._next_block += len(self._block)
        self._lines = self._decode(self._block)
        self._taken = 0

    def _read_block(self) -> bytes:
        """Read whole lines: about one block, or more if a single line is longer."""
        self._file.seek(self._next_block)
        remaining = self._stop - self._next_block
        block = b""
        wanted = self._block_bytes
        while remaining > 0:
            data = self._file.read(min(wanted, remaining))
            if not data:
                raise EOFError(
                    f"the file became shorter while it was being read; expected {self._stop} bytes"
                )
            block += data
            remaining -= len(data)
            if remaining == 0:
                return block
            # A \r at the end of the block may be the first half of \r\n.
            end = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1
            if end:
                return block[:end]
            wanted = len(block)
        return block

    def _decode(self, block: bytes) -> list[str]:
        if not block:
            return []
        if not self._blockwise:
            return [line.decode(self._codec, "replace") for line in block.splitlines()]
        text = block.decode(self._codec, "replace")
        if b"\r" in block:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    def _first_line_from(self, offset: int) -> int:
        """Return the offset of the first line that begins at ``offset`` or later."""
        if offset <= 0:
            return 0
        if offset >= self._size:
            return self._size
        begin = offset - 1
        self._file.seek(begin)
        data = b""
        while begin + len(data) < self._size:
            wanted = min(max(4096, len(data)), self._size - begin - len(data))
            more = self._file.read(wanted)
            if not more:
                break
            data += more
            end = _LINE_END.search(data)
            # A \r at the end of the data may be the first half of \r\n.
            if end and (end.end() < len(data) or data.endswith(b"\n")):
                return begin + end.end()
        return self._size


class _CountedLines(_Lines):
    """Lines of a stream that can only be read from its start. The position counts lines."""

    def __init__(self, file: BinaryIO, compression: str | None, codec: str, position: int) -> None:
        self._file = file
        stream = io.BufferedReader(_decompressed(file, compression))
        self._text = io.TextIOWrapper(
            stream, encoding=_codec_with_byte_order(codec, stream), errors="replace", newline=None
        )
        self._position = position
        self._ended = False
        while position > 0:
            skipped = len(list(islice(self._text, min(position, _SKIP_LINES))))
            if not skipped:
                raise EOFError("the file has fewer lines than the job has already read from it")
            position -= skipped

    def read(self, limit: int) -> list[str]:
        raw_lines = list(islice(self._text, limit))
        if len(raw_lines) < limit:
            self._ended = True
        if not raw_lines:
            return []
        self._position += len(raw_lines)
        return "".join(raw_lines).removesuffix("\n").split("\n")

    def at_end(self) -> bool:
        return self._ended

    def position(self) -> int:
        return self._position

    def close(self) -> None:
        self._text.close()
        self._file.close()


def _decompressed(file: BinaryIO, compression: str | None) -> Any:
    match compression:
        case "gzip":
            return gzip.GzipFile(fileobj=file, mode="rb")
        case "bzip2":
            return bz2.BZ2File(file, "rb")
        case "xz":
            return lzma.LZMAFile(file, "rb")
        case "zstd":
            return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
        case _:
            return file


def _codec_with_byte_order(codec: str, stream: io.BufferedReader) -> str:
    """Return the codec that Java uses. Without a byte order mark it reads UTF-16 and UTF-32 as big endian."""
    marks = {"utf-16": (b"\xff\xfe", b"\xfe\xff"), "utf-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff")}
    if codec not in marks or stream.peek(4).startswith(marks[codec]):
        return codec
    return f"{codec}-be"
