"""Segments: the written state of an operator subtask, and the store that reads and writes them.

Small segments travel inside acks and control rows. Large ones are files in a directory that driver
and tasks share, if there is one. Reads verify checksums.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from firesteel.errors import FiresteelError, WriteFailedError

FORMAT_VERSION = 1


class CorruptSegmentError(FiresteelError, RuntimeError):
    """A segment is damaged or missing."""


class UnknownFormatError(FiresteelError, RuntimeError):
    """A segment has a format that this version, or this backend, does not read."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One of several files of a segment. Segments may share files."""

    name: str
    size: int
    checksum: int
    inline: bytes | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A handle to written state: ``inline`` bytes, a file ``path``, or ``files`` of a backend.

    ``full``: the segment replaces the segments of all epochs up to its own.
    ``shared``: names of files that were written for an earlier segment.
    ``since``: the segment has the content of several neighbors, and replaces the segments from this
    epoch up to its own. Only new segments have it.
    """

    epoch: int
    full: bool
    size: int
    inline: bytes | None = None
    path: str | None = None
    checksum: int = 0
    files: tuple[SegmentFile, ...] = ()
    version: int = FORMAT_VERSION
    shared: frozenset[str] = frozenset()
    since: int | None = None

    def paths(self) -> set[str]:
        """The files on disk that this segment needs."""
        found = {file.path for file in self.files if file.path is not None}
        return found | {self.path} if self.path is not None else found

    def own_paths(self) -> set[str]:
        """The files that no earlier segment needs."""
        shared = {file.path for file in self.files if file.name in self.shared}
        return self.paths() - {path for path in shared if path is not None}

    def own_size(self) -> int:
        """The number of bytes that were written for this segment."""
        return self.size - sum(file.size for file in self.files if file.name in self.shared)


class SegmentStore:
    """Writes and reads segments. Without a directory all segments are inline."""

    def __init__(self, directory: str | None, inline_threshold: int) -> None:
        self._directory = Path(directory) if directory is not None else None
        self.inline_threshold = inline_threshold

    def write(
        self, payload: Iterable[bytes], *, epoch: int, full: bool, inline_bytes: int = 0
    ) -> Segment:
        """Write a segment chunk by chunk, so that it does not have to fit into memory.

        ``inline_bytes``: the total size of the inline segments that accompany this one.
        """
        chunks: list[bytes] = []
        size = checksum = 0
        remaining = iter(payload)
        for chunk in remaining:
            chunks.append(chunk)
            size += len(chunk)
            checksum = zlib.crc32(chunk, checksum)
            if self._directory is not None and inline_bytes + size > self.inline_threshold:
                break
        else:
            return Segment(epoch, full, size, inline=b"".join(chunks), checksum=checksum)
        assert self._directory is not None
        path = self._unique(f"segment-{epoch}")
        with _whole_or_gone(path), path.open("wb") as file:
            file.writelines(chunks)
            chunks.clear()
            for chunk in remaining:
                file.write(chunk)
                size += len(chunk)
                checksum = zlib.crc32(chunk, checksum)
        return Segment(epoch, full, size, path=str(path), checksum=checksum)

    def read(self, segment: Segment) -> bytes:
        check_version(segment)
        if segment.inline is not None:
            payload = segment.inline
        elif segment.path is not None:
            payload = _read(segment.path, f"state segment of epoch {segment.epoch}")
        else:
            raise CorruptSegmentError(
                f"the state segment of epoch {segment.epoch} has neither inline content nor a file"
            )
        if zlib.crc32(payload) != segment.checksum:
            place = segment.path or f"of epoch {segment.epoch}"
            raise CorruptSegmentError(
                f"the state segment {place} is damaged: its checksum does not match its content"
            )
        return payload

    def write_file(self, source: Path) -> SegmentFile:
        """Store a copy of a file."""
        if self._directory is None:
            payload = source.read_bytes()
            return SegmentFile(source.name, len(payload), zlib.crc32(payload), inline=payload)
        path = self._unique(source.name)
        with _whole_or_gone(path):
            size, checksum = _copy(source, path)
        return SegmentFile(source.name, size, checksum, path=str(path))

    def read_file(self, file: SegmentFile, target: Path) -> None:
        """Copy a stored file to ``target``."""
        if file.inline is not None:
            target.write_bytes(file.inline)
            checksum = zlib.crc32(file.inline)
        else:
            try:
                _, checksum = _copy(Path(file.path or ""), target)
            except FileNotFoundError:
                raise CorruptSegmentError(
                    f"the state file {file.name} is missing: there is no file {file.path}"
                ) from None
        if checksum != file.checksum:
            raise CorruptSegmentError(
                f"the state file {file.path or file.name} is damaged: its checksum does not match "
                "its content"
            )

    def _unique(self, name: str) -> Path:
        # The name is unique because two attempts of a task may write at the same time.
        assert self._directory is not None
        return self._directory / f"{name}-{uuid.uuid4().hex}"


@contextmanager
def _whole_or_gone(path: Path) -> Iterator[None]:
    """Delete a file that could not be written completely."""
    try:
        yield
    except OSError as error:
        path.unlink(missing_ok=True)
        raise WriteFailedError.of(path, error) from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def check_version(segment: Segment) -> None:
    if segment.version != FORMAT_VERSION:
        raise UnknownFormatError(
            f"the state segment of epoch {segment.epoch} has format {segment.version}, but this "
            f"version of Firesteel reads format {FORMAT_VERSION}. Restore it with the version of "
            "Firesteel that wrote it."
        )


def _read(path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise CorruptSegmentError(f"the {what} is missing: there is no file {path}") from None


def _copy(source: Path, target: Path) -> tuple[int, int]:
    """Copy a file, and return its size and checksum."""
    size = checksum = 0
    with source.open("rb") as reader, target.open("wb") as writer:
        while chunk := reader.read(1 << 20):
            writer.write(chunk)
            size += len(chunk)
            checksum = zlib.crc32(chunk, checksum)
    return size, checksum


# A full snapshot replaces the log when the log is this many times as large as the state. Then each
# change is written about 1.5 times, and a restore reads at most three times the state.
_LOG_GROWTH = 2
# Neighbors in the log are merged when there are this many new ones.
_MERGED_NEIGHBORS = 16
# Larger segments are not merged. Their number is limited, because the size of the log is.
_LARGE_BYTES = 4 << 20
_LARGE_SHARE = 256


class SegmentAccount:
    """The segments that a restore needs, in order, and their sizes."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self.segments: list[Segment] = []
        self.full_bytes = 0
        self.log_bytes = 0
        # The size of the segments that travel in every control row.
        self.inline_bytes = 0
        # The number of segments in the log that were never considered for a merge.
        self._unmerged = 0
        for segment in segments:
            self.add(segment)

    def add(self, segment: Segment) -> None:
        self.segments = with_segment(self.segments, segment)
        if not segment.full and segment.since is None:
            self._unmerged += 1
        self.full_bytes = sum(kept.size for kept in self.segments if kept.full)
        self.log_bytes = sum(kept.size for kept in self.segments if not kept.full)
        self.inline_bytes = sum(map(_inline, self.segments))

    def is_log_long(self, store: SegmentStore, added: int = 0) -> bool:
        limit = max(store.inline_threshold, _LOG_GROWTH * self.full_bytes)
        return self.log_bytes + added > limit

    def take_neighbors(self, after: int) -> list[Segment]:
        """The newest segments of the log, if there are enough of them to merge.

        An older segment is included if it is not larger than those after it together. So each merge
        at least doubles the size of a segment's file: a change is written a number of times that
        grows with the logarithm of the log, and so does the number of segments.

        after: segments up to this epoch are about to be replaced.
        """
        if self._unmerged < _MERGED_NEIGHBORS:
            return []
        new, self._unmerged = self._unmerged, 0
        limit = max(_LARGE_BYTES, self.full_bytes // _LARGE_SHARE)
        found: list[Segment] = []
        size = 0
        for segment in reversed(self.segments):
            is_old = len(found) >= new
            if segment.full or segment.epoch <= after or segment.size > limit:
                break
            if is_old and segment.size > size:
                break
            found.append(segment)
            size += segment.size
        return found[::-1] if len(found) > 1 else []

    def inline_bytes_without(self, segments: Iterable[Segment]) -> int:
        return self.inline_bytes - sum(map(_inline, segments))


def with_segment(segments: list[Segment], new: Segment) -> list[Segment]:
    """The needed segments after a new one. A full one replaces all segments up to its epoch."""
    if new.full:
        return [new, *(kept for kept in segments if not kept.full and kept.epoch > new.epoch)]
    if new.since is None:
        return [*segments, new]
    before = [kept for kept in segments if kept.full or kept.epoch < new.since]
    after = [kept for kept in segments if not kept.full and kept.epoch > new.epoch]
    return [*before, replace(new, since=None), *after]


def _inline(segment: Segment) -> int:
    return len(segment.inline or b"") + sum(len(file.inline or b"") for file in segment.files)


_log = logging.getLogger("firesteel")

# Pickling holds the interpreter's lock. Other threads run between two chunks of this size.
CHUNK_ENTRIES = 5_000
_PATIENCE_SECONDS = 5.0


class BackgroundSegment:
    """A segment that a background thread writes.

    ``write`` creates the segment. It receives a check function and calls it between chunks. The
    check raises an exception once the segment is abandoned. ``title`` names it in messages.
    """

    def __init__(self, title: str, write: Callable[[Callable[[], None]], Segment]) -> None:
        self._title = title
        self._write = write
        self._abandoned = threading.Event()
        self._done = threading.Event()
        self._segment: Segment | None = None
        # The duration of the finished work.
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="firesteel-segment", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        started = time.perf_counter()
        try:
            segment = self._write(self._check)
        except _Abandoned:
            segment = None
        except Exception:  # noqa: BLE001 - a store may raise any exception
            # The log still has all changes, so no state is lost.
            _log.exception("writing %s failed; a later epoch retries", self._title)
            segment = None
        with self._lock:
            self._segment = segment
            self.seconds = time.perf_counter() - started
            self._done.set()
        if self._abandoned.is_set() and segment is not None:
            delete_files(segment.own_paths())

    def _check(self) -> None:
        if self._abandoned.is_set():
            raise _Abandoned

    def is_done(self) -> bool:
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until the thread has ended. Only tests call it."""
        return self._done.wait(seconds)

    def segment(self) -> Segment | None:
        """The segment, or None if writing it failed."""
        return self._segment

    def abandon(self) -> None:
        """Stop writing, and delete the files of the segment."""
        with self._lock:
            self._abandoned.set()
            segment, self._segment = self._segment, None
        if segment is not None:
            delete_files(segment.own_paths())
        # The thread ends after its current chunk, unless the storage hangs.
        self._thread.join(_PATIENCE_SECONDS)


class _Abandoned(Exception):
    """Ends the thread of an abandoned segment."""


def delete_files(paths: set[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
