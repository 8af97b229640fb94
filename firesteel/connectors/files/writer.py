"""The functions that a user gives to the file sink: calls of them that explain what goes wrong."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from firesteel.common.serialization import Encoder, SimpleStringEncoder
from firesteel.connectors.base import SinkWriter, WriteContext
from firesteel.connectors.files.buckets import BucketAssigner
from firesteel.connectors.files.part_files import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    PartFile,
    RollingPolicy,
)
from firesteel.errors import FiresteelError, shorten


@dataclass(frozen=True, slots=True)
class FileWriterConfig:
    base_path: str
    encoder: Encoder
    bucket_assigner: BucketAssigner
    rolling_policy: RollingPolicy
    output_file_config: OutputFileConfig
    #: Seconds.
    bucket_check_interval: float


class FileWriter(SinkWriter):
    """Part files are in progress, then pending (closed, committable), then finished (renamed).

    A snapshot holds the files in progress with their sizes, the pending ones that no committable
    names yet, and files that are obsolete once the snapshot's checkpoint is complete.
    """

    def __init__(
        self,
        config: FileWriterConfig,
        state: Any = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._clock = clock
        self._encode_batch = batch_encoder(config.encoder)
        policy = config.rolling_policy
        self._functions = (
            policy.should_roll_on_event,
            policy.should_roll_on_checkpoint,
            policy.should_roll_on_processing_time,
            config.encoder.encode,
            # Bad bucket ids are found only when a file is opened.
            config.bucket_assigner.get_bucket_id,
        )
        self._unique_id = str(uuid.uuid4())
        self._part_counter = 0
        self._open_parts: dict[str, PartFile] = {}
        self._pending: list[dict[str, Any]] = []
        self._unreported: list[PartFile] = []  # closed, and in no snapshot or committable yet
        self._obsolete: list[str] = []
        self._next_check = clock() + config.bucket_check_interval
        for snapshot in _snapshots(state):
            self._restore(snapshot)

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
        # The values first: what is left of them tells which record failed.
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
                rolls = end_of_input or policy.should_roll_on_checkpoint(part)
            if rolls:
                self._close_part(bucket_id)
            else:
                part.sync()
        committables: list[Any] = [{"kind": "finish", **pending} for pending in self._pending]
        committables += [{"kind": "remove", "path": path} for path in self._obsolete]
        self._pending.clear()
        self._unreported.clear()
        self._obsolete.clear()
        return committables

    def snapshot_state(self) -> Any:
        for part in self._open_parts.values():
            part.flush()
        self._unreported.clear()
        return {
            "in_progress": [part.snapshot() for part in self._open_parts.values()],
            "pending": list(self._pending),
            "obsolete": list(self._obsolete),
        }

    def close(self) -> None:
        """Close all files; those that nothing refers to are removed."""
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
        data = self._config.encoder.encode(value)
        try:
            part.write(data, now)
        except TypeError:
            raise WrongResultError(self._config.encoder.encode, "bytes", data) from None

    def _write_at_once(self, bucket_id: str, values: list[Any]) -> bool:
        """Write a batch in one piece, unless a file might have to roll within it."""
        policy = self._config.rolling_policy
        if type(policy) not in {DefaultRollingPolicy, OnCheckpointRollingPolicy}:
            return False
        data = self._encode_batch(values)
        part = self._open_parts.get(bucket_id)
        if isinstance(policy, DefaultRollingPolicy):
            size = part.get_size() if part is not None else 0
            if size + len(data) > policy.part_size:
                return False
        now = self._now()
        if part is None:
            part = self._open_part(bucket_id, now)
        part.write(data, now)
        return True

    def _open_part(self, bucket_id: str, now: int) -> PartFile:
        self._close_part(bucket_id)
        config = self._config.output_file_config
        name = (
            f"{config.get_part_prefix()}-{self._unique_id}-{self._part_counter}"
            f"{config.get_part_suffix()}"
        )
        directory = _bucket_directory(self._config.base_path, bucket_id)
        part = PartFile(bucket_id, os.path.join(directory, name), now)
        self._part_counter += 1
        self._open_parts[bucket_id] = part
        return part

    def _close_part(self, bucket_id: str) -> None:
        part = self._open_parts.get(bucket_id)
        if part is None:
            return
        # If this fails, the file is still known, and goes with the writer.
        part.sync()
        del self._open_parts[bucket_id]
        part.close()
        self._pending.append(
            {
                "in_progress": part.in_progress_path,
                "final": part.final_path,
                "size": part.get_size(),
            }
        )
        self._unreported.append(part)

    def _roll_by_time(self) -> None:
        now = self._now()
        self._next_check = self._clock() + self._config.bucket_check_interval
        policy = self._config.rolling_policy
        for bucket_id, part in list(self._open_parts.items()):
            with explaining(self._functions):
                rolls = policy.should_roll_on_processing_time(part, now)
            if rolls:
                self._close_part(bucket_id)

    def _restore(self, snapshot: dict[str, Any]) -> None:
        self._pending += snapshot["pending"]
        self._obsolete += snapshot["obsolete"]
        for file in snapshot["in_progress"]:
            bucket_id = file["bucket"]
            # Two subtasks of a larger parallelism may have had a file in the same bucket.
            self._close_part(bucket_id)
            self._open_parts[bucket_id] = PartFile.restore(file)
            self._obsolete.append(file["in_progress"])


def _snapshots(state: Any) -> list[dict[str, Any]]:
    """The snapshots to go on from: none, one, or several after a change of the parallelism."""
    if not state:
        return []
    return state if isinstance(state, list) else [state]


def _bucket_directory(base_path: str, bucket_id: str) -> str:
    if not isinstance(bucket_id, str):
        raise TypeError(f"A bucket id must be str, the bucket assigner returned {bucket_id!r}")
    if os.path.isabs(bucket_id) or ".." in bucket_id.split("/"):
        raise ValueError(f"The bucket id {bucket_id!r} leads out of the base path {base_path}")
    return os.path.join(base_path, bucket_id) if bucket_id else base_path


class WrongResultError(FiresteelError, TypeError):
    """A function of the user's returned something that cannot be used."""

    def __init__(self, function: Callable[..., Any], expected: str, result: object) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        super().__init__(f"{name} must return {expected}, but it returned {shorten(result)}")
        self.function = function


@contextmanager
def explaining(
    functions: Sequence[Callable[..., Any]],
    values: Sequence[Any] | None = None,
    iterator: Iterator[Any] | None = None,
) -> Iterator[None]:
    """What one of ``functions`` raises names it, and the record that ``iterator`` gave out last.

    An error that none of them raised is put down to the last.
    """
    try:
        yield
    except WrongResultError as error:
        raise _failure(error, error.function, values, iterator) from error
    except FiresteelError:
        raise
    except BaseException as error:
        # Runs in a task, where this room is loaded already.
        from firesteel.usercode.failures import failed_function, is_failure

        if not is_failure(error):
            raise
        raise _failure(error, failed_function(error, *functions), values, iterator) from error


def _failure(
    error: BaseException,
    function: Callable[..., Any],
    values: Sequence[Any] | None,
    iterator: Iterator[Any] | None,
) -> Exception:
    from firesteel.usercode.failures import user_function_error

    return user_function_error(error, "", function, values, iterator)


def batch_encoder(encoder: Encoder) -> Callable[[list[Any]], bytes]:
    """Encodes many records at once."""
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
