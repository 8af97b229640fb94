r"""Lines of files: from whole files, byte ranges, and compressed files.

A line ends with ``\n``, ``\r`` or ``\r\n``. It belongs to the byte range in which it begins.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from abc import abstractmethod
from collections.abc import Callable
from itertools import islice
from typing import IO, Any, BinaryIO, NamedTuple

import pyarrow as pa

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.formats.base import (
    BrokenRecord,
    BrokenRecords,
    FilePart,
    RecordReader,
    StreamFormat,
)
from firesteel.stability import public_evolving

__all__ = ["Lines", "TextLineFormat", "compression_of", "open_raw_lines", "open_text_lines"]

# Codecs in which the end of a line cannot be found by its bytes.
_STATEFUL_CODECS = ("iso2022", "hz", "utf-7", "utf_7", "utf-8-sig", "punycode", "idna")


class TextLineFormat(StreamFormat):
    """Lines of text. One subtask reads a file unless the program decides otherwise, as in Flink.

    Args:
        charset_name: The name of the character set.
        block_bytes: The number of bytes to read at once.
    """

    def __init__(self, charset_name: str, block_bytes: int | None = None) -> None:
        self._block_bytes = block_bytes or _BLOCK_BYTES
        try:
            self._codec = codecs.lookup(charset_name).name
        except LookupError:
            raise ValueError(f"Unknown character set {charset_name!r}") from None
        self.is_splittable = self.has_byte_positions = _has_plain_line_ends(self._codec)

    @property
    @public_evolving
    def codec(self) -> str:
        """Python's name of the character set. Not in PyFlink."""
        return self._codec

    def create_reader(
        self, file: BinaryIO, part: FilePart, position: Any, broken: BrokenRecords
    ) -> RecordReader:
        return open_text_lines(file, part, position, broken, self._codec, self._block_bytes)

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()

    def __repr__(self) -> str:
        return f"StreamFormat.text_line_format({self._codec!r})"


def _has_plain_line_ends(codec: str) -> bool:
    """Return True if the bytes of line ends mean nothing else, so that lines can be found."""
    if codec.startswith(_STATEFUL_CODECS):
        return False
    return "\n\r".encode(codec, errors="replace") == b"\n\r"


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
# Decompressors raise these for files that are cut short or contain garbage.
_DAMAGES = (EOFError, OSError, zlib.error, lzma.LZMAError, pa.ArrowException)
# In these codecs a block of lines can be decoded at once, because decoding keeps line ends.
_BLOCKWISE_CODECS = ("utf-8", "ascii", "iso8859", "cp125")


def compression_of(path: str) -> str | None:
    """Return the compression that the suffix of a file name stands for, as in Flink."""
    lowered = path.lower()
    return next((name for suffix, name in _COMPRESSIONS.items() if lowered.endswith(suffix)), None)


def open_text_lines(
    file: BinaryIO,
    part: FilePart,
    position: Any,
    broken: BrokenRecords,
    codec: str,
    block_bytes: int = _BLOCK_BYTES,
) -> Lines:
    """Open the lines of a part of a file as texts."""
    if part.counted:
        stream = _text_stream(file, part.compression, codec)
        return _CountedLines(stream, part.path, position or 0, broken)
    return _ByteRangeLines(file, part, position, _text_splitter(codec), block_bytes)


def open_raw_lines(
    file: BinaryIO,
    part: FilePart,
    position: Any,
    broken: BrokenRecords,
    block_bytes: int = _BLOCK_BYTES,
) -> Lines:
    """Open the lines of a part of a file as bytes, with their line ends."""
    if part.counted:
        stream = io.BufferedReader(_decompressed(file, part.compression))
        lines = _LineStream(file, stream, list)
        return _CountedLines(lines, part.path, position or 0, broken)
    return _ByteRangeLines(file, part, position, _split_raw, block_bytes)


class Lines(RecordReader):
    """The lines of one part of a file."""

    def next_block(self) -> bytes:
        """Return the whole lines that follow, undivided, if they are at hand as a block.

        ``read`` and ``skip_block`` take them. Until then, ``position`` is that of the block.
        """
        return b""

    def skip_block(self) -> None:
        """Take the block that ``next_block`` has returned."""
        raise NotImplementedError

    @abstractmethod
    def number_at(self, position: int) -> int:
        """Return the number of the line at a position, from 1. It may read the file up to there."""


class _ByteRangeLines(Lines):
    """Lines that begin within a byte range; the position is the byte where the next one begins.

    Bytes after ``size`` were appended after the file was discovered. They are not read, so a second
    reading gives the same lines.
    """

    def __init__(
        self,
        file: BinaryIO,
        part: FilePart,
        position: int | None,
        split_block: Callable[[bytes], list[Any]],
        block_bytes: int,
    ) -> None:
        self._file = file
        self._size = part.size
        self._split_block = split_block
        self._block_bytes = block_bytes
        self._next_block = self._first_line_from(part.start) if position is None else position
        self._stop = self._first_line_from(part.stop)
        self._block = b""
        self._block_start = self._next_block
        self._lines: list[Any] = []
        self._taken = 0
        # A block that is not divided yet.
        self._undivided = b""
        # The offset up to which line ends are counted, and their number. Errors ask for it.
        self._counted = (0, 0)

    def next_block(self) -> bytes:
        if not self._undivided and self._taken == len(self._lines):
            self._load_block()
        return self._undivided

    def skip_block(self) -> None:
        self._undivided = b""

    def read(self, limit: int) -> list[Any]:
        if self._taken == len(self._lines):
            self.next_block()
            self._lines = self._split_block(self._undivided)
            self._taken = 0
            self._undivided = b""
        lines = self._lines[self._taken : self._taken + limit]
        self._taken += len(lines)
        return lines

    def at_end(self) -> bool:
        return (
            self._taken == len(self._lines)
            and not self._undivided
            and self._next_block >= self._stop
        )

    def position(self) -> int:
        if self._undivided:
            return self._block_start
        if self._taken == len(self._lines):
            return self._next_block
        raw_lines = self._block.splitlines(keepends=True)
        return self._block_start + sum(map(len, raw_lines[: self._taken]))

    def number_at(self, position: int) -> int:
        offset, count = self._counted if self._counted[0] <= position else (0, 0)
        self._file.seek(offset)
        data = b""
        while offset < position:
            # A \r at the end of the data may be the first half of \r\n.
            carry = data[-1:]
            data = self._file.read(min(self._block_bytes, position - offset))
            if not data:
                break
            offset += len(data)
            count += len(_LINE_END.findall(data)) - (carry == b"\r" and data[:1] == b"\n")
        self._counted = (offset, count)
        return count + 1

    def close(self) -> None:
        self._file.close()

    def _load_block(self) -> None:
        self._block = self._read_block()
        self._block_start = self._next_block
        self._next_block += len(self._block)
        self._lines, self._taken = [], 0
        self._undivided = self._block

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


class _CountedLines(Lines):
    """Lines of a stream that can only be read from its start. The position counts lines.

    Compressed data that is cut short or damaged is a broken record, and the end of the file.
    """

    def __init__(
        self, stream: _LineStream, path: str, position: int, broken: BrokenRecords
    ) -> None:
        self._stream = stream
        self._path = path
        self._position = position
        self._broken = broken
        self._ended = False
        while position > 0:
            skipped = len(list(islice(stream.lines, min(position, _SKIP_LINES))))
            if not skipped:
                raise EOFError("the file has fewer lines than the job has already read from it")
            position -= skipped

    def read(self, limit: int) -> list[Any]:
        lines: list[Any] = []
        problem: BaseException | None = None
        try:
            # The list keeps the lines before an error.
            lines.extend(islice(self._stream.lines, limit))
        except _DAMAGES as error:
            problem = error
        if len(lines) < limit:
            self._ended = True
        self._position += len(lines)
        if problem is not None:
            reason = f"the compressed file is cut short or damaged: {problem}"
            self._broken.add(BrokenRecord(self._path, self._position + 1, reason))
        return self._stream.finish(lines)

    def at_end(self) -> bool:
        return self._ended

    def position(self) -> int:
        return self._position

    def number_at(self, position: int) -> int:
        return position + 1

    def close(self) -> None:
        self._stream.lines.close()
        self._stream.file.close()


class _LineStream(NamedTuple):
    """A stream that iterates over lines with their ends, and the last step of reading them."""

    file: BinaryIO
    lines: IO[Any]
    finish: Callable[[list[Any]], list[Any]]


def _text_stream(file: BinaryIO, compression: str | None, codec: str) -> _LineStream:
    stream = io.BufferedReader(_decompressed(file, compression))
    text = io.TextIOWrapper(
        stream, encoding=_codec_with_byte_order(codec, stream), errors="replace", newline=None
    )
    return _LineStream(file, text, _without_ends)


def _without_ends(lines: list[str]) -> list[str]:
    return "".join(lines).removesuffix("\n").split("\n") if lines else []


def _split_raw(block: bytes) -> list[bytes]:
    return block.splitlines(keepends=True)


def _text_splitter(codec: str) -> Callable[[bytes], list[str]]:
    """Return the function that makes texts of a block of lines."""

    def split_each(block: bytes) -> list[str]:
        return [line.decode(codec, "replace") for line in block.splitlines()]

    def split_at_once(block: bytes) -> list[str]:
        if not block:
            return []
        text = block.decode(codec, "replace")
        if b"\r" in block:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    return split_at_once if codec.startswith(_BLOCKWISE_CODECS) else split_each


class _Decompressed(io.RawIOBase):
    """Decompressed bytes, as soon as there are some: the last ones before a damage count, too."""

    def __init__(self, file: gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _decompressed(file: BinaryIO, compression: str | None) -> Any:
    match compression:
        case "gzip":
            return _Decompressed(gzip.GzipFile(fileobj=file, mode="rb"))
        case "bzip2":
            return _Decompressed(bz2.BZ2File(file, "rb"))
        case "xz":
            return _Decompressed(lzma.LZMAFile(file, "rb"))
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
