"""Writer of a file sink: records become part files, and errors name the function of the user."""

from __future__ import annotations

import io
import os
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, BinaryIO

from firesteel.common.serialization import BulkWriterFactory, Encoder, SimpleStringEncoder
from firesteel.connectors.base import SinkWriter, WriteContext, WriterContext
from firesteel.connectors.files.buckets import BucketAssigner
from firesteel.connectors.files.committer import unpublished
from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.part_files import (
    BulkPartFile,
    DefaultRollingPolicy,
    LocalFile,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    PartFile,
    PartFileMissingError,
    RemoteFile,
    RollingPolicy,
    RowPartFile,
)
from firesteel.connectors.files.paths import FilePaths
from firesteel.filesystems.file_systems import LocalFileSystem, is_uri
from firesteel.usercode.failures import WrongResultError, explaining


@dataclass(frozen=True, slots=True)
class FileWriterConfig:
    """The settings of a file sink. ``bucket_check_interval`` is in seconds."""

    base_path: str
    paths: FilePaths
    # Exactly one of them: records are encoded one by one, or the format needs whole files.
    encoder: Encoder | None
    writer_factory: BulkWriterFactory | None
    bucket_assigner: BucketAssigner
    rolling_policy: RollingPolicy
    output_file_config: OutputFileConfig
    bucket_check_interval: float
    #: The rule and the way to merge files before they are visible, or None.
    compaction: tuple[FileCompactStrategy, FileCompactor] | None = None


class FileWriter(SinkWriter):
    """Writes part files. A file is in progress, then pending (closed), then finished (renamed).

    A snapshot contains the files in progress with their sizes, and the pending files that are in no
    committable yet. A restored writer does not continue a file: the bytes in the snapshot become a
    finished file with the next checkpoint, and new records begin a new file. Each checkpoint and
    savepoint can therefore be restored any number of times.
    """

    def __init__(
        self,
        config: FileWriterConfig,
        state: Any = None,
        clock: Callable[[], float] = time.time,
        *,
        context: WriterContext | None = None,
    ) -> None:
        context = context or WriterContext(0, 1, "")
        self._job_id = context.job_id
        self._attempt = context.attempt
        self._config = config
        self._clock = clock
        self._disk = LocalFileSystem()
        self._is_remote = is_uri(config.base_path)
        encoder = config.encoder
        self._encode_batch = None if encoder is None else batch_encoder(encoder)
        policy = config.rolling_policy
        self._functions: tuple[Callable[..., Any], ...] = (
            policy.should_roll_on_event,
            policy.should_roll_on_checkpoint,
            policy.should_roll_on_processing_time,
            *([] if encoder is None else [encoder.encode]),
            # Wrong bucket ids are detected when a file is opened.
            config.bucket_assigner.get_bucket_id,
        )
        self._unique_id = str(uuid.uuid4())
        self._part_counter = 0
        self._open_parts: dict[str, PartFile] = {}
        self._pending: list[dict[str, Any]] = []
        # The checkpoints for which the pending files of each directory have waited to be merged.
        self._waits: Counter[str] = Counter()
        self._unreported: list[PartFile] = []  # closed, and not yet in a snapshot or committable
        self._next_check = clock() + config.bucket_check_interval
        disposable = self._files_of_failed_attempts(context.abandoned)
        for snapshot in _snapshots(state):
            self._restore(snapshot, disposable)
        for path in disposable.difference(file["in_progress"] for file in self._pending):
            self._remove(path)

    def write(self, value: Any, context: WriteContext) -> None:
        bucket_id = self._config.bucket_assigner.get_bucket_id(value, context)
        self._write(bucket_id, value, self._now())

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        if not values:
            return
        assigner = self._config.bucket_assigner
        if assigner.depends_on_element:
            iterator = iter(values)
            with explaining(self._functions, values, iterator):
                self._write_to_buckets(iterator, timestamps, context)
            return
        with explaining(self._functions, values[:1]):
            bucket_id = assigner.get_bucket_id(values[0], context)
            if self._write_at_once(bucket_id, values):
                return
        now = self._now()
        iterator = iter(values)
        with explaining(self._functions, values, iterator):
            for value in iterator:
                self._write(bucket_id, value, now)

    def _write_to_buckets(
        self, values: Iterator[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        write = self.write
        if timestamps is None:
            context.record_timestamp = None
            for value in values:
                write(value, context)
            return
        # The values come first: the position of their iterator identifies the record that failed.
        for value, timestamp in zip(values, timestamps, strict=True):
            context.record_timestamp = timestamp
            write(value, context)

    def flush(self, end_of_input: bool) -> None:
        if self._clock() >= self._next_check:
            self._roll_by_time()
        for part in self._open_parts.values():
            part.flush()

    def next_flush_delay(self) -> float | None:
        if not self._open_parts:
            return None
        return max(0.0, self._next_check - self._clock())

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        policy = self._config.rolling_policy
        for bucket_id, part in list(self._open_parts.items()):
            with explaining(self._functions):
                rolls = (
                    end_of_input or not part.is_resumable or policy.should_roll_on_checkpoint(part)
                )
            if rolls:
                self._close_part(bucket_id)
            else:
                part.sync()
        if self._config.compaction is not None:
            ready, self._pending = self._compact(*self._config.compaction, end_of_input)
        else:
            ready, self._pending = self._pending, []
        self._unreported.clear()
        return [{"kind": "finish", **file} for file in ready]

    def snapshot_state(self) -> Any:
        for part in self._open_parts.values():
            part.flush()
        self._unreported.clear()
        return {
            "in_progress": [
                part.snapshot() for part in self._open_parts.values() if part.is_resumable
            ],
            "pending": list(self._pending),
            "job": self._job_id,
            "attempt": self._attempt,
        }

    def has_open_transaction(self) -> bool:
        return any(not part.is_resumable for part in self._open_parts.values())

    def close(self) -> None:
        """Close all files, and remove those that no snapshot refers to."""
        for part in self._open_parts.values():
            if part.in_snapshot:
                part.close()
            else:
                part.discard()
        for part in self._unreported:
            if not part.in_snapshot:
                part.discard()
        self._open_parts.clear()
        self._unreported.clear()

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _write(self, bucket_id: str, value: Any, now: int) -> None:
        part = self._open_parts.get(bucket_id)
        if part is None or self._config.rolling_policy.should_roll_on_event(part, value):
            part = self._open_part(bucket_id, now)
        part.write([value], now)

    def _write_at_once(self, bucket_id: str, values: list[Any]) -> bool:
        """Write a batch in one piece. Return False if a file may have to roll within it."""
        policy = self._config.rolling_policy
        if type(policy) not in {DefaultRollingPolicy, OnCheckpointRollingPolicy}:
            return False
        part = self._open_parts.get(bucket_id)
        if isinstance(policy, DefaultRollingPolicy):
            return self._encode_batch is not None and self._write_below_size(
                bucket_id, self._encode_batch(values), policy.part_size
            )
        now = self._now()
        if part is None:
            part = self._open_part(bucket_id, now)
        part.write(values, now)
        return True

    def _write_below_size(self, bucket_id: str, data: bytes, part_size: int) -> bool:
        """Write encoded records, unless they make the file longer than ``part_size``."""
        part = self._open_parts.get(bucket_id)
        size = part.get_size() if part is not None else 0
        if size + len(data) > part_size:
            return False
        now = self._now()
        if part is None:
            part = self._open_part(bucket_id, now)
        assert isinstance(part, RowPartFile)
        part.write_bytes(data, now)
        return True

    def _open_part(self, bucket_id: str, now: int) -> PartFile:
        self._close_part(bucket_id)
        directory = _bucket_directory(self._config.base_path, bucket_id)
        part = self._new_part(bucket_id, f"{directory}/{self._next_name()}", now)
        self._open_parts[bucket_id] = part
        return part

    def _next_name(self, kind: str = "") -> str:
        config = self._config.output_file_config
        number = self._part_counter
        self._part_counter += 1
        prefix, suffix = config.get_part_prefix(), config.get_part_suffix()
        return f"{kind}{prefix}-{self._unique_id}-{number}{suffix}"

    def _new_part(self, bucket_id: str, path: str, now: int) -> PartFile:
        factory = self._config.writer_factory
        if factory is not None:
            return BulkPartFile(bucket_id, path, now, self._open_file, factory)
        assert self._encode_batch is not None
        return RowPartFile(bucket_id, path, now, self._open_file, self._encode_batch)

    def _open_file(self, path: str) -> LocalFile | RemoteFile:
        if self._is_remote:
            return RemoteFile(path, self._config.paths)
        return LocalFile(path, self._disk)

    def _remove(self, path: str) -> None:
        """Remove a hidden file, if it exists."""
        file_system, inner, _ = self._config.paths.locate(path)
        file_system.delete(inner)

    def _close_part(self, bucket_id: str) -> None:
        part = self._open_parts.get(bucket_id)
        if part is None:
            return
        # If this fails, the file is still open, and ``close`` removes it.
        part.finish()
        del self._open_parts[bucket_id]
        self._pending.append(
            {
                "in_progress": part.in_progress_path,
                "final": part.final_path,
                "size": part.get_size(),
            }
        )
        self._unreported.append(part)

    def _compact(
        self, strategy: FileCompactStrategy, compactor: FileCompactor, end_of_input: bool
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Merge the pending files of each directory. Return the results, and the files that wait."""
        by_directory: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for file in self._pending:
            by_directory[file["final"].rpartition("/")[0]].append(file)
        ready: list[dict[str, Any]] = []
        waiting: list[dict[str, Any]] = []
        for directory, files in by_directory.items():
            self._waits[directory] += 1
            size = sum(file["size"] for file in files)
            if end_of_input or strategy.is_due(size, self._waits[directory]):
                del self._waits[directory]
                ready += self._merge(directory, files, compactor)
            else:
                waiting += files
        return ready, waiting

    def _merge(
        self, directory: str, files: list[dict[str, Any]], compactor: FileCompactor
    ) -> list[dict[str, Any]]:
        """Merge files into a hidden one. The committer removes them after it is visible."""
        # The bytes of other files were merged before: the job has returned to an older snapshot.
        found = [(file, self._find(file)) for file in files]
        present = [(file, place) for file, place in found if place is not None]
        if not present:
            return []
        name = self._next_name("compacted-")
        merged = self._open_file(f"{directory}/.{name}.inprogress.{uuid.uuid4()}")
        try:
            with explaining([compactor.compact]):
                compactor.compact(starmap(self._read, present), merged.file)
            size = merged.file.tell()
            merged.finish()
        except BaseException:
            merged.discard()
            raise
        return [
            {
                "in_progress": merged.path,
                "final": f"{directory}/{name}",
                "size": size,
                "merged": [file for file, _ in present],
            }
        ]

    def _find(self, file: dict[str, Any]) -> tuple[str, int] | None:
        """Return the file with the bytes of a pending one, and the place of the first byte."""
        path = file["in_progress"]
        if not self._is_remote:
            return unpublished(path, file["size"])
        file_system, inner, _ = self._config.paths.locate(path)
        return None if file_system.size(inner) is None else (path, 0)

    def _read(self, file: dict[str, Any], place: tuple[str, int]) -> BinaryIO:
        """Return the bytes of a pending file that its snapshot contains, and no others."""
        path, start = place
        with self._config.paths.open(path) as opened:
            opened.seek(start)
            data = opened.read(file["size"] - start)
        if len(data) < file["size"] - start:
            raise PartFileMissingError(path, file["size"], f"it has only {start + len(data)} bytes")
        return io.BytesIO(data)

    def _roll_by_time(self) -> None:
        now = self._now()
        self._next_check = self._clock() + self._config.bucket_check_interval
        policy = self._config.rolling_policy
        for bucket_id, part in list(self._open_parts.items()):
            with explaining(self._functions):
                rolls = policy.should_roll_on_processing_time(part, now)
            if rolls:
                self._close_part(bucket_id)

    def _restore(self, snapshot: dict[str, Any], disposable: set[str]) -> None:
        """Take over the files of a snapshot, whose writer may still be alive.

        disposable: the files that no different checkpoint or savepoint needs.
        """
        # The task was lost, and repeats its epoch: no snapshot has more bytes than this one.
        is_repeated = self._wrote(snapshot) and snapshot["attempt"] == self._attempt
        for file in snapshot["in_progress"]:
            path, size = file["in_progress"], file["size"]
            if os.path.exists(path) and (actual := os.path.getsize(path)) < size:
                raise PartFileMissingError(path, size, f"the file has only {actual} bytes")
            self._pending.append(
                {
                    "in_progress": path,
                    "final": file["final"],
                    "size": size,
                    "restored": True,
                    "disposable": is_repeated or path in disposable,
                }
            )
        self._pending += snapshot["pending"]

    def _files_of_failed_attempts(self, abandoned: Sequence[Any]) -> set[str]:
        """The hidden files of failed attempts of this job."""
        committables = [one for one in abandoned if "kind" in one]
        files = [*committables, *(file for one in committables for file in one.get("merged", ()))]
        for snapshot in abandoned:
            if "kind" not in snapshot and self._wrote(snapshot):
                files += [*snapshot["in_progress"], *snapshot["pending"]]
        return {
            file["in_progress"]
            for file in files
            # Other files were restored from a checkpoint of a different job.
            if not file.get("restored") or file["disposable"]
        }

    def _wrote(self, snapshot: dict[str, Any]) -> bool:
        """Return True if a writer of this job took the snapshot. Firesteel 0.1 did not name it."""
        return bool(self._job_id) and snapshot.get("job") == self._job_id


def _snapshots(state: Any) -> list[dict[str, Any]]:
    """Return the snapshots to continue from: none, one, or several after rescaling."""
    if not state:
        return []
    return state if isinstance(state, list) else [state]


def _bucket_directory(base_path: str, bucket_id: str) -> str:
    if not isinstance(bucket_id, str):
        raise TypeError(f"A bucket id must be str, but the bucket assigner returned {bucket_id!r}")
    if os.path.isabs(bucket_id) or ".." in bucket_id.split("/"):
        raise ValueError(f"The bucket id {bucket_id!r} is outside of the base path {base_path}")
    return f"{base_path}/{bucket_id.rstrip('/')}" if bucket_id else base_path


def batch_encoder(encoder: Encoder) -> Callable[[list[Any]], bytes]:
    """Return a function that encodes many records at once."""
    encode = encoder.encode

    def encode_each(values: list[Any]) -> bytes:
        iterator = iter(values)
        with explaining([encode], values, iterator):
            parts: list[Any] = [encode(value) for value in iterator]
        try:
            return b"".join(parts)
        except TypeError:
            wrong = next(i for i, part in enumerate(parts) if not isinstance(part, _BYTES))
            with explaining([encode], [values[wrong]]):
                raise WrongResultError(encode, "bytes", parts[wrong]) from None
            raise

    def encode_texts(values: list[Any]) -> bytes:
        try:
            text = "\n".join(values)
        except TypeError:  # not only texts
            return encode_each(values)
        return f"{text}\n".encode()

    if type(encoder) is SimpleStringEncoder and encoder.charset == "utf-8":
        return encode_texts
    return encode_each


_BYTES = (bytes, bytearray, memoryview)
