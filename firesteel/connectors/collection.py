"""CollectionSource: the elements of a Python iterable."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.index_ranges import IndexRangeEnumerator, IndexRangeReader
from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.usercode import value_pickler

__all__ = ["CollectionSource"]

_CHUNK_ELEMENTS = 8192
_SPILL_BYTES = 32 * 1024 * 1024


class CollectionSource(Source):
    """Reads the elements of a Python iterable. The source is bounded.

    A subtask emits its elements in order. With parallelism 1 this is the order of all elements.

    - A list or tuple is copied, but its elements are not, so do not change them before the job runs.
      A range stays a range.
    - Any other iterable is consumed at once, into pickled chunks.
    - Elements travel to the tasks as pickled chunks. A reader unpickles one chunk at a time.
    - If the chunks exceed ``spill_bytes``, they go to a file in ``scratch_directory``, by default the
      system's temporary directory. The tasks must be able to read it. It is deleted with the source.

    >>> from firesteel.datastream.connectors.base import ReaderContext
    >>> source = CollectionSource(["a", "b", "c"])
    >>> reader = source.create_reader(ReaderContext(subtask_index=0, parallelism=1))
    >>> reader.add_splits(source.create_enumerator(parallelism=1).discover_splits())
    >>> reader.read(limit=2), reader.read(limit=2), reader.read(limit=2)
    (['a', 'b'], ['c'], [])
    """

    side_by_side = False

    def __init__(
        self,
        elements: Iterable[Any],
        type_info: Any = None,
        *,
        scratch_directory: str | None = None,
        spill_bytes: int = _SPILL_BYTES,
    ) -> None:
        self._type_info = type_info
        self._elements: _Elements
        if isinstance(elements, range):
            self._elements = _RangeElements(elements)
        elif isinstance(elements, list | tuple):
            # A tuple is not copied.
            self._elements = _SequenceElements(tuple(elements), scratch_directory, spill_bytes)
        else:
            self._elements = _pickled(elements, scratch_directory, spill_bytes)

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return IndexRangeEnumerator(0, len(self._elements), parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _CollectionReader(self._elements)

    def get_produced_type(self) -> Any:
        return self._type_info

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        return f"CollectionSource({len(self)} elements)"


class _Elements(ABC):
    """Elements that can be sliced by index."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def slice(self, start: int, stop: int) -> list[Any]: ...


class _RangeElements(_Elements):
    def __init__(self, elements: range) -> None:
        self._range = elements

    def __len__(self) -> int:
        return len(self._range)

    def slice(self, start: int, stop: int) -> list[Any]:
        return list(self._range[start:stop])


class _SequenceElements(_Elements):
    """The elements of the user. They become pickled chunks when they leave the process."""

    def __init__(
        self, elements: tuple[Any, ...], scratch_directory: str | None, spill_bytes: int
    ) -> None:
        self._sequence = elements
        self._scratch_directory = scratch_directory
        self._spill_bytes = spill_bytes
        self._spilled: _FileChunks | None = None

    def __len__(self) -> int:
        return len(self._sequence)

    def slice(self, start: int, stop: int) -> list[Any]:
        return list(self._sequence[start:stop])

    def __reduce__(self) -> tuple[Any, ...]:
        pickled: _Elements | None = self._spilled
        if pickled is None:
            pickled = _pickled(self._sequence, self._scratch_directory, self._spill_bytes)
            if isinstance(pickled, _FileChunks):
                self._spilled = pickled  # keeps the owner, and with it the file
        return _identity, (pickled,)


class _Chunks(_Elements):
    """Pickled chunks of a fixed number of elements. The last unpickled chunk is kept."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._cached: tuple[int, list[Any]] | None = None

    @abstractmethod
    def chunk_bytes(self, number: int) -> bytes: ...

    def __len__(self) -> int:
        return self._length

    def slice(self, start: int, stop: int) -> list[Any]:
        first, offset = divmod(start, _CHUNK_ELEMENTS)
        elements = self._chunk(first)[offset : offset + stop - start]
        number = first
        while len(elements) < stop - start:
            number += 1
            elements += self._chunk(number)[: stop - start - len(elements)]
        return elements

    def _chunk(self, number: int) -> list[Any]:
        if self._cached is None or self._cached[0] != number:
            self._cached = (number, pickle.loads(self.chunk_bytes(number)))
        return self._cached[1]


class _MemoryChunks(_Chunks):
    def __init__(self, chunks: list[bytes], length: int) -> None:
        super().__init__(length)
        self._chunks = chunks

    def chunk_bytes(self, number: int) -> bytes:
        return self._chunks[number]

    def __reduce__(self) -> tuple[Any, ...]:
        return _MemoryChunks, (self._chunks, self._length)


class _FileChunks(_Chunks):
    """Chunks in a file. It goes with the instance that wrote it. Unpickled copies only read it."""

    def __init__(
        self, path: str, offsets: list[int], length: int, scratch: ScratchDirectory | None = None
    ) -> None:
        super().__init__(length)
        self._path = path
        self._offsets = offsets
        self._scratch = scratch

    def chunk_bytes(self, number: int) -> bytes:
        with open(self._path, "rb") as file:
            file.seek(self._offsets[number])
            return file.read(self._offsets[number + 1] - self._offsets[number])

    def __reduce__(self) -> tuple[Any, ...]:
        return _FileChunks, (self._path, self._offsets, self._length)


def _pickled(
    elements: Iterable[Any], scratch_directory: str | None, spill_bytes: int
) -> _MemoryChunks | _FileChunks:
    """Pickle ``elements`` chunk by chunk, into memory and, past ``spill_bytes``, into a file."""
    pending = _chunked(elements)
    chunks: list[bytes] = []
    size = length = 0
    for count, data in pending:
        chunks.append(data)
        length += count
        size += len(data)
        if size > spill_bytes:
            return _spilled(chunks, length, pending, scratch_directory)
    return _MemoryChunks(chunks, length)


def _spilled(
    chunks: list[bytes],
    length: int,
    pending: Iterator[tuple[int, bytes]],
    scratch_directory: str | None,
) -> _FileChunks:
    scratch = ScratchDirectory("collection", scratch_directory)
    path = scratch.path / "elements.pickle"
    try:
        with path.open("wb") as file:
            offsets = [0]
            for data in chunks:
                offsets.append(offsets[-1] + file.write(data))
            chunks.clear()
            for count, data in pending:
                offsets.append(offsets[-1] + file.write(data))
                length += count
    except BaseException:
        scratch.remove()
        raise
    return _FileChunks(str(path), offsets, length, scratch)


def _chunked(elements: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
    iterator = iter(elements)
    while chunk := list(islice(iterator, _CHUNK_ELEMENTS)):
        yield len(chunk), value_pickler.dumps(chunk)


def _identity(elements: _Elements) -> _Elements:
    return elements


class _CollectionReader(IndexRangeReader):
    def __init__(self, elements: _Elements) -> None:
        super().__init__()
        self._elements = elements

    def fetch(self, start: int, stop: int) -> list[Any]:
        return self._elements.slice(start, stop)
